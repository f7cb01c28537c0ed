/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* on_demand.c - copies by process_vm_readv() and process_vm_writev() to and from this very process: the kernel holds
 * each page while it copies it, and returns EFAULT where there is none. */
#include "api/on_demand.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static bool fetch(uint8_t *to, const uint8_t *from, uint32_t octets)
{
    const struct iovec own = {to, octets}, memory = {(void *)(uintptr_t)from, octets};

    return process_vm_readv(getpid(), &own, 1, &memory, 1, 0) == octets;
}

/* The pieces are copied one after the other, so that a program that waits for the last octet of a message to change
 * finds all others: see base/once.h. */
static bool store(uint8_t *to, const uint8_t *from, uint32_t octets)
{
    const uint32_t front = octets - 1;
    const struct iovec own[] = {{(void *)(uintptr_t)from, front}, {(void *)(uintptr_t)(from + front), 1}};
    const struct iovec memory[] = {{to, front}, {(uint8_t *)((uintptr_t)to + front), 1}};
    const unsigned first = !front;

    return process_vm_writev(getpid(), own + first, 2 - first, memory + first, 2 - first, 0) == octets;
}

const struct mr_copier on_demand_copier = {fetch, store};

bool on_demand_works(void)
{
    uint8_t here = 1, there = 0;

    return store(&there, &here, 1) && there && fetch(&there, &here, 1);
}

#ifdef MADV_POPULATE_WRITE
/* EINVAL means that the kernel does not know the advice, or that the memory does not allow it. */
static bool is_known(int advice)
{
    return !madvise(NULL, 0, advice);
}

int on_demand_populate(void *addr, size_t length, bool write)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr & ~(page - 1);
    int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

    if (!length || !is_known(advice))
        return 0;
    return madvise((void *)from, length + ((uintptr_t)addr - from), advice) ? -EFAULT : 0;
}
#else
int on_demand_populate(void *addr, size_t length, bool write)
{
    (void)addr, (void)length, (void)write;
    return 0;
}
#endif
