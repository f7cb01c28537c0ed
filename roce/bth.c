/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bth.c - decodes and encodes BTH and extended headers by one table of opcodes. */
#include "roce/bth.h"

#include <stddef.h>

#include "base/bytes.h"

/* The extended headers, in the order in which they follow the BTH. */
enum {
    DETH = 1 << 0,
    RETH = 1 << 1,
    ATOMIC = 1 << 2,
    AETH = 1 << 3,
    ATOMIC_ACK = 1 << 4,
    IMMEDIATE = 1 << 5, /* ImmDt or IETH */
    RESERVED = 1 << 6,  /* of a congestion notification */
    EMPTY = 1 << 7,     /* and behind them there is no payload */
};

enum { FIRST = BTH_FIRST, LAST = BTH_LAST, ONLY = FIRST | LAST, IMM = BTH_IMMEDIATE, INV = BTH_INVALIDATE };
enum { OPCODE_FLAGS = ONLY | IMM | INV };

/* The lower five bits of an opcode: operation, flags, extended headers. */
// clang-format off
#define OPERATIONS(LINE) \
    LINE(0,  BTH_SEND,               FIRST,      0) \
    LINE(1,  BTH_SEND,               0,          0) \
    LINE(2,  BTH_SEND,               LAST,       0) \
    LINE(3,  BTH_SEND,               LAST | IMM, IMMEDIATE) \
    LINE(4,  BTH_SEND,               ONLY,       0) \
    LINE(5,  BTH_SEND,               ONLY | IMM, IMMEDIATE) \
    LINE(6,  BTH_WRITE,              FIRST,      RETH) \
    LINE(7,  BTH_WRITE,              0,          0) \
    LINE(8,  BTH_WRITE,              LAST,       0) \
    LINE(9,  BTH_WRITE,              LAST | IMM, IMMEDIATE) \
    LINE(10, BTH_WRITE,              ONLY,       RETH) \
    LINE(11, BTH_WRITE,              ONLY | IMM, RETH | IMMEDIATE) \
    LINE(12, BTH_READ_REQUEST,       ONLY,       RETH | EMPTY) \
    LINE(13, BTH_READ_RESPONSE,      FIRST,      AETH) \
    LINE(14, BTH_READ_RESPONSE,      0,          0) \
    LINE(15, BTH_READ_RESPONSE,      LAST,       AETH) \
    LINE(16, BTH_READ_RESPONSE,      ONLY,       AETH) \
    LINE(17, BTH_ACKNOWLEDGE,        ONLY,       AETH | EMPTY) \
    LINE(18, BTH_ATOMIC_ACKNOWLEDGE, ONLY,       AETH | ATOMIC_ACK | EMPTY) \
    LINE(19, BTH_CMP_SWAP,           ONLY,       ATOMIC | EMPTY) \
    LINE(20, BTH_FETCH_ADD,          ONLY,       ATOMIC | EMPTY) \
    LINE(22, BTH_SEND,               LAST | INV, IMMEDIATE) \
    LINE(23, BTH_SEND,               ONLY | INV, IMMEDIATE)
// clang-format on

/* All headers together. */
#define OCTETS(heads) \
    (BTH_OCTETS + ((heads)&RETH ? RETH_OCTETS : 0) + ((heads)&ATOMIC ? ATOMIC_ETH_OCTETS : 0) + \
     ((heads)&AETH ? AETH_OCTETS : 0) + ((heads)&ATOMIC_ACK ? ATOMIC_ACK_ETH_OCTETS : 0) + \
     ((heads)&IMMEDIATE ? IMMEDIATE_OCTETS : 0) + ((heads)&RESERVED ? CNP_OCTETS : 0))

/* The table, and the way back from operation and flags: the number, plus 1. */
#define BY_NUMBER(number, op, flags, heads) [number] = {op, flags, heads, OCTETS(heads)},
#define BY_OPERATION(number, op, flags, heads) [op][flags] = number + 1,

static const struct bth_operation {
    uint8_t op, flags, heads, octets;
} operations[32] = {OPERATIONS(BY_NUMBER)};
static const uint8_t numbers[BTH_NOTIFY][OPCODE_FLAGS + 1] = {OPERATIONS(BY_OPERATION)};

static const struct bth_operation notification = {BTH_NOTIFY, ONLY, RESERVED | EMPTY, OCTETS(RESERVED)};

/* The upper three bits of an opcode, and which operations the service has: bit N is operation N. In the order of
 * enum bth_service. */
enum { NOTIFICATION = 1 };

static const struct bth_service_code {
    enum bth_service service;
    uint8_t code;
    uint32_t has;
} services[] = {
    {BTH_RC, 0, 0xdfffff},
    {BTH_UC, 1, 0x000fff},
    {BTH_UD, 3, 0x000030},
    {BTH_CNP, 4, 1 << NOTIFICATION},
};

enum { SERVICES = sizeof(services) / sizeof(services[0]), SERVICE_SHIFT = 5 };

/* Octet 1 of the BTH, and bits of later octets. */
enum { SOLICITED = 0x80, MIGRATION = 0x40, PAD_SHIFT = 4, PAD = 0x3, VERSION = 0x0f };
enum { FECN = 0x80, BECN = 0x40, ACK_REQUEST = 0x80 };

static const struct bth_service_code *service_of(uint8_t code)
{
    for (unsigned i = 0; i < SERVICES; i++)
        if (services[i].code == code >> SERVICE_SHIFT && services[i].has >> (code & BTH_OPERATION) & 1)
            return &services[i];
    return NULL;
}

static const struct bth_operation *bth_opcode_of(const struct bth_service_code *s, uint8_t code)
{
    return s->service == BTH_CNP ? &notification : &operations[code & BTH_OPERATION];
}

static unsigned heads_of(const struct bth_service_code *s, const struct bth_operation *o)
{
    return o->heads | (s->service == BTH_UD ? DETH : 0u);
}

static uint32_t octets_of(const struct bth_service_code *s, const struct bth_operation *o)
{
    return o->octets + (s->service == BTH_UD ? DETH_OCTETS : 0u);
}

static void decode_bth(struct bth *b, const uint8_t *p, unsigned flags)
{
    b->flags = flags;
    b->flags |= (p[1] & SOLICITED ? BTH_SOLICITED : 0u) | (p[1] & MIGRATION ? BTH_MIGRATION : 0u);
    b->flags |= (p[4] & FECN ? BTH_FECN : 0u) | (p[4] & BECN ? BTH_BECN : 0u);
    b->flags |= p[8] & ACK_REQUEST ? BTH_ACK_REQUEST : 0u;
    b->pad = p[1] >> PAD_SHIFT & PAD;
    b->pkey = get16(p + 2);
    b->qpn = get32(p + 4) & BTH_MASK24;
    b->psn = get32(p + 8) & BTH_MASK24;
}

static const uint8_t *decode_extended(struct bth *b, const uint8_t *p, unsigned heads)
{
    if (heads & DETH) {
        b->q_key = get32(p);
        b->source_qpn = get32(p + 4) & BTH_MASK24;
        p += DETH_OCTETS;
    }
    if (heads & RETH) {
        b->address = get64(p);
        b->r_key = get32(p + 8);
        b->dma_length = get32(p + 12);
        p += RETH_OCTETS;
    }
    if (heads & ATOMIC) {
        b->address = get64(p);
        b->r_key = get32(p + 8);
        b->swap_or_add = get64(p + 12);
        b->compare = get64(p + 20);
        p += ATOMIC_ETH_OCTETS;
    }
    if (heads & AETH) {
        b->syndrome = p[0];
        b->msn = get32(p) & BTH_MASK24;
        p += AETH_OCTETS;
    }
    if (heads & ATOMIC_ACK) {
        b->original = get64(p);
        p += ATOMIC_ACK_ETH_OCTETS;
    }
    if (heads & IMMEDIATE) {
        b->immediate = get32(p);
        p += IMMEDIATE_OCTETS;
    }
    return heads & RESERVED ? p + CNP_OCTETS : p;
}

enum bth_result bth_decode(struct bth *b, const uint8_t *p, uint32_t n)
{
    const struct bth_service_code *s;
    const struct bth_operation *o;
    uint32_t head;

    if (n < BTH_OCTETS + ICRC_OCTETS || n & BTH_PAD_MAX)
        return BTH_SHORT;
    if (p[1] & VERSION)
        return BTH_VERSION;
    s = service_of(p[0]);
    if (!s)
        return BTH_OPCODE;
    o = bth_opcode_of(s, p[0]);
    head = octets_of(s, o);
    if (n < head + ICRC_OCTETS)
        return BTH_SHORT;
    *b = (struct bth){.service = s->service, .op = (enum bth_op)o->op};
    decode_bth(b, p, o->flags);
    b->data = decode_extended(b, p + BTH_OCTETS, heads_of(s, o));
    b->length = n - head - ICRC_OCTETS;
    if (b->pad > b->length || (o->heads & EMPTY && b->length))
        return BTH_LENGTH;
    b->length -= b->pad;
    return BTH_OK;
}

void bth_advance(uint8_t *head)
{
    uint32_t word = get32(head + 8);

    put32(head + 8, (word & ~BTH_MASK24) | ((word + 1) & BTH_MASK24));
}

/* Finds the opcode of the service and operation with these flags. Returns false if there is none. */
static bool bth_find_opcode(const struct bth *b, const struct bth_service_code **s, uint8_t *code)
{
    unsigned flags = b->flags & OPCODE_FLAGS, number = b->op < BTH_NOTIFY ? numbers[b->op][flags] : 0;

    *s = &services[b->service];
    if (b->op == BTH_NOTIFY && flags == ONLY)
        number = NOTIFICATION + 1;
    if (!number || !((*s)->has >> (number - 1) & 1) || (b->op == BTH_NOTIFY) != (b->service == BTH_CNP))
        return false;
    *code = (uint8_t)((unsigned)(*s)->code << SERVICE_SHIFT | (number - 1));
    return true;
}

uint32_t bth_head(const struct bth *b)
{
    const struct bth_service_code *s;
    uint8_t code;

    return bth_find_opcode(b, &s, &code) ? octets_of(s, bth_opcode_of(s, code)) : 0;
}

static uint8_t *encode_extended(uint8_t *p, const struct bth *b, unsigned heads)
{
    if (heads & DETH)
        p = put32(put32(p, b->q_key), b->source_qpn);
    if (heads & RETH)
        p = put32(put32(put64(p, b->address), b->r_key), b->dma_length);
    if (heads & ATOMIC)
        p = put64(put64(put32(put64(p, b->address), b->r_key), b->swap_or_add), b->compare);
    if (heads & AETH)
        p = put32(p, (uint32_t)b->syndrome << 24 | b->msn);
    if (heads & ATOMIC_ACK)
        p = put64(p, b->original);
    if (heads & IMMEDIATE)
        p = put32(p, b->immediate);
    if (heads & RESERVED)
        p = put64(put64(p, 0), 0);
    return p;
}

uint32_t bth_encode(const struct bth *b, uint8_t *p)
{
    const struct bth_service_code *s;
    uint8_t *begin = p, code, bits;

    if (!bth_find_opcode(b, &s, &code))
        return 0;
    bits = (uint8_t)(bth_pad(b->length) << PAD_SHIFT | (b->flags & BTH_SOLICITED ? SOLICITED : 0) |
                     (b->flags & BTH_MIGRATION ? MIGRATION : 0));
    p = put16(put8(put8(p, code), bits), b->pkey);
    p = put32(p, b->qpn | (b->flags & BTH_FECN ? 1u << 31 : 0) | (b->flags & BTH_BECN ? 1u << 30 : 0));
    p = put32(p, b->psn | (b->flags & BTH_ACK_REQUEST ? 1u << 31 : 0));
    p = encode_extended(p, b, heads_of(s, bth_opcode_of(s, code)));
    return (uint32_t)(p - begin);
}
