/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* buf.c - memory that a program leaves to the device to choose, as rdma-core 65 has it: any will do here. */
#include "verbs/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct verbs_buf {
    struct ibv_pd *pd;
    uint8_t *memory;
    size_t octets;
};

void *verbs_alloc_buf(struct ibv_pd *pd, size_t octets, struct verbs_buf **out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct verbs_buf *buf = octets && octets <= PTRDIFF_MAX ? malloc(sizeof(*buf)) : NULL;

    if (!buf) {
        errno = octets ? ENOMEM : EINVAL;
        return NULL;
    }
    *buf = (struct verbs_buf){
        .pd = pd, .memory = aligned_alloc(page, (octets + page - 1) / page * page), .octets = octets};
    if (!buf->memory) {
        free(buf);
        errno = ENOMEM;
        return NULL;
    }
    *out = buf;
    return buf->memory;
}

void verbs_free_buf(struct verbs_buf *buf)
{
    free(buf->memory);
    free(buf);
}

struct ibv_mr *verbs_reg_buf_mr(struct ibv_pd *pd, struct verbs_buf *buf, void *addr, size_t length, int access)
{
    uintptr_t offset = (uintptr_t)addr - (uintptr_t)buf->memory;

    if (pd != buf->pd || offset > buf->octets || length > buf->octets - offset) {
        errno = EINVAL;
        return NULL;
    }
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

int verbs_export_buf(struct verbs_buf *buf)
{
    (void)buf;
    errno = ENODATA;
    return -1;
}
