/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.c - reads a recorded conversation: per line a message, its side and its octets in hexadecimal. */
#include "tests/lib/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/vectors.h"

void capture_each(const char *name, void (*take)(char side, const uint8_t *p, size_t n))
{
    static char line[2 * CAPTURE_MESSAGE];
    static uint8_t bytes[CAPTURE_MESSAGE];
    FILE *file;

    snprintf(line, sizeof(line), RDDP_SOURCE_DIR "/tests/captures/%s.txt", name);
    file = fopen(line, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        ptrdiff_t n;

        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#')
            continue;
        n = hex_decode(line + 2, bytes, sizeof(bytes));
        assert_true(n > 0);
        take(line[0], bytes, (size_t)n);
    }
    fclose(file);
}
