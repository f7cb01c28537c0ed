/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.h - how many descriptors this process has. */
#ifndef TESTS_LIB_DESCRIPTORS_H
#define TESTS_LIB_DESCRIPTORS_H

/* The same few more each time, which stand for the folder itself. */
unsigned count_descriptors(void);

#endif
