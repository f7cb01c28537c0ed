/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stacks.c - runs the same tests over each stack of SCTP in user space. */
#include "tests/lib/stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sctp/io/osctp_provider.h"
#include "sctp/io/usctp.h"

static const struct sctp_provider *const stacks[] = {&osctp, &usctp};

const struct sctp_provider *stack;

int stacks_run(const struct CMUnitTest *tests, size_t n, int argc, char **argv)
{
    unsigned run = 0;
    int failed = 0;

    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        stack = stacks[i];
        if (argc > 1 && strcmp(argv[1], stack->name) != 0)
            continue;
        if (stack->missing(NULL)) {
            printf("skipped over %s: %s\n", stack->name, stack->missing(NULL));
            continue;
        }
        run++;
        failed += _cmocka_run_group_tests(stack->name, tests, n, NULL, NULL);
    }
    return run ? failed : 77;
}
