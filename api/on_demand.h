/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* on_demand.h - memory that may not be there: the kernel copies, and says so. */
#ifndef RDDP_API_ON_DEMAND_H
#define RDDP_API_ON_DEMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/mr.h"

/* No signal, whatever becomes of the memory meanwhile: unmapped, protected, or cut off with its file. From any
 * thread. */
extern const struct mr_copier on_demand_copier;

/* Does the kernel copy for this process? A filter of system calls may forbid it. */
bool on_demand_works(void);

/* Makes the pages present, for writing if `write`. Returns 0, or -EFAULT: some are not there, or do not allow it; also
 * 0 if the kernel cannot do so (before Linux 5.14). */
int on_demand_populate(void *addr, size_t length, bool write);

#endif
