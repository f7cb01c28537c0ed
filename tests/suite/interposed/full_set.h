/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* full_set.h - epoll sets that take nothing for as long as a test says so: epoll_ctl() stands in front of the C
 * library's, or of a sanitizer's, for the library as well. Of the programs that CMake names alone. */
#ifndef RDDP_TESTS_SUITE_FULL_SET_H
#define RDDP_TESTS_SUITE_FULL_SET_H

#include <stdatomic.h>

extern atomic_bool set_is_full;  /* additions to any epoll set of the process fail with ENOSPC */
extern atomic_uint set_refusals; /* how many have */

#endif
