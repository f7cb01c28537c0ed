/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.c - asks the kernel whether memory is mapped, readable and writable, in a few microseconds for any length. */
#include "api/mapped.h"

#include <errno.h>
#include <linux/futex.h>
#include <rddp/rddp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* msync(MS_ASYNC) writes nothing; it only walks over the mappings and reports holes. */
static bool is_mapped(uintptr_t at, size_t length)
{
    uintptr_t from = at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

    return !msync((void *)from, length + (at - from), MS_ASYNC);
}

/* A futex operation that ORs with 0 needs the right to write and changes no octet, even while others write there. */
static bool is_writable(uintptr_t at)
{
    uint32_t own = 0;
    int op = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);

    return syscall(SYS_futex, &own, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, at & ~(uintptr_t)3, op) >= 0 ||
           errno != EFAULT;
}

/* A futex operation that compares a word, finds no thread to wake, and moves none. */
static bool mapped_is_readable(uintptr_t at)
{
    uint32_t own = 0;

    return syscall(SYS_futex, at & ~(uintptr_t)3, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, NULL, &own, 0) >= 0 ||
           errno != EFAULT;
}

bool memory_allows(const void *addr, size_t length, unsigned access)
{
    uintptr_t first = (uintptr_t)addr, last = first + length - 1;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    bool (*is_good)(uintptr_t at) = access & RDDP_ACCESS_LOCAL_WRITE ? is_writable : mapped_is_readable;

    if (!length)
        return true;
    if (access & RDDP_ACCESS_VOLATILE)
        return is_mapped(first, length);
    /* One or two pages are checked below; that saves this call. */
    if (last / page - first / page > 1 && !is_mapped(first, length))
        return false;
    return is_good(first) && (first / page == last / page || is_good(last));
}
