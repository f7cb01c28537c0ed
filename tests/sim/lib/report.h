/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.h - a run that goes wrong says how to see it again, however it goes wrong. */
#ifndef TESTS_SIM_LIB_REPORT_H
#define TESTS_SIM_LIB_REPORT_H

#include <stdint.h>

/* Each run tells its seed, then adds what it is about to do. */
void report_begin(uint64_t seed);
__attribute__((format(printf, 1, 2))) void report_add(const char *format, ...);

/* Prints what was told and this, and ends the program in failure. So does an assert() of the library, or a sanitizer.
 */
__attribute__((format(printf, 1, 2))) _Noreturn void report_failure(const char *format, ...);

/* The run ended well; with SIM_VERBOSE set it is printed nevertheless. */
void report_end(void);

#endif
