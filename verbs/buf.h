/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* buf.h - ibv_alloc_buf() and the calls for what it returns, under names that no header of rdma-core declares: that
 * of 44 has them not, that of 65 has them. Their arguments and results are those of their manual pages. */
#ifndef VERBS_BUF_H
#define VERBS_BUF_H

#include <infiniband/verbs.h>
#include <stddef.h>

struct verbs_buf;

/* Memory from the first octet of a page on. Returns NULL with errno EINVAL: none is asked for; ENOMEM. */
void *verbs_alloc_buf(struct ibv_pd *pd, size_t octets, struct verbs_buf **buf) __asm__("ibv_alloc_buf");

/* After its regions. */
void verbs_free_buf(struct verbs_buf *buf) __asm__("ibv_free_buf");

/* As ibv_reg_mr(). Returns NULL with errno EINVAL: not all of it lies in the buffer, or it is of another protection
 * domain. */
struct ibv_mr *verbs_reg_buf_mr(struct ibv_pd *pd, struct verbs_buf *buf, void *addr, size_t length,
                                int access) __asm__("ibv_reg_buf_mr");

/* Returns -1 with errno ENODATA: no DMA-buf is behind the memory of any. */
int verbs_export_buf(struct verbs_buf *buf) __asm__("ibv_export_buf_dmabuf_fd");

#endif
