/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hole.h - parts of a file that take no space: found, and hashed as the zeros that they read as. */
#ifndef TOOLS_XFER_HOLE_H
#define TOOLS_XFER_HOLE_H

#include <stdint.h>
#include <xxhash.h>

/* Returns the octets of the hole at `offset`, which is below `size`; 0: there are data, and
 * *data_end is set to where they end at the earliest. A file
 * system that knows nothing of holes has none. */
uint64_t hole_at(int fd, uint64_t offset, uint64_t size, uint64_t *data_end);

void hole_hash(XXH3_state_t *digest, uint64_t n);

#endif
