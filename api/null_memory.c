/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* null_memory.c - 4 GiB of zeroes, and 4 GiB of memory that is written and never read. */
#include "api/null_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/mr.h"

/* The sink shows the same pages again and again. */
enum { SINK_PAGES_OCTETS = 1 << 24 };

static pthread_mutex_t null_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next two, which are made once */
static uint8_t *null_zeroes, *null_sink;

/* In a core file the sink would be its pages again and again. */
static void leave_out_of_cores(uint8_t *at)
{
    if (at)
        madvise(at, MR_NULL_OCTETS, MADV_DONTDUMP);
}

static uint8_t *null_map(int protection)
{
    void *at = mmap(NULL, MR_NULL_OCTETS, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

static bool fold(uint8_t *sink, int fd)
{
    const void *at = sink;

    if (ftruncate(fd, SINK_PAGES_OCTETS))
        return false;
    for (uint64_t i = 0; i < MR_NULL_OCTETS && at != MAP_FAILED; i += SINK_PAGES_OCTETS)
        at = mmap(sink + i, SINK_PAGES_OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    return at != MAP_FAILED;
}

static uint8_t *sink_map(void)
{
    int fd = memfd_create("rddp-null", MFD_CLOEXEC);
    uint8_t *sink = fd < 0 ? NULL : null_map(PROT_NONE);

    if (sink && !fold(sink, fd)) {
        munmap(sink, MR_NULL_OCTETS);
        sink = NULL;
    }
    if (fd >= 0)
        close(fd);
    leave_out_of_cores(sink);
    return sink;
}

int null_memory(uint8_t **zeroes, uint8_t **sink)
{
    bool made;

    pthread_mutex_lock(&null_lock);
    if (!null_zeroes)
        null_zeroes = null_map(PROT_READ);
    if (!null_sink)
        null_sink = sink_map();
    made = null_zeroes && null_sink;
    *zeroes = null_zeroes;
    *sink = null_sink;
    pthread_mutex_unlock(&null_lock);
    return made ? 0 : -ENOMEM;
}
