/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mirror.c - a ring that is mapped twice, one behind the other: what wraps around is in one piece all the same. */
#include "api/mirror.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/* Over the room that was reserved. */
static bool map_half(uint8_t *at, size_t octets, int fd)
{
    void *half = mmap(at, octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);

    return half != MAP_FAILED;
}

uint8_t *mirror_map(size_t octets)
{
    uint8_t *ring = NULL;
    int fd = memfd_create("rddp", MFD_CLOEXEC);
    void *buffer;

    if (fd < 0)
        return NULL;
    buffer = mmap(NULL, 2 * octets, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffer != MAP_FAILED) {
        if (!ftruncate(fd, (off_t)octets) && map_half(buffer, octets, fd) &&
            map_half((uint8_t *)buffer + octets, octets, fd))
            ring = buffer;
        else
            munmap(buffer, 2 * octets);
    }
    close(fd);
    return ring;
}

void mirror_unmap(uint8_t *ring, size_t octets)
{
    if (ring)
        munmap(ring, 2 * octets);
}
