/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_world.c - plays the peer of a connection manager. */
#include "tests/lib/rcm_world.h"

#include <string.h>

#include "base/bytes.h"

struct rcm_world cw;

static uint64_t random_of_world(void *of)
{
    return rng_next(of);
}

struct rcm_path rcm_peer(uint32_t number)
{
    struct rcm_path path = {
        .local = {[10] = 0xff, 0xff, 10, 77, 0, 2}, .peer = {[10] = 0xff, 0xff}, .peer_port = ROCE_PORT};

    put32(path.peer + 12, 0x0a4d0003 + number);
    return path;
}

void rcm_open(uint32_t backlog)
{
    const struct rcm_attr attr = {.id_mask = UINT32_MAX, .guid = 1, .random = random_of_world, .of = &cw.rng};

    memset(&cw, 0, sizeof(cw));
    cw.rng.state = 1;
    cw.now_us = 1000000;
    cw.path = rcm_peer(0);
    rcm_init(&cw.cm, &attr);
    cw.listener = (struct rcm_listener){.service = SERVICE, .backlog = backlog, .rdma_cm = true};
    cw.datagrams =
        (struct rcm_listener){.service = DATAGRAM_SERVICE, .backlog = backlog, .rdma_cm = true, .datagram = true};
    assert_int_equal(rcm_listen(&cw.cm, &cw.listener), 0);
    assert_int_equal(rcm_listen(&cw.cm, &cw.datagrams), 0);
}

/* --- the peer ----------------------------------------------------------------------------------------------------- */

struct rcm_message rcm_says_what(enum rcm_attribute attribute)
{
    return (struct rcm_message){
        .attribute = attribute,
        .transaction = cw.received.transaction,
        .local_id = cw.received.remote_id ? cw.received.remote_id : PEER_ID,
        .remote_id = cw.received.local_id,
        .remote_qpn = OUR_QPN,
        .service = DATAGRAM_SERVICE,
        .terms = {.qpn = PEER_QPN, .psn = PEER_PSN, .responder_resources = 3, .initiator_depth = 2, .q_key = 0x1234567},
    };
}

struct rcm_message rcm_request(void)
{
    static const uint8_t data[RCM_IP_OCTETS + 4] = {
        0, 0x40, 0x91, 0xa3, [16] = 10, 77, 0, 3, [32] = 10, 77, 0, 2, 'a', 'b', 'c', 'd'};

    return (struct rcm_message){
        .attribute = RCM_REQ,
        .transaction = PEER_TRANSACTION,
        .local_id = PEER_ID,
        .service = SERVICE,
        .terms = {.qpn = PEER_QPN,
                  .psn = PEER_PSN,
                  .responder_resources = 3,
                  .initiator_depth = 2,
                  .retries = 7,
                  .rnr_retries = 6,
                  .mtu = 3,
                  .pkey = 0xffff},
        .remote_timeout = RCM_TIMEOUT_DEFAULT,
        .local_timeout = RCM_TIMEOUT_DEFAULT,
        .cm_retries = 15,
        .data = data,
        .octets = sizeof(data),
    };
}

void rcm_says(const struct rcm_message *m)
{
    assert_true(rcm_encode(m, cw.mad));
    rcm_input(&cw.cm, &cw.path, cw.mad, sizeof(cw.mad), cw.now_us);
}

void rcm_says_usual(enum rcm_attribute attribute)
{
    const struct rcm_message m = rcm_says_what(attribute);

    rcm_says(&m);
}

const struct rcm_message *rcm_hear(enum rcm_attribute attribute)
{
    struct bth b;

    assert_true(rcm_output(&cw.cm, &cw.received_path, cw.packet));
    assert_memory_equal(cw.received_path.peer, cw.path.peer, sizeof(cw.path.peer));
    memset(&b, 0, sizeof(b));
    b.data = cw.packet + BTH_OCTETS + DETH_OCTETS;
    assert_int_equal(rcm_decode(&cw.received, b.data, RCM_MAD_OCTETS), RCM_OK);
    assert_int_equal(cw.received.attribute, attribute);
    return &cw.received;
}

void rcm_hear_nothing(void)
{
    assert_false(rcm_output(&cw.cm, &cw.received_path, cw.packet));
}

const struct rcm_event *rcm_expect(enum rcm_event_kind kind)
{
    assert_true(rcm_event(&cw.cm, &cw.event));
    assert_int_equal(cw.event.kind, kind);
    return &cw.event;
}

void rcm_expect_nothing(void)
{
    assert_false(rcm_event(&cw.cm, &cw.event));
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void rcm_waits(uint64_t us)
{
    cw.now_us += us;
    rcm_tick(&cw.cm, cw.now_us);
}

uint64_t rcm_waits_for_deadline(void)
{
    uint64_t due_us = rcm_deadline(&cw.cm), from_us = cw.now_us;

    assert_true(due_us != RCM_NEVER && due_us >= from_us);
    if (due_us > from_us)
        rcm_tick(&cw.cm, due_us - 1);
    rcm_hear_nothing();
    cw.now_us = due_us;
    rcm_tick(&cw.cm, due_us);
    return due_us - from_us;
}

/* --- states ------------------------------------------------------------------------------------------------------- */

struct rcm_connect rcm_usual_connect(void)
{
    return (struct rcm_connect){
        .path = cw.path,
        .service = SERVICE,
        .rdma_cm = true,
        .source_port = 0x91a3,
        .terms = {.qpn = OUR_QPN,
                  .psn = OUR_PSN,
                  .responder_resources = 4,
                  .initiator_depth = 5,
                  .retries = 7,
                  .rnr_retries = 7,
                  .mtu = 3,
                  .pkey = 0xffff},
        .hop_limit = 64,
        .ack_timeout = 19,
        .response_timeout = RCM_TIMEOUT_DEFAULT,
        .cm_retries = 15,
        .timewait_us = TIMEWAIT_US,
        .data = "wxyz",
        .octets = 4,
    };
}

struct rcm_accept rcm_usual_accept(void)
{
    return (struct rcm_accept){
        .terms = {.qpn = OUR_QPN, .psn = OUR_PSN, .responder_resources = 4, .initiator_depth = 5, .rnr_retries = 7},
        .timewait_us = TIMEWAIT_US,
        .data = "stuv",
        .octets = 4,
    };
}

void rcm_is_asked(void)
{
    const struct rcm_message m = rcm_request();

    rcm_says(&m);
    rcm_expect(RCM_EVENT_REQUEST);
    rcm_take(&cw.cm, &cw.conn);
    rcm_expect_nothing();
    rcm_hear_nothing();
}

void rcm_has_accepted(void)
{
    const struct rcm_accept accept = rcm_usual_accept();

    rcm_is_asked();
    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), 0);
    rcm_hear(RCM_REP);
    rcm_hear_nothing();
}

void rcm_calls(void)
{
    const struct rcm_connect connect = rcm_usual_connect();

    assert_int_equal(rcm_connect(&cw.cm, &cw.conn, &connect, cw.now_us), 0);
    rcm_hear(RCM_REQ);
    rcm_hear_nothing();
}

void rcm_is_answered(void)
{
    rcm_calls();
    rcm_says_usual(RCM_REP);
    rcm_expect(RCM_EVENT_ANSWERED);
    rcm_expect_nothing();
    rcm_hear_nothing();
}

void rcm_is_established(bool actively)
{
    if (actively) {
        rcm_is_answered();
        assert_int_equal(rcm_confirm(&cw.cm, &cw.conn), 0);
        rcm_hear(RCM_RTU);
    } else {
        rcm_has_accepted();
        rcm_says_usual(RCM_RTU);
        rcm_expect(RCM_EVENT_ESTABLISHED);
    }
    rcm_expect_nothing();
    rcm_hear_nothing();
    assert_int_equal(rcm_deadline(&cw.cm), RCM_NEVER);
}

static void assert_unused(const struct rcm_link *table)
{
    for (uint32_t i = 0; i < RCM_BUCKETS; i++)
        assert_ptr_equal(table[i].next, &table[i]);
}

void rcm_assert_empty(struct rcm *cm)
{
    struct rcm_event event;
    struct rcm_path path;
    uint8_t p[RCM_PACKET_OCTETS];

    assert_unused(cm->by_local);
    assert_unused(cm->by_remote);
    assert_unused(cm->by_qpn);
    assert_int_equal(cm->resting_count, 0);
    assert_int_equal(rcm_deadline(cm), RCM_NEVER);
    assert_false(rcm_event(cm, &event));
    assert_false(rcm_output(cm, &path, p));
}
