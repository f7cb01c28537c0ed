/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.c - asks the kernel whether memory is mapped and writable, in a microsecond or two for any length. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endpoint/objects.h"

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

bool memory_allows(const void *addr, size_t length, unsigned access)
{
    uintptr_t first = (uintptr_t)addr, last = first + length - 1;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    bool is_written = access & RDDP_ACCESS_LOCAL_WRITE && !(access & RDDP_ACCESS_VOLATILE);

    if (!length)
        return true;
    /* For one or two pages the checks for writing cover all of them, which saves this call. */
    if ((!is_written || last / page - first / page > 1) && !is_mapped(first, length))
        return false;
    if (!is_written)
        return true;
    return is_writable(first) && (first / page == last / page || is_writable(last));
}
