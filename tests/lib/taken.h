/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* taken.h - a program closes all descriptors that it finds, and opens files of its own, which take the numbers that the
 * library had. */
#ifndef TESTS_LIB_TAKEN_H
#define TESTS_LIB_TAKEN_H

#include <stdbool.h>

/* All but the first three are closed. There are more files than any test had descriptors. */
void take_numbers(void);

/* Were none of them closed, written, or read? Says which was. */
bool taken_are_whole(void);

void close_taken(void);

#endif
