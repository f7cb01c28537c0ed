/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hole.c - finds holes with SEEK_DATA and SEEK_HOLE. */
#include <errno.h>
#include <unistd.h>

#include "tools/xfer/hole.h"

uint64_t hole_at(int fd, uint64_t offset, uint64_t size, uint64_t *data_end)
{
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        return size - offset;
    if (data > 0 && (uint64_t)data > offset)
        return ((uint64_t)data < size ? (uint64_t)data : size) - offset;
    off_t end = data < 0 ? -1 : lseek(fd, (off_t)offset, SEEK_HOLE);
    *data_end = end > data && (uint64_t)end < size ? (uint64_t)end : size;
    return 0;
}
