/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/wr.h - work requests and completions: types only, in the words and with the numbers of verbs. */
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

/* What a region allows. Local read is always allowed. Numbers are those of enum ibv_access_flags; RDDP_ACCESS_STABLE,
 * _VOLATILE and _ONE_SHOT are not in verbs. */
enum rddp_access {
    RDDP_ACCESS_LOCAL_WRITE = 1 << 0,
    RDDP_ACCESS_REMOTE_WRITE = 1 << 1, /* wants LOCAL_WRITE too */
    RDDP_ACCESS_REMOTE_READ = 1 << 2,
    RDDP_ACCESS_REMOTE_ATOMIC = 1 << 3, /* wants LOCAL_WRITE too */
    /* A promise: nobody writes octets of the region while a request sends them or a peer may read them. Large messages
     * and answers to RDMA Reads are then sent without a copy, even with a CRC. A broken promise makes the CRC wrong and
     * ends the connection. Without the promise data that leave under a CRC are copied first; the memory may change at
     * any time, and it is undefined which of its octets leave. */
    RDDP_ACCESS_STABLE = 1 << 12,
    /* A warning: others may truncate the region while requests of its owner send from it (a mapped file). If the memory
     * has gone, this process gets the SIGBUS. */
    RDDP_ACCESS_VOLATILE = 1 << 13,
    /* Only for a part of a region (rddp_reg_sub_mr()): the sink of one RDMA Read or atomic of its owner. It is invalid
     * when that has completed, successfully or not. */
    RDDP_ACCESS_ONE_SHOT = 1 << 14,
    RDDP_ACCESS_ZERO_BASED = 1 << 5, /* remote addresses count from 0 at the region's first octet */
};

/* Numbers are those of enum ibv_wr_opcode. */
enum rddp_wr_opcode {
    RDDP_WR_RDMA_WRITE = 0,
    RDDP_WR_RDMA_WRITE_WITH_IMM = 1, /* RDDP_WIRE_IWARP: completes a receive of the peer when the Write is placed. The
                                      * peer has to know RFC 7306; one that does not ends the connection */
    RDDP_WR_SEND = 2,
    RDDP_WR_SEND_WITH_IMM = 3, /* the same without data: RFC 7306 has no message with both */
    RDDP_WR_RDMA_READ = 4,
    /* RDDP_WIRE_IWARP: on eight octets of the peer, at an address that is a multiple of 8. The one sge, of eight
     * octets, gets the old value. All values are numbers of this machine. The peer must know RFC 7306. Atomic among
     * each other, through whichever queue pair, and with atomic operations of the peer's processors. They count as RDMA
     * Reads (max_rd_atomic, RDDP_SEND_FENCE). */
    RDDP_WR_ATOMIC_CMP_AND_SWP = 5,   /* becomes `swap` if it is `compare_add` */
    RDDP_WR_ATOMIC_FETCH_AND_ADD = 6, /* becomes itself and `compare_add` */
    RDDP_WR_LOCAL_INV = 7,            /* invalidates our key invalidate_rkey */
    RDDP_WR_SEND_WITH_INV = 9,        /* invalidates the peer's key invalidate_rkey when the Send is delivered */
};

/* Numbers are those of enum ibv_send_flags; RDDP_SEND_ORDER and RDDP_SEND_MASKED are not in verbs. */
enum rddp_send_flags {
    RDDP_SEND_FENCE = 1 << 0,     /* starts after every earlier RDMA Read of this queue is complete */
    RDDP_SEND_SIGNALED = 1 << 1,  /* success makes a completion; without it only an error does */
    RDDP_SEND_SOLICITED = 1 << 2, /* wakes a peer that armed its CQ for solicited completions only */
    RDDP_SEND_INLINE = 1 << 3,    /* the data is copied while posting: the lkeys are not used */
    RDDP_SEND_ORDER = 1 << 8,     /* `order` is valid. RDDP_WIRE_RDMATCP only */
    RDDP_SEND_MASKED = 1 << 9,    /* of an atomic: `compare_add_mask` and `swap_mask` are valid */
};

/* For `order`: the peer may process this request before all earlier ones. */
#define RDDP_ORDER_ANY UINT32_MAX

/* A request to a send queue. When the post returns, the list and what it points to are the caller's again; the memory
 * that the sges name stays in use until the completion. */
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
    /* With RDDP_SEND_MASKED. CMP_AND_SWP: the bits to compare and the bits to swap; comparing no bit is a plain swap.
     * FETCH_AND_ADD: compare_add_mask has the highest bit of each field that is added separately. */
    uint64_t compare_add_mask, swap_mask;
    /* RDDP_WIRE_RDMATCP only, see doc/segments.md. */
    uint32_t order; /* with RDDP_SEND_ORDER: the peer may process this request before up to `order` of the requests just
                     * before it; at most 0xfffe is sent. Without the flag: 0, but RDDP_ORDER_ANY for a Write. */
    uint16_t control_length; /* a multiple of 4, at most 1020 */
    const void *control;     /* octets beside the data, in use until the completion; never placed in a region */
    void *response_control;  /* RDMA Read: memory for control data of the response, in no region; NULL drops them */
    uint32_t response_room;
};

struct rddp_recv_wr {
    uint64_t wr_id;
    struct rddp_recv_wr *next;
    struct rddp_sge *sg_list;
    int num_sge;
    void *control; /* memory for the message's control data, in no region; NULL drops them */
    uint32_t control_room;
};

/* Numbers are those of enum ibv_wc_status. Those of the peer's come if its Terminate or abort says what it is about and
 * the request has not completed before; a connection over TCP retries nothing, so what verbs says of retries never
 * comes. */
enum rddp_wc_status {
    RDDP_WC_SUCCESS = 0,
    RDDP_WC_LOC_LEN_ERR = 1,     /* a receive: the message is longer */
    RDDP_WC_LOC_QP_OP_ERR = 2,   /* a request that this connection cannot carry: a Read where the peer allows none */
    RDDP_WC_LOC_PROT_ERR = 4,    /* an lkey or its bounds, or what LOCAL_INV names; or a one-shot sink used twice */
    RDDP_WC_WR_FLUSH_ERR = 5,    /* not done: the connection has ended, or an earlier request has failed */
    RDDP_WC_REM_INV_REQ_ERR = 9, /* the peer says: no such operation, or longer than its receive */
    RDDP_WC_REM_ACCESS_ERR = 10, /* the peer says: an rkey, its rights or its bounds */
    RDDP_WC_REM_OP_ERR = 11,     /* the peer says something else; also that it has no receive posted */
    RDDP_WC_FATAL_ERR = 19,      /* never: here for programs that name them */
    RDDP_WC_GENERAL_ERR = 21,    /* never */
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

/* A completion. If status is not RDDP_WC_SUCCESS only wr_id, status, vendor_err and qp_num are valid. */
struct rddp_wc {
    uint64_t wr_id;
    enum rddp_wc_status status;
    enum rddp_wc_opcode opcode;
    uint32_t vendor_err; /* the fault behind the status, for rddp_fault_str() */
    uint32_t byte_len;   /* octets of a receive, an RDMA Read, or an atomic (8). Of a receive that the peer's Write or
                          * Read has taken: what it placed or read in a region, or 0 if that is not known */
    uint32_t qp_num;
    uint32_t invalidated_rkey;
    uint32_t imm_data;
    unsigned wc_flags; /* enum rddp_wc_flags */
    uint32_t
        control_length; /* of a receive or an RDMA Read: octets of control data that came, even if fewer were kept */
};

#ifdef __cplusplus
}
#endif
#endif
