/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/wr.h - the vocabulary of work requests and completions: types only, in the words and with the numbers of verbs.
 */
#ifndef RDDP_WR_H
#define RDDP_WR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One piece of local memory. `length` octets at `addr`, inside the region whose local key is `lkey`. */
struct rddp_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* What a region allows. Local read is always allowed. Numbers are those of enum ibv_access_flags; RDDP_ACCESS_STABLE
 * and _VOLATILE are not in verbs. */
enum rddp_access {
    RDDP_ACCESS_LOCAL_WRITE = 1 << 0,
    RDDP_ACCESS_REMOTE_WRITE = 1 << 1, /* wants LOCAL_WRITE too */
    RDDP_ACCESS_REMOTE_READ = 1 << 2,
    RDDP_ACCESS_REMOTE_ATOMIC = 1 << 3, /* wants LOCAL_WRITE too */
    /* A promise: while a peer may read it, nobody writes it. Then even large answers to RDMA Reads leave from where
     * they lie, with a CRC too; one that is broken ends the connection, for the CRC is wrong. Without the promise they
     * are copied first. */
    RDDP_ACCESS_STABLE = 1 << 12,
    /* A warning: others may write it, or cut it short, while requests of its owner send from it (a mapped file). What
     * leaves under a CRC is copied first. Where such memory has gone, it is this process that touches it. */
    RDDP_ACCESS_VOLATILE = 1 << 13,
    RDDP_ACCESS_ZERO_BASED = 1 << 5, /* offsets count from 0 at the region's first octet instead of being addresses */
};

/* Numbers are those of enum ibv_wr_opcode. */
enum rddp_wr_opcode {
    RDDP_WR_RDMA_WRITE = 0,
    RDDP_WR_RDMA_WRITE_WITH_IMM = 1, /* RDDP_WIRE_IWARP: completes a receive of the peer when the Write is placed. The
                                      * peer has to know RFC 7306; one that does not ends the connection */
    RDDP_WR_SEND = 2,
    RDDP_WR_SEND_WITH_IMM = 3, /* the same, but of no octets: RFC 7306 has no message with both */
    RDDP_WR_RDMA_READ = 4,
    /* RDDP_WIRE_IWARP: on eight octets of the peer, at an address that is a multiple of 8. Its sges have eight octets
     * too, for what was there before: a number of this machine, as what is compared, swapped or added is. The peer has
     * to know RFC 7306. Atomic among each other, through whichever queue pair, and with what the peer's processors do
     * atomically. They count as RDMA Reads (max_rd_atomic, RDDP_SEND_FENCE). */
    RDDP_WR_ATOMIC_CMP_AND_SWP = 5,   /* becomes `swap` if it is `compare_add` */
    RDDP_WR_ATOMIC_FETCH_AND_ADD = 6, /* becomes itself and `compare_add` */
    RDDP_WR_LOCAL_INV = 7,            /* invalidate_rkey stops being valid here */
    RDDP_WR_SEND_WITH_INV = 9,        /* ... and there, when the Send is delivered */
};

/* Numbers are those of enum ibv_send_flags; RDDP_SEND_ORDER and RDDP_SEND_MASKED are not in verbs. */
enum rddp_send_flags {
    RDDP_SEND_FENCE = 1 << 0,     /* starts after every earlier RDMA Read of this queue is complete */
    RDDP_SEND_SIGNALED = 1 << 1,  /* completes into the CQ; without it only an error does */
    RDDP_SEND_SOLICITED = 1 << 2, /* wakes a peer that armed its CQ for solicited completions only */
    RDDP_SEND_INLINE = 1 << 3,    /* the data is copied while posting: the lkeys are not used */
    RDDP_SEND_ORDER = 1 << 8,     /* `order` counts. RDDP_WIRE_RDMATCP only */
    RDDP_SEND_MASKED = 1 << 9,    /* of an atomic: `compare_add_mask` and `swap_mask` count */
};

/* For `order`: the peer need not wait for any request before this one. */
#define RDDP_ORDER_ANY UINT32_MAX

/* A request to a send queue. The list and what it points to are the caller's again when the post returns;
 * the memory the sges name stays the library's until the completion. */
struct rddp_send_wr {
    uint64_t wr_id;
    struct rddp_send_wr *next;
    struct rddp_sge *sg_list;
    int num_sge;
    enum rddp_wr_opcode opcode;
    unsigned send_flags;  /* enum rddp_send_flags */
    uint64_t remote_addr; /* RDMA Write and Read, atomics */
    uint32_t rkey;
    uint32_t invalidate_rkey;   /* LOCAL_INV and SEND_WITH_INV */
    uint32_t imm_data;          /* *_WITH_IMM: in network byte order */
    uint64_t compare_add, swap; /* atomics */
    /* With RDDP_SEND_MASKED. Of CMP_AND_SWP: the bits that are compared, and those that are swapped; so no bit compared
     * is a plain swap. Of FETCH_AND_ADD: compare_add_mask has the highest bit of each field that is added for itself.
     */
    uint64_t compare_add_mask, swap_mask;
    /* RDDP_WIRE_RDMATCP only, see doc/segments.md. */
    uint32_t order; /* with RDDP_SEND_ORDER: the peer waits for all but so many of the requests before this one;
                     * 0xfffe is meant where it is more. Without: 0, but RDDP_ORDER_ANY for a Write. */
    uint16_t control_length; /* a multiple of 4, at most 1020 */
    const void *control;     /* octets beside the data, yours again at the completion; never placed in a region */
    void *response_control;  /* RDMA Read: where control data of the response go: memory of yours, in no region; NULL:
                              * nowhere */
    uint32_t response_room;
};

struct rddp_recv_wr {
    uint64_t wr_id;
    struct rddp_recv_wr *next;
    struct rddp_sge *sg_list;
    int num_sge;
    void *control; /* where the message's control data go: memory of yours, in no region; NULL: nowhere */
    uint32_t control_room;
};

/* Numbers are those of enum ibv_wc_status. */
enum rddp_wc_status {
    RDDP_WC_SUCCESS = 0,
    RDDP_WC_LOC_LEN_ERR = 1,
    RDDP_WC_LOC_QP_OP_ERR = 2,
    RDDP_WC_LOC_PROT_ERR = 4,
    RDDP_WC_WR_FLUSH_ERR = 5,
    RDDP_WC_REM_INV_REQ_ERR = 9,
    RDDP_WC_REM_ACCESS_ERR = 10,
    RDDP_WC_REM_OP_ERR = 11,
    RDDP_WC_FATAL_ERR = 19,
    RDDP_WC_GENERAL_ERR = 21,
};

/* Numbers are those of enum ibv_wc_opcode; RDDP_WC_RECV_RDMA_READ is not in verbs. Of a receive, and only of one,
 * opcode & RDDP_WC_RECV is not 0. */
enum rddp_wc_opcode {
    RDDP_WC_SEND = 0,
    RDDP_WC_RDMA_WRITE = 1,
    RDDP_WC_RDMA_READ = 2,
    RDDP_WC_COMP_SWAP = 3,
    RDDP_WC_FETCH_ADD = 4,
    RDDP_WC_LOCAL_INV = 6,
    RDDP_WC_RECV = 128,
    /* Of a receive: the peer's RDMA Write came with immediate data (RDDP_WC_WITH_IMM) or, with
     * rddp_qp_attr.rdma_control, its Write or Read with control data. */
    RDDP_WC_RECV_RDMA_WITH_IMM = 129,
    RDDP_WC_RECV_RDMA_READ = 144,
};

/* Numbers are those of enum ibv_wc_flags. */
enum rddp_wc_flags {
    RDDP_WC_WITH_IMM = 1 << 1, /* imm_data came, in network byte order */
    RDDP_WC_WITH_INV = 1 << 3, /* invalidated_rkey names the region the peer's Send invalidated */
};

/* A completion. In an unsuccessful one only wr_id, status, vendor_err and qp_num mean anything. */
struct rddp_wc {
    uint64_t wr_id;
    enum rddp_wc_status status;
    enum rddp_wc_opcode opcode;
    uint32_t vendor_err; /* the fault behind the status: enum fault, rddp_fault_str() names it */
    uint32_t byte_len;   /* of a receive, an RDMA Read, or an atomic (8); what the peer's Write has placed, or its Read
                          * has read, in a   region (0 where that is not known) */
    uint32_t qp_num;
    uint32_t invalidated_rkey;
    uint32_t imm_data;
    unsigned wc_flags;       /* enum rddp_wc_flags */
    uint32_t control_length; /* of a receive or an RDMA Read: octets of control data that came, even where they had less
                              * room */
};

#ifdef __cplusplus
}
#endif
#endif
