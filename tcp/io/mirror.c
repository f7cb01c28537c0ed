/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mirror.c - a ring that is mapped twice in a row, so that every range of it is contiguous. */
#include "tcp/io/mirror.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps the ring over a half of the reserved range. */
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
