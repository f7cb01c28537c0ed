/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.c - see descriptors.h. */
#include "tests/lib/descriptors.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

unsigned count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}
