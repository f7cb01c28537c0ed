/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mirror.h - a ring that is mapped twice in a row, so that every range of it is contiguous. */
#ifndef RDDP_TCP_IO_MIRROR_H
#define RDDP_TCP_IO_MIRROR_H

#include <stddef.h>
#include <stdint.h>

/* Maps a ring of `octets`, a power of two and a multiple of the page size. Pages that are never touched take no memory.
 * The caller owns it. NULL: ENOMEM, or EMFILE, since a descriptor is needed while it is mapped. */
uint8_t *mirror_map(size_t octets);
void mirror_unmap(uint8_t *ring, size_t octets); /* `ring` may be NULL */

#endif
