/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bth.h - the headers of a RoCE version 2 packet: the base transport header (BTH) and the extended headers that its
 * opcode brings. */
#ifndef RDDP_ROCE_BTH_H
#define RDDP_ROCE_BTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    ROCE_PORT = 4791, /* the UDP port that packets are sent to */

    BTH_OCTETS = 12,
    DETH_OCTETS = 8,
    RETH_OCTETS = 16,
    ATOMIC_ETH_OCTETS = 28,
    AETH_OCTETS = 4,
    ATOMIC_ACK_ETH_OCTETS = 8,
    IMMEDIATE_OCTETS = 4, /* immediate data, or the R_Key to invalidate */
    CNP_OCTETS = 16,      /* reserved octets of a congestion notification */
    ICRC_OCTETS = 4,

    BTH_HEAD_MAX = BTH_OCTETS + ATOMIC_ETH_OCTETS, /* the longest BTH with its extended headers */
    BTH_PAD_MAX = 3,

    BTH_OPERATION = 0x1f, /* bits of an opcode; responses and acknowledgements are a range of them */
    BTH_FIRST_ANSWER = 13,
    BTH_LAST_ANSWER = 18,

    BTH_PKEY_DEFAULT = 0xffff,
    BTH_PKEY_PARTITION = 0x7fff, /* the upper bit is not part of the name: a full member */
    BTH_MTU_MIN = 256,           /* path MTU: octets of payload of a packet */
    BTH_MTU_MAX = 4096,
};

/* 24-bit numbers: queue pairs, PSNs and MSNs. */
#define BTH_MASK24 0xffffffu

enum bth_service { BTH_RC, BTH_UC, BTH_UD, BTH_CNP };

enum bth_op {
    BTH_SEND,
    BTH_WRITE,
    BTH_READ_REQUEST,
    BTH_READ_RESPONSE,
    BTH_ACKNOWLEDGE,
    BTH_ATOMIC_ACKNOWLEDGE,
    BTH_CMP_SWAP,
    BTH_FETCH_ADD,
    BTH_NOTIFY, /* the congestion notification */
};

enum bth_flag {
    BTH_FIRST = 1 << 0,      /* First or Only */
    BTH_LAST = 1 << 1,       /* Last or Only */
    BTH_IMMEDIATE = 1 << 2,  /* with immediate data */
    BTH_INVALIDATE = 1 << 3, /* with an R_Key to invalidate */
    /* The flags above belong to the opcode, those below are bits of their own. */
    BTH_SOLICITED = 1 << 4,
    BTH_MIGRATION = 1 << 5, /* the path is migrated: always set when sent */
    BTH_ACK_REQUEST = 1 << 6,
    BTH_FECN = 1 << 7,
    BTH_BECN = 1 << 8,
};

/* What an AETH says. The lower five bits of its first octet are credits, a timer or a reason. */
enum bth_syndrome {
    AETH_ACK = 0x00,
    AETH_RNR_NAK = 0x20,
    AETH_NAK = 0x60,
    AETH_KIND = 0x60, /* the mask of these */
    AETH_VALUE = 0x1f,
    AETH_NO_CREDITS = 0x1f, /* credits are not used */
};

/* The reasons of a NAK. */
enum bth_nak {
    NAK_SEQUENCE = 0,
    NAK_INVALID_REQUEST = 1,
    NAK_REMOTE_ACCESS = 2,
    NAK_REMOTE_OPERATIONAL = 3,
    NAK_REASONS,
};

static inline uint8_t aeth_nak(enum bth_nak reason)
{
    return (uint8_t)(AETH_NAK | (unsigned)reason);
}

/* A packet without its ICRC. `data` is borrowed: it points into the datagram. */
struct bth {
    enum bth_service service;
    enum bth_op op;
    unsigned flags; /* enum bth_flag */
    uint8_t pad;    /* octets behind the payload */
    uint16_t pkey;
    uint32_t qpn; /* destination */
    uint32_t psn;
    /* Extended headers, those that the opcode has. */
    uint32_t q_key, source_qpn;    /* DETH */
    uint64_t address;              /* RETH, AtomicETH */
    uint32_t r_key, dma_length;    /* RETH; AtomicETH has the key alone */
    uint64_t swap_or_add, compare; /* AtomicETH */
    uint8_t syndrome;              /* AETH */
    uint32_t msn;                  /* AETH */
    uint64_t original;             /* AtomicAckETH */
    uint32_t immediate;            /* ImmDt or IETH */
    const uint8_t *data;
    uint32_t length; /* octets of payload, pad not counted */
};

enum bth_result {
    BTH_OK,
    BTH_SHORT,   /* no whole headers and ICRC, or not a multiple of four octets */
    BTH_VERSION, /* of another transport version */
    BTH_OPCODE,  /* unknown */
    BTH_LENGTH,  /* pad without payload, or payload where there is none */
};

/* Decodes a UDP payload of n octets. The ICRC at its end is not looked at. Results but BTH_OK: drop it without an
 * answer. */
enum bth_result bth_decode(struct bth *b, const uint8_t *p, uint32_t n);

/* Returns the octets of the headers of such a packet; 0 if there is no such opcode. */
uint32_t bth_head(const struct bth *b);

/* Writes the headers, with pad for `length` octets of payload. Returns their octets, at most BTH_HEAD_MAX. */
uint32_t bth_encode(const struct bth *b, uint8_t *p);

static inline uint8_t bth_pad(uint32_t length)
{
    return (uint8_t)(-length & BTH_PAD_MAX);
}

/* Headers that were written become those of the next packet: its PSN is one more. */
void bth_advance(uint8_t *head);

/* The destination of a packet of at least BTH_OCTETS octets, before anything else is read. */
static inline uint32_t bth_destination(const uint8_t *p)
{
    return get32(p + 4) & BTH_MASK24;
}

/* The same: does it answer a request: an acknowledgement, a NAK or a response? */
static inline bool bth_is_answer(const uint8_t *p)
{
    return (p[0] & BTH_OPERATION) >= BTH_FIRST_ANSWER && (p[0] & BTH_OPERATION) <= BTH_LAST_ANSWER;
}

#endif
