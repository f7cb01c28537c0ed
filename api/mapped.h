/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.h - asks the kernel whether memory is mapped, readable and writable. */
#ifndef RDDP_API_MAPPED_H
#define RDDP_API_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

/* Is all of the memory mapped, and can its first and last page be read, or written if `access` allows writing? Volatile
 * memory need only be mapped, because it may lie behind the current end of a file. */
bool memory_allows(const void *addr, size_t length, unsigned access);

#endif
