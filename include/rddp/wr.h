/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/wr.h - work requests and completions: types only, with the names and values of verbs. */
#ifndef RDDP_WR_H
#define RDDP_WR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One piece of local memory: `length` octets at `addr`, inside the region whose local key is `lkey`. */
struct rddp_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* Access rights of a region. Local read is always allowed. Values are those of enum ibv_access_flags;
 * RDDP_ACCESS_STABLE, _VOLATILE and _ONE_SHOT do not exist in verbs. */
enum rddp_access {
    RDDP_ACCESS_LOCAL_WRITE = 1 << 0,
    RDDP_ACCESS_REMOTE_WRITE = 1 << 1, /* requires LOCAL_WRITE */
    RDDP_ACCESS_REMOTE_READ = 1 << 2,
    RDDP_ACCESS_REMOTE_ATOMIC = 1 << 3, /* requires LOCAL_WRITE */
    RDDP_ACCESS_MW_BIND = 1 << 4,       /* memory windows may be bound to the region: rddp_alloc_mw() */
    /* The memory is not looked at before it is used, and may come and go, or change its protection: the kernel copies
     * each piece of a message there or from there. Where there is no memory then, or none that allows it, the request
     * or the receive ends with RDDP_WC_LOC_PROT_ERR, and the peer's request with RDDP_WC_REM_ACCESS_ERR; no signal
     * comes. Atomics of peers are refused, whatever the rights. See rddp_advise_mr(). */
    RDDP_ACCESS_ON_DEMAND = 1 << 6,
    /* A promise: the region is not written while a request sends from it or a peer may read it. Large messages and
     * responses to RDMA Reads are then sent without a copy, even with a CRC. A broken promise makes the CRC wrong and
     * ends the connection. Without the promise, data sent under a CRC are copied first; the memory may change at any
     * time, and it is undefined which octets are sent. */
    RDDP_ACCESS_STABLE = 1 << 12,
    /* A warning: others may truncate the region (a mapped file) while requests of its owner send from it. If the memory
     * is gone, this process receives the SIGBUS. */
    RDDP_ACCESS_VOLATILE = 1 << 13,
    /* Only for a part of a region (rddp_reg_sub_mr()): the sink of one RDMA Read or atomic of its owner. It becomes
     * invalid when that completes, successfully or not. */
    RDDP_ACCESS_ONE_SHOT = 1 << 14,
    /* Addresses in the region count from 0 at its first octet: those that a peer names, and rddp_sge.addr here, too. */
    RDDP_ACCESS_ZERO_BASED = 1 << 5,
};

/* Values are those of enum ibv_wr_opcode. */
enum rddp_wr_opcode {
    RDDP_WR_RDMA_WRITE = 0,
    /* Not RDDP_WIRE_RDMATCP: completes a receive of the peer when the Write is placed. The peer must know RFC 7306; one
     * that does not ends the connection. */
    RDDP_WR_RDMA_WRITE_WITH_IMM = 1,
    RDDP_WR_SEND = 2,
    RDDP_WR_SEND_WITH_IMM = 3, /* immediate data alone: RFC 7306 has no message with both */
    RDDP_WR_RDMA_READ = 4,
    /* Not RDDP_WIRE_RDMATCP: on eight octets of the peer, at an address that is a multiple of 8. The one sge, of eight
     * octets, receives the old value. All values are in this machine's byte order. The peer must know RFC 7306. Atomic
     * with respect to each other, through any queue pair, and to atomic operations of the peer's processors. They count
     * as RDMA Reads (max_rd_atomic, RDDP_SEND_FENCE). */
    RDDP_WR_ATOMIC_CMP_AND_SWP = 5,   /* stores `swap` if the value equals `compare_add` */
    RDDP_WR_ATOMIC_FETCH_AND_ADD = 6, /* adds `compare_add` to the value */
    RDDP_WR_LOCAL_INV = 7,            /* invalidates the local region or window with key invalidate_rkey */
    RDDP_WR_BIND_MW = 8,              /* binds the window with key rkey: see struct rddp_mw_bind */
    RDDP_WR_SEND_WITH_INV = 9,        /* invalidates the peer's key invalidate_rkey when the Send is delivered */
};

/* Values are those of enum ibv_send_flags; RDDP_SEND_ORDER and RDDP_SEND_MASKED do not exist in verbs. */
enum rddp_send_flags {
    RDDP_SEND_FENCE = 1 << 0,     /* starts when every earlier RDMA Read of this queue is complete */
    RDDP_SEND_SIGNALED = 1 << 1,  /* success generates a completion; without the flag only an error does */
    RDDP_SEND_SOLICITED = 1 << 2, /* wakes a peer that armed its CQ for solicited completions only */
    RDDP_SEND_INLINE = 1 << 3,    /* the data are copied by the post: the lkeys are not used */
    RDDP_SEND_ORDER = 1 << 8,     /* `order` is valid. RDDP_WIRE_RDMATCP only */
    RDDP_SEND_MASKED = 1 << 9,    /* atomics: `compare_add_mask` and `swap_mask` are valid */
};

/* A value of `order`: the peer may process this request before all earlier ones. */
#define RDDP_ORDER_ANY UINT32_MAX

/* What RDDP_WR_BIND_MW binds a memory window to: `length` octets at `addr` (as an sge names them) of the region with
 * local key `lkey`, which has RDDP_ACCESS_MW_BIND. The rkey of the request is the window's key from then on: it has the
 * upper 24 bits of the key that the window has now, and the lowest 8 bits are to differ. `access` is what peers may do:
 * RDDP_ACCESS_REMOTE_READ, _WRITE and _ATOMIC, and for windows of type 2 also RDDP_ACCESS_ZERO_BASED. To write, the
 * region needs RDDP_ACCESS_LOCAL_WRITE, but no remote right of its own; atomics to memory on demand are refused.
 * Requests behind it find the window bound. */
struct rddp_mw_bind {
    uint64_t addr, length;
    uint32_t lkey;
    unsigned access;
};

struct rddp_ah;

/* A request to a send queue. When the post returns, the list and the sges belong to the caller again; the memory that
 * the sges name stays in use until the completion. */
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
    uint32_t imm_data;          /* *_WITH_IMM, in network byte order */
    uint64_t compare_add, swap; /* atomics */
    /* With RDDP_SEND_MASKED. CMP_AND_SWP: the bits to compare and the bits to swap; a mask of 0 compares nothing.
     * FETCH_AND_ADD: compare_add_mask holds the highest bit of each field that is added separately. */
    uint64_t compare_add_mask, swap_mask;
    /* Of a queue pair of type RDDP_QPT_UD: its destination. The address handle may be destroyed when the post has
     * returned. If the highest bit of remote_qkey is set, the Q_Key of the queue pair itself is sent. */
    const struct rddp_ah *ah;
    const struct rddp_mw_bind *bind; /* BIND_MW; the caller's again when the post returns */
    uint32_t remote_qpn, remote_qkey;
    /* The rest for RDDP_WIRE_RDMATCP only, see doc/segments.md. */
    /* With RDDP_SEND_ORDER: the peer may process this request before up to `order` of the requests just before it;
     * at most 0xfffe is sent. Without the flag the order is 0, and RDDP_ORDER_ANY for a Write. */
    uint32_t order;
    uint16_t control_length; /* a multiple of 4, at most 1020 */
    const void *control;     /* octets sent beside the data and never placed in a region; in use until the completion */
    /* RDMA Read: memory, in no region, for control data of the response; NULL: they are dropped. */
    void *response_control;
    uint32_t response_size; /* octets at response_control */
};

struct rddp_recv_wr {
    uint64_t wr_id;
    struct rddp_recv_wr *next;
    struct rddp_sge *sg_list;
    int num_sge;
    void *control;         /* memory, in no region, for the message's control data; NULL: they are dropped */
    uint32_t control_size; /* octets at control */
};

/* Values are those of enum ibv_wc_status. The REM_* values are reported if the peer's Terminate or abort names the
 * cause and the request has not completed before. TCP and SCTP retransmit by themselves, so the retry errors of verbs
 * never come. */
enum rddp_wc_status {
    RDDP_WC_SUCCESS = 0,
    RDDP_WC_LOC_LEN_ERR = 1,     /* a receive: the message is longer than it */
    RDDP_WC_LOC_QP_OP_ERR = 2,   /* the connection cannot carry this request: a Read where the peer allows none */
    RDDP_WC_LOC_PROT_ERR = 4,    /* a wrong lkey or bounds, a wrong key in LOCAL_INV, or a one-shot sink used twice */
    RDDP_WC_WR_FLUSH_ERR = 5,    /* not done: the connection ended, or an earlier request failed */
    RDDP_WC_MW_BIND_ERR = 6,     /* the window, or what it was to be bound to, does not allow that */
    RDDP_WC_BAD_RESP_ERR = 7,    /* RoCE: the peer's response does not fit the request */
    RDDP_WC_REM_INV_REQ_ERR = 9, /* the peer reports an unknown operation, or a message longer than its receive */
    RDDP_WC_REM_ACCESS_ERR = 10, /* the peer reports a wrong rkey, right or bound */
    RDDP_WC_REM_OP_ERR = 11,     /* the peer reports another error, such as that no receive is posted */
    RDDP_WC_RETRY_EXC_ERR = 12,  /* RoCE: no acknowledgement came, after all retries */
    RDDP_WC_RNR_RETRY_EXC_ERR = 13, /* RoCE: the peer posted no receive, after all retries */
    RDDP_WC_FATAL_ERR = 19,         /* never returned: defined for programs that name it */
    RDDP_WC_GENERAL_ERR = 21,       /* never returned */
};

/* Values are those of enum ibv_wc_opcode; RDDP_WC_RECV_RDMA_READ does not exist in verbs. The bit RDDP_WC_RECV is set
 * in completions of receives only. */
enum rddp_wc_opcode {
    RDDP_WC_SEND = 0,
    RDDP_WC_RDMA_WRITE = 1,
    RDDP_WC_RDMA_READ = 2,
    RDDP_WC_COMP_SWAP = 3,
    RDDP_WC_FETCH_ADD = 4,
    RDDP_WC_BIND_MW = 5,
    RDDP_WC_LOCAL_INV = 6,
    RDDP_WC_RECV = 128,
    /* Of a receive: the peer's RDMA Write brought immediate data (RDDP_WC_WITH_IMM); or, with
     * rddp_qp_attr.rdma_control, the peer's Write or Read brought control data. */
    RDDP_WC_RECV_RDMA_WITH_IMM = 129,
    RDDP_WC_RECV_RDMA_READ = 144,
};

/* Values are those of enum ibv_wc_flags, but the last, which verbs has not. */
enum rddp_wc_flags {
    RDDP_WC_GRH = 1 << 0,      /* the receive begins with RDDP_GRH_OCTETS that say where the message came from */
    RDDP_WC_WITH_IMM = 1 << 1, /* imm_data is valid, in network byte order */
    RDDP_WC_WITH_INV = 1 << 3, /* invalidated_rkey names the region that the peer's Send invalidated */
    RDDP_WC_IPV4 = 1 << 8,     /* with RDDP_WC_GRH: they are a header of IPv4 behind 20 octets of zeros */
};

/* A completion. Unless status is RDDP_WC_SUCCESS only wr_id, status, vendor_err and qp_num are valid. */
struct rddp_wc {
    uint64_t wr_id;
    enum rddp_wc_status status;
    enum rddp_wc_opcode opcode;
    uint32_t vendor_err; /* the enum fault behind the status, for rddp_fault_str() */
    /* Octets of a receive, an RDMA Read or an atomic (8). If the peer's Write or Read took the receive: the octets
     * it placed or read in a region, or 0 if that is not known. */
    uint32_t byte_len;
    uint32_t qp_num;
    uint32_t src_qp; /* the queue pair that sent the message: with RDDP_WC_GRH */
    uint32_t invalidated_rkey;
    uint32_t imm_data;
    unsigned wc_flags; /* enum rddp_wc_flags */
    /* Octets of control data that came with a receive or an RDMA Read, even if fewer were kept. */
    uint32_t control_length;
    uint64_t timestamp_ns; /* when the completion was made, by CLOCK_MONOTONIC; 0 without rddp_stamp_cq() */
};

#ifdef __cplusplus
}
#endif
#endif
