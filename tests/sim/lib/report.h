/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.h - makes a failed run reproducible, whatever the failure. */
#ifndef TESTS_SIM_LIB_REPORT_H
#define TESTS_SIM_LIB_REPORT_H

#include <stdint.h>

/* Records the seed of the run, and then what it is about to do. */
void report_begin(uint64_t seed);
__attribute__((format(printf, 1, 2))) void report_add(const char *format, ...);

/* Prints what was recorded and this message, and exits with failure. An assert() of the library or a sanitizer does the
 * same. */
__attribute__((format(printf, 1, 2))) _Noreturn void report_failure(const char *format, ...);

/* The run succeeded; prints it if SIM_VERBOSE is set. */
void report_end(void);

#endif
