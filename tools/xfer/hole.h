/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hole.h - finds holes, the parts of a file that take no space and read as zeros. */
#ifndef TOOLS_XFER_HOLE_H
#define TOOLS_XFER_HOLE_H

#include <stdint.h>

/* Returns the length of the hole at `offset`, which is below `size`. Returns 0 if there are data, and sets *data_end to
 * an offset before which there is no hole. A file system without support for holes has none. */
uint64_t hole_at(int fd, uint64_t offset, uint64_t size, uint64_t *data_end);

#endif
