/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp.c - the header extension of the SCTP DDP/RDMA adaptation, and the table of the modes each sender may use. */
#include "wire/sctpddp.h"

#include "base/bytes.h"

/* sctp-ddp-rdma.txt 2.1 and 2.2, one line per indication: the octets of the header extension and the allowed modes. */
enum { NO = 1 << SCTPDDP_NO_PLACEMENT, DDP = 1 << SCTPDDP_MODE_DDP, TAG = 1 << SCTPDDP_MODE_TAG };
enum { RDMA = 1 << SCTPDDP_MODE_RDMA };

/* clang-format off */
static const struct {
    const char *name;
    uint8_t head, modes;
} adaptations[SCTPDDP_ADAPTATIONS] = {
    [SCTPDDP_PLAIN]                = {"none",                 0,                 NO},
    [SCTPDDP_DDP]                  = {"DDP",                  SCTPDDP_DDP_HEAD,  NO | DDP},
    [SCTPDDP_DDP_WITH_TAG]         = {"DDP_WITH_TAG",         SCTPDDP_DDP_HEAD,  NO | TAG},
    [SCTPDDP_RDMA_ONLY]            = {"RDMA_ONLY",            SCTPDDP_RDMA_HEAD, RDMA},
    [SCTPDDP_RDMA_AND_NEGOTIATION] = {"RDMA_AND_NEGOTIATION", SCTPDDP_RDMA_HEAD, NO | RDMA},
    [SCTPDDP_RDMA_NEGOTIATION]     = {"RDMA_NEGOTIATION",     SCTPDDP_RDMA_HEAD, NO},
};

/* 3.2.1: the rule that is broken when a sender uses a mode that it may not use. */
static const enum fault rule[SCTPDDP_MODES] = {
    [SCTPDDP_NO_PLACEMENT] = FAULT_CHUNK_R1,
    [SCTPDDP_MODE_DDP]     = FAULT_CHUNK_R2,
    [SCTPDDP_MODE_TAG]     = FAULT_CHUNK_R3,
    [SCTPDDP_MODE_RDMA]    = FAULT_CHUNK_R4,
};
/* clang-format on */

const char *sctpddp_adaptation_name(enum sctpddp_adaptation adaptation)
{
    return (unsigned)adaptation < SCTPDDP_ADAPTATIONS ? adaptations[adaptation].name : "unknown";
}

uint8_t *sctpddp_put_parameter(uint8_t *p, enum sctpddp_adaptation adaptation)
{
    return put32(put16(put16(p, SCTPDDP_TYPE), SCTPDDP_PARAMETER), (uint32_t)adaptation);
}

bool sctpddp_get_parameter(const uint8_t *p, size_t n, enum sctpddp_adaptation *adaptation)
{
    if (n < SCTPDDP_PARAMETER || get16(p) != SCTPDDP_TYPE || get16(p + 2) != SCTPDDP_PARAMETER)
        return false;
    *adaptation = sctpddp_adaptation_of(get32(p + 4));
    return *adaptation != SCTPDDP_PLAIN;
}

enum sctpddp_adaptation sctpddp_adaptation_of(uint32_t indication)
{
    return indication < SCTPDDP_ADAPTATIONS ? (enum sctpddp_adaptation)indication : SCTPDDP_PLAIN;
}

uint32_t sctpddp_head(enum sctpddp_adaptation sender)
{
    return adaptations[sender].head;
}

bool sctpddp_has_aws(enum sctpddp_adaptation sender)
{
    return adaptations[sender].head == SCTPDDP_RDMA_HEAD;
}

enum fault sctpddp_decode(enum sctpddp_adaptation sender, struct sctpddp_chunk *chunk, const uint8_t *p, size_t n)
{
    uint32_t head = adaptations[sender].head;

    *chunk = (struct sctpddp_chunk){.mode = SCTPDDP_NO_PLACEMENT};
    if (n < head || n - head > UINT32_MAX)
        return FAULT_CHUNK_SHORT;
    if (head) {
        chunk->mode = get32(p) >> 8;
        chunk->flags = p[3];
        chunk->tag = get32(p + 4);
        chunk->offset = get64(p + 8);
    }
    if (head == SCTPDDP_RDMA_HEAD)
        chunk->aws = get32(p + 16);
    chunk->data = p + head;
    chunk->length = (uint32_t)(n - head);
    return FAULT_NONE;
}

size_t sctpddp_encode(enum sctpddp_adaptation sender, const struct sctpddp_chunk *chunk, uint8_t *p)
{
    uint8_t *q = p;

    if (!adaptations[sender].head)
        return 0;
    q = put32(q, chunk->mode << 8 | chunk->flags);
    q = put32(q, chunk->tag);
    q = put64(q, chunk->offset);
    if (adaptations[sender].head == SCTPDDP_RDMA_HEAD)
        q = put32(q, chunk->aws);
    return (size_t)(q - p);
}

bool sctpddp_may_send(enum sctpddp_adaptation own, uint32_t mode)
{
    return mode < SCTPDDP_MODES && adaptations[own].modes & 1 << mode;
}

enum fault sctpddp_judge(enum sctpddp_adaptation sender, const struct sctpddp_chunk *chunk, bool whole)
{
    if (chunk->mode >= SCTPDDP_MODES)
        return FAULT_CHUNK_MODE;
    if (!sctpddp_may_send(sender, chunk->mode))
        return rule[chunk->mode];
    return chunk->mode && !whole ? FAULT_CHUNK_FLAGS : FAULT_NONE;
}
