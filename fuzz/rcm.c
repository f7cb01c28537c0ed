/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm.c - messages of RoCE's connection manager: decoded, encoded again, and given to a machine in every state.
 *
 * Input: steps, an octet each that says what happens. 0: a MAD of 256 octets arrives as it is. 1: a message with fields
 * of the input arrives. It may name what the machine has: its IDs, transactions and queue pairs. Others: what an
 * application does, and time. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/input.h"
#include "roce/rcm.h"

enum { CONNS = 12, BACKLOG = 5, STEPS = 400 };
#define SERVICE 0x1060001u

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

/* A connection, what events it has had, and the memory around it. */
struct slot {
    struct rcm_conn conn;
    unsigned seen;
    bool used;
};

struct host {
    struct rcm cm;
    struct rcm_listener listener[2];
    struct slot slot[CONNS];
    uint64_t now_us, state;
    uint64_t questions, answers;
};

static uint64_t next_random(void *of)
{
    uint64_t *state = of;

    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

static struct host *host_open(void)
{
    struct host *h = calloc(1, sizeof(*h));
    struct rcm_attr attr = {.id_mask = UINT32_MAX, .random = next_random};

    assert(h);
    h->now_us = 1000;
    attr.of = &h->state;
    rcm_init(&h->cm, &attr);
    for (uint32_t i = 0; i < 2; i++) {
        h->listener[i] =
            (struct rcm_listener){.service = SERVICE + i, .backlog = BACKLOG, .rdma_cm = true, .datagram = i == 1};
        assert(!rcm_listen(&h->cm, &h->listener[i]));
    }
    return h;
}

static struct slot *free_slot(struct host *h)
{
    for (uint32_t i = 0; i < CONNS; i++)
        if (!h->slot[i].used)
            return &h->slot[i];
    return NULL;
}

static struct rcm_path path_of(uint8_t number)
{
    struct rcm_path path = {.local = {[15] = 1}, .peer = {[15] = 2}};

    path.peer[14] = number & 3;
    return path;
}

/* --- what comes out ------------------------------------------------------------------------------------------------
 */

static void take_events(struct host *h)
{
    struct rcm_event e;

    while (rcm_event(&h->cm, &e)) {
        struct slot *s = (struct slot *)(void *)e.conn;

        if (e.kind == RCM_EVENT_REQUEST) {
            s = free_slot(h);
            assert(e.message && e.listener && e.message->octets >= RCM_IP_OCTETS);
            if (s) {
                memset(s, 0, sizeof(*s));
                s->used = true;
                rcm_take(&h->cm, &s->conn);
            }
            continue;
        }
        assert(s->used && !(s->seen & 1u << RCM_EVENT_GONE));
        assert(e.kind == RCM_EVENT_DOUBTED || !(s->seen & 1u << e.kind));
        s->seen |= 1u << e.kind;
        if (e.kind == RCM_EVENT_GONE) {
            assert(s->conn.state == RCM_CLOSED);
            s->used = false;
        }
    }
    assert(h->listener[0].pending_count <= BACKLOG && h->listener[1].pending_count <= BACKLOG);
}

static void take_packets(struct host *h)
{
    uint8_t p[RCM_PACKET_OCTETS], again[RCM_MAD_OCTETS];
    struct rcm_message m;
    struct rcm_path path;

    while (rcm_output(&h->cm, &path, p)) {
        const uint8_t *mad = p + BTH_OCTETS + DETH_OCTETS;

        assert(rcm_decode(&m, mad, RCM_MAD_OCTETS) == RCM_OK && rcm_encode(&m, again));
        assert(!memcmp(mad, again, RCM_MAD_OCTETS));
        h->answers++;
    }
}

/* --- what goes in --------------------------------------------------------------------------------------------------
 */

static void arrives(struct host *h, const uint8_t *mad, uint32_t octets, uint8_t peer)
{
    const struct rcm_path path = path_of(peer);
    uint64_t before = h->answers;

    rcm_input(&h->cm, &path, mad, octets, h->now_us);
    take_events(h);
    take_packets(h);
    assert(h->answers - before <= 1);
}

/* What is decoded is encoded to the same meaning: reserved bits alone are lost. */
static void check_codec(const uint8_t *mad, uint32_t octets)
{
    uint8_t once[RCM_MAD_OCTETS], twice[RCM_MAD_OCTETS];
    struct rcm_message m;
    struct rcm_target target;
    struct rcm_ip ip;

    if (rcm_decode(&m, mad, octets) != RCM_OK) {
        assert(!rcm_find_target(&target, mad, octets));
        return;
    }
    assert(rcm_find_target(&target, mad, octets));
    assert(rcm_encode(&m, once) && rcm_decode(&m, once, RCM_MAD_OCTETS) == RCM_OK && rcm_encode(&m, twice));
    assert(!memcmp(once, twice, RCM_MAD_OCTETS));
    for (uint32_t i = 0; i < RCM_MAD_OCTETS; i++)
        assert(!(once[i] & ~mad[i]));
    if (m.octets >= RCM_IP_OCTETS && rcm_ip_decode(&ip, m.data))
        rcm_ip_encode(&ip, once);
}

static void raw(struct host *h, struct input *in)
{
    uint8_t mad[RCM_MAD_OCTETS] = {0};
    uint8_t peer = input8(in);
    uint32_t octets = (uint32_t)input_octets(in, mad, sizeof(mad));

    check_codec(mad, octets);
    arrives(h, mad, octets, peer);
}

static void made(struct host *h, struct input *in)
{
    static const uint8_t addresses[RCM_IP_OCTETS] = {0, 0x40};
    const struct rcm_conn *conn = &h->slot[input8(in) % CONNS].conn;
    uint8_t exact = input8(in), mad[RCM_MAD_OCTETS];
    struct rcm_message m = {.attribute = RCM_REQ + input8(in) % RCM_ATTRIBUTES};

    if (exact & 3)
        m.transaction = exact & 1 ? conn->transaction : conn->leave_transaction;
    else
        m.transaction = input8(in);
    m.local_id = exact & 4 ? conn->remote_id : input8(in);
    m.remote_id = exact & 8 ? conn->local_id : input8(in);
    m.remote_qpn = exact & 16 ? conn->qpn : input8(in);
    m.service = SERVICE + input8(in) % 3;
    m.terms.qpn = exact & 32 ? conn->peer_qpn : input8(in);
    m.terms.responder_resources = input8(in);
    m.terms.initiator_depth = input8(in);
    m.terms.mtu = 1 + input8(in) % 6;
    m.local_timeout = input8(in);
    m.cm_retries = input8(in);
    m.about = input8(in);
    m.service_timeout = input8(in);
    m.reason = input8(in);
    if (rcm_private_max(m.attribute) >= RCM_IP_OCTETS && !(exact & 64)) {
        m.data = addresses;
        m.octets = sizeof(addresses);
    }
    assert(rcm_encode(&m, mad));
    arrives(h, mad, sizeof(mad), exact & 128 ? 0 : input8(in));
}

static void calls(struct host *h, struct input *in)
{
    struct slot *s = free_slot(h);
    const uint8_t data[RCM_PRIVATE_MAX] = {0};
    struct rcm_connect connect = {.path = path_of(input8(in)), .service = SERVICE, .data = data};
    int error;

    connect.terms.qpn = input8(in);
    connect.terms.initiator_depth = input8(in);
    connect.response_timeout = input8(in);
    connect.cm_retries = input8(in) % 3;
    connect.timewait_us = input16(in);
    connect.octets = input8(in);
    if (!s || connect.octets > sizeof(data))
        return;
    memset(s, 0, sizeof(*s));
    error = input8(in) & 1 ? rcm_resolve(&h->cm, &s->conn, &connect, h->now_us)
                           : rcm_connect(&h->cm, &s->conn, &connect, h->now_us);
    s->used = !error;
}

static void acts(struct host *h, struct input *in, uint8_t what)
{
    struct slot *s = &h->slot[input8(in) % CONNS];
    struct rcm_accept accept = {.terms = {.qpn = input8(in)}};

    accept.timewait_us = input16(in);
    if (!s->used || s->conn.state == RCM_CLOSED)
        return;
    switch (what) {
    case 0:
        rcm_accept(&h->cm, &s->conn, &accept, h->now_us);
        break;
    case 1:
        rcm_reject(&h->cm, &s->conn, input8(in), NULL, 0, h->now_us);
        break;
    case 2:
        rcm_confirm(&h->cm, &s->conn);
        break;
    case 3:
        rcm_disconnect(&h->cm, &s->conn, h->now_us);
        break;
    case 4:
        rcm_communicates(&h->cm, &s->conn);
        break;
    default:
        rcm_forget(&h->cm, &s->conn);
        s->used = false;
    }
}

static void passes(struct host *h, uint64_t us)
{
    h->now_us += us;
    rcm_tick(&h->cm, h->now_us);
    assert(rcm_deadline(&h->cm) > h->now_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t length)
{
    struct input in = {octets, octets + length};
    struct host *h = host_open();

    for (uint32_t i = 0; i < STEPS && input_left(&in); i++) {
        uint8_t what = input8(&in) % 12;

        if (what == 0)
            raw(h, &in);
        else if (what < 5)
            made(h, &in);
        else if (what == 5)
            calls(h, &in);
        else if (what < 11)
            acts(h, &in, (uint8_t)(input8(&in) % 6));
        else
            passes(h, (uint64_t)input16(&in) << (input8(&in) % 16));
        take_events(h);
        take_packets(h);
    }
    for (uint32_t i = 0; i < CONNS; i++)
        if (h->slot[i].used)
            rcm_disconnect(&h->cm, &h->slot[i].conn, h->now_us);
    take_events(h);
    while (rcm_deadline(&h->cm) != RCM_NEVER) {
        passes(h, rcm_deadline(&h->cm) - h->now_us);
        take_events(h);
        take_packets(h);
    }
    for (uint32_t i = 0; i < CONNS; i++)
        assert(!h->slot[i].used);
    free(h);
    return 0;
}
