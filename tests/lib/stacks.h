/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stacks.h - runs the same tests over each stack of SCTP in user space. */
#ifndef RDDP_TESTS_LIB_STACKS_H
#define RDDP_TESTS_LIB_STACKS_H

#include <stddef.h>

#include "sctp/io/sctp.h"

struct CMUnitTest;

/* The stack of the test that runs now. */
extern const struct sctp_provider *stack;

/* Runs the tests over our own stack, and over usrsctp if the build has it. argv[1], if there is one, is the name of the
 * only stack to use. Returns the exit code of the program. */
int stacks_run(const struct CMUnitTest *tests, size_t n, int argc, char **argv);

#endif
