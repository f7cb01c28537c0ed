/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* store.h - asks the file system whether it has stored what was written, before a file gets its name. */
#ifndef TOOLS_XFER_STORE_H
#define TOOLS_XFER_STORE_H

#include <stdbool.h>

/* Returns 0, or a negative errno if the file system cannot store the file `fd`, which stays open. `sync`: also calls
 * fsync(). */
int store_check(int fd, bool sync);

#endif
