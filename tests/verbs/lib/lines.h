/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lines.h - what the libraries write to standard error. */
#ifndef RDDP_TESTS_VERBS_LINES_H
#define RDDP_TESTS_VERBS_LINES_H

enum { LINES_MAX = 1024 };

/* From here on standard error is kept, until lines_end(). Returns 0 or -1. */
int lines_begin(void);
void lines_end(void);

/* What was written since the last call. */
void lines_read(char line[LINES_MAX]);

/* It is one line, with these words. */
void lines_expect(const char *call, const char *rule, const char *error);

#endif
