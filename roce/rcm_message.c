/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_message.c - decodes and encodes the messages of the connection manager by one table of fields. */
#include "roce/rcm_message.h"

#include <stddef.h>

#include "base/bytes.h"
#include "base/container.h"

/* The head of a MAD: base version, class, class version, method; status and class specific 32; transaction 64;
 * attribute 16, reserved 16; modifier 32. */
enum { BASE_VERSION = 1, CLASS_CM = 7, CLASS_VERSION = 2, METHOD_SEND = 3, TRANSACTION_AT = 8, ATTRIBUTE_AT = 16 };

/* A number in messages: which octet behind the head it begins in, how many bits are before it there, and its width.
 * `member` and `octets` say where it is in struct rcm_message. */
struct rcm_field {
    enum rcm_attribute attribute;
    uint16_t octet, bit, width;
    uint16_t member, octets;
};

#define MEMBER(name) offsetof(struct rcm_message, name), sizeof(((struct rcm_message *)0)->name)

static const struct rcm_field fields[] = {
    // clang-format off
    {RCM_REQ,       0, 0, 32, MEMBER(local_id)},
    {RCM_REQ,       8, 0, 64, MEMBER(service)},
    {RCM_REQ,      16, 0, 64, MEMBER(guid)},
    {RCM_REQ,      28, 0, 32, MEMBER(terms.q_key)},
    {RCM_REQ,      32, 0, 24, MEMBER(terms.qpn)},
    {RCM_REQ,      35, 0,  8, MEMBER(terms.responder_resources)},
    {RCM_REQ,      39, 0,  8, MEMBER(terms.initiator_depth)},
    {RCM_REQ,      43, 0,  5, MEMBER(remote_timeout)},
    {RCM_REQ,      43, 5,  2, MEMBER(terms.transport)},
    {RCM_REQ,      43, 7,  1, MEMBER(terms.flow_control)},
    {RCM_REQ,      44, 0, 24, MEMBER(terms.psn)},
    {RCM_REQ,      47, 0,  5, MEMBER(local_timeout)},
    {RCM_REQ,      47, 5,  3, MEMBER(terms.retries)},
    {RCM_REQ,      48, 0, 16, MEMBER(terms.pkey)},
    {RCM_REQ,      50, 0,  4, MEMBER(terms.mtu)},
    {RCM_REQ,      50, 5,  3, MEMBER(terms.rnr_retries)},
    {RCM_REQ,      51, 0,  4, MEMBER(cm_retries)},
    {RCM_REQ,      51, 4,  1, MEMBER(terms.srq)},
    {RCM_REQ,      52, 0, 16, MEMBER(route.local_lid)},
    {RCM_REQ,      54, 0, 16, MEMBER(route.remote_lid)},
    {RCM_REQ,      88, 0, 20, MEMBER(route.flow_label)},
    {RCM_REQ,      91, 2,  6, MEMBER(route.rate)},
    {RCM_REQ,      92, 0,  8, MEMBER(route.traffic_class)},
    {RCM_REQ,      93, 0,  8, MEMBER(route.hop_limit)},
    {RCM_REQ,      94, 0,  4, MEMBER(route.service_level)},
    {RCM_REQ,      94, 4,  1, MEMBER(route.subnet_local)},
    {RCM_REQ,      95, 0,  5, MEMBER(route.ack_timeout)},
    {RCM_MRA,       0, 0, 32, MEMBER(local_id)},
    {RCM_MRA,       4, 0, 32, MEMBER(remote_id)},
    {RCM_MRA,       8, 0,  2, MEMBER(about)},
    {RCM_MRA,       9, 0,  5, MEMBER(service_timeout)},
    {RCM_REJ,       0, 0, 32, MEMBER(local_id)},
    {RCM_REJ,       4, 0, 32, MEMBER(remote_id)},
    {RCM_REJ,       8, 0,  2, MEMBER(about)},
    {RCM_REJ,       9, 0,  7, MEMBER(ari_octets)},
    {RCM_REJ,      10, 0, 16, MEMBER(reason)},
    {RCM_REP,       0, 0, 32, MEMBER(local_id)},
    {RCM_REP,       4, 0, 32, MEMBER(remote_id)},
    {RCM_REP,       8, 0, 32, MEMBER(terms.q_key)},
    {RCM_REP,      12, 0, 24, MEMBER(terms.qpn)},
    {RCM_REP,      20, 0, 24, MEMBER(terms.psn)},
    {RCM_REP,      24, 0,  8, MEMBER(terms.responder_resources)},
    {RCM_REP,      25, 0,  8, MEMBER(terms.initiator_depth)},
    {RCM_REP,      26, 0,  5, MEMBER(terms.ack_delay)},
    {RCM_REP,      26, 5,  2, MEMBER(terms.failover)},
    {RCM_REP,      26, 7,  1, MEMBER(terms.flow_control)},
    {RCM_REP,      27, 0,  3, MEMBER(terms.rnr_retries)},
    {RCM_REP,      27, 3,  1, MEMBER(terms.srq)},
    {RCM_REP,      28, 0, 64, MEMBER(guid)},
    {RCM_RTU,       0, 0, 32, MEMBER(local_id)},
    {RCM_RTU,       4, 0, 32, MEMBER(remote_id)},
    {RCM_DREQ,      0, 0, 32, MEMBER(local_id)},
    {RCM_DREQ,      4, 0, 32, MEMBER(remote_id)},
    {RCM_DREQ,      8, 0, 24, MEMBER(remote_qpn)},
    {RCM_DREP,      0, 0, 32, MEMBER(local_id)},
    {RCM_DREP,      4, 0, 32, MEMBER(remote_id)},
    {RCM_SIDR_REQ,  0, 0, 32, MEMBER(local_id)},
    {RCM_SIDR_REQ,  4, 0, 16, MEMBER(terms.pkey)},
    {RCM_SIDR_REQ,  8, 0, 64, MEMBER(service)},
    {RCM_SIDR_REP,  0, 0, 32, MEMBER(remote_id)},
    {RCM_SIDR_REP,  4, 0,  8, MEMBER(status)},
    {RCM_SIDR_REP,  8, 0, 24, MEMBER(terms.qpn)},
    {RCM_SIDR_REP, 12, 0, 64, MEMBER(service)},
    {RCM_SIDR_REP, 20, 0, 32, MEMBER(terms.q_key)},
    {RCM_LAP,       0, 0, 32, MEMBER(local_id)},
    {RCM_LAP,       4, 0, 32, MEMBER(remote_id)},
    {RCM_APR,       0, 0, 32, MEMBER(local_id)},
    {RCM_APR,       4, 0, 32, MEMBER(remote_id)},
    // clang-format on
};

/* Octets: where private data begin, and how many there are. */
static const struct {
    uint16_t at, octets;
} private_data[RCM_ATTRIBUTES] = {
    // clang-format off
    [RCM_REQ      - RCM_REQ] = {140, RCM_PRIVATE_REQ},
    [RCM_MRA      - RCM_REQ] = { 10, RCM_PRIVATE_MRA},
    [RCM_REJ      - RCM_REQ] = { 84, RCM_PRIVATE_REJ},
    [RCM_REP      - RCM_REQ] = { 36, RCM_PRIVATE_REP},
    [RCM_RTU      - RCM_REQ] = {  8, RCM_PRIVATE_MAX},
    [RCM_DREQ     - RCM_REQ] = { 12, RCM_PRIVATE_DREQ},
    [RCM_DREP     - RCM_REQ] = {  8, RCM_PRIVATE_MAX},
    [RCM_SIDR_REQ - RCM_REQ] = { 16, RCM_PRIVATE_SIDR_REQ},
    [RCM_SIDR_REP - RCM_REQ] = { 96, RCM_PRIVATE_SIDR_REP},
    // clang-format on
};

enum { GID_OCTETS = 16, LOCAL_GID_AT = 56, REMOTE_GID_AT = 72, ARI_AT = 12 };

/* The bits of a field lie in at most this many octets. */
enum { FIELD_OCTETS = 8 };

static uint32_t octets_in(const struct rcm_field *f)
{
    return (f->bit + f->width + 7u) / 8;
}

static uint64_t mask_of(const struct rcm_field *f)
{
    return UINT64_MAX >> (64 - f->width);
}

static uint64_t read_bits(const struct rcm_field *f, const uint8_t *p)
{
    uint32_t n = octets_in(f);
    uint64_t v = 0;

    for (uint32_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v >> (8 * n - f->bit - f->width) & mask_of(f);
}

static void write_bits(const struct rcm_field *f, uint8_t *p, uint64_t v)
{
    uint32_t n = octets_in(f);

    v = (v & mask_of(f)) << (8 * n - f->bit - f->width);
    for (uint32_t i = 0; i < n; i++)
        p[i] |= (uint8_t)(v >> 8 * (n - 1 - i));
}

static uint64_t read_member(const struct rcm_field *f, const struct rcm_message *m)
{
    const uint8_t *at = (const uint8_t *)m + f->member;
    uint64_t v64;
    uint32_t v32;
    uint16_t v16;

    switch (f->octets) {
    case 1:
        return *at;
    case 2:
        memcpy(&v16, at, 2);
        return v16;
    case 4:
        memcpy(&v32, at, 4);
        return v32;
    default:
        memcpy(&v64, at, FIELD_OCTETS);
        return v64;
    }
}

static void write_member(const struct rcm_field *f, struct rcm_message *m, uint64_t v)
{
    uint8_t *at = (uint8_t *)m + f->member, v8 = (uint8_t)v;
    uint32_t v32 = (uint32_t)v;
    uint16_t v16 = (uint16_t)v;

    switch (f->octets) {
    case 1:
        *at = v8;
        break;
    case 2:
        memcpy(at, &v16, 2);
        break;
    case 4:
        memcpy(at, &v32, 4);
        break;
    default:
        memcpy(at, &v, FIELD_OCTETS);
    }
}

uint32_t rcm_private_max(enum rcm_attribute attribute)
{
    return private_data[attribute - RCM_REQ].octets;
}

static enum rcm_result check_head(const uint8_t *mad, uint32_t octets)
{
    uint16_t attribute;

    if (octets != RCM_MAD_OCTETS)
        return RCM_SHORT;
    if (mad[1] != CLASS_CM)
        return RCM_CLASS;
    if (mad[0] != BASE_VERSION || mad[2] != CLASS_VERSION)
        return RCM_VERSION;
    if (mad[3] != METHOD_SEND)
        return RCM_METHOD;
    attribute = get16(mad + ATTRIBUTE_AT);
    return attribute < RCM_REQ || attribute > RCM_APR ? RCM_ATTRIBUTE : RCM_OK;
}

enum rcm_result rcm_decode(struct rcm_message *m, const uint8_t *mad, uint32_t octets)
{
    enum rcm_result result = check_head(mad, octets);
    const uint8_t *p = mad + RCM_MAD_HEAD;

    if (result != RCM_OK)
        return result;
    *m = (struct rcm_message){.attribute = get16(mad + ATTRIBUTE_AT), .transaction = get64(mad + TRANSACTION_AT)};
    for (uint32_t i = 0; i < countof(fields); i++)
        if (fields[i].attribute == m->attribute)
            write_member(&fields[i], m, read_bits(&fields[i], p + fields[i].octet));
    if (m->ari_octets > RCM_ARI_MAX)
        return RCM_RANGE;
    if (m->attribute == RCM_REQ) {
        memcpy(m->route.local_gid, p + LOCAL_GID_AT, GID_OCTETS);
        memcpy(m->route.remote_gid, p + REMOTE_GID_AT, GID_OCTETS);
    }
    m->ari = p + ARI_AT;
    m->data = p + private_data[m->attribute - RCM_REQ].at;
    m->octets = (uint8_t)rcm_private_max(m->attribute);
    return RCM_OK;
}

bool rcm_encode(const struct rcm_message *m, uint8_t *mad)
{
    uint8_t *p = mad + RCM_MAD_HEAD;

    if (m->octets > rcm_private_max(m->attribute) || m->ari_octets > (m->attribute == RCM_REJ ? RCM_ARI_MAX : 0))
        return false;
    memset(mad, 0, RCM_MAD_OCTETS);
    put8(put8(put8(put8(mad, BASE_VERSION), CLASS_CM), CLASS_VERSION), METHOD_SEND);
    put64(mad + TRANSACTION_AT, m->transaction);
    put16(mad + ATTRIBUTE_AT, (uint16_t)m->attribute);
    for (uint32_t i = 0; i < countof(fields); i++)
        if (fields[i].attribute == m->attribute)
            write_bits(&fields[i], p + fields[i].octet, read_member(&fields[i], m));
    if (m->attribute == RCM_REQ) {
        memcpy(p + LOCAL_GID_AT, m->route.local_gid, GID_OCTETS);
        memcpy(p + REMOTE_GID_AT, m->route.remote_gid, GID_OCTETS);
    }
    put_bytes(p + ARI_AT, m->ari, m->ari_octets);
    put_bytes(p + private_data[m->attribute - RCM_REQ].at, m->data, m->octets);
    return true;
}

bool rcm_find_target(struct rcm_target *target, const uint8_t *mad, uint32_t octets)
{
    struct rcm_message m;

    if (rcm_decode(&m, mad, octets) != RCM_OK)
        return false;
    *target = (struct rcm_target){
        .is_request = m.attribute == RCM_REQ || m.attribute == RCM_SIDR_REQ,
        .service = m.service,
        .id = m.remote_id,
        .sender = m.local_id,
    };
    return true;
}

uint64_t rcm_timewait_us(unsigned code)
{
    enum { LEAST = 14, MOST_US = 10000000, UNIT = 8 };
    uint64_t us = ((UINT64_C(1) << ((code < LEAST ? LEAST : code & 31) - UNIT)) + 1) * 1000;

    return us < MOST_US ? us : MOST_US;
}

/* --- packets --------------------------------------------------------------------------------------------------- */

bool rcm_is_packet(const struct bth *b)
{
    return b->service == BTH_UD && b->op == BTH_SEND && b->qpn == RCM_QPN && b->q_key == RCM_Q_KEY;
}

/* The acknowledge-request bit means nothing in a datagram; Linux sets it, and so do we. */
void rcm_packet(uint8_t *p, const uint8_t *mad, uint32_t psn)
{
    const struct bth b = {.service = BTH_UD,
                          .op = BTH_SEND,
                          .flags = BTH_FIRST | BTH_LAST | BTH_ACK_REQUEST,
                          .pkey = BTH_PKEY_DEFAULT,
                          .qpn = RCM_QPN,
                          .psn = psn & BTH_MASK24,
                          .q_key = RCM_Q_KEY,
                          .source_qpn = RCM_QPN,
                          .length = RCM_MAD_OCTETS};

    memcpy(p + bth_encode(&b, p), mad, RCM_MAD_OCTETS);
}

enum { MTU_CODE_256 = 1, MTU_CODE_4096 = 5, MTU_SHIFT = 7 };

uint32_t rcm_mtu(unsigned code)
{
    return code >= MTU_CODE_256 && code <= MTU_CODE_4096 ? 1u << (code + MTU_SHIFT) : 0;
}

uint8_t rcm_mtu_code(uint32_t octets)
{
    for (uint8_t code = MTU_CODE_256; code <= MTU_CODE_4096; code++)
        if (rcm_mtu(code) == octets)
            return code;
    return 0;
}
