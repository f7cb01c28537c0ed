/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place_gone.c - memory is deregistered while a peer's payload is being read to it, and the peer says nothing more: who
 * polls or waits then hears the end at once, as does the peer. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { PAYLOAD = 32768, COME = 20000, HEAD = 16, TAIL = 4, FRAME = 20, TERMINATE = 0x1100, POLLS_MAX = 1000000 };

static struct rddp_context *context;
static struct rddp_pd *pd;
static struct rddp_event_channel *events;
static struct rddp_cq *cq;
static struct rddp_qp *qp;
static struct rddp_mr *mr;
static struct rddp_listener *listener;
static uint8_t memory[PAYLOAD];
static int peer;

/* --- the peer ---------------------------------------------------------------------------------------------------- */

/* Writes the first `come` octets of an FPDU without a CRC: a Write of `length` octets to the region. */
static void peer_writes(uint32_t length, size_t come)
{
    static uint8_t unit[HEAD + PAYLOAD + TAIL];
    uint8_t *p = put16(unit, (uint16_t)(HEAD - 2 + length));

    p = put64(put32(put8(put8(p, 0xc1), 0x40), rddp_mr_key(mr)), (uintptr_t)memory);
    memset(p, 7, length);
    assert_int_equal(write(peer, unit, come), (ssize_t)come);
}

static void peer_connects(void)
{
    static const char request[] = "MPA ID Req Frame\0\1\0";
    struct sockaddr_storage addr;

    assert_int_equal(rddp_listener_addr(listener, &addr), 0);
    peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&addr, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(write(peer, request, FRAME), FRAME);
}

/* --- this end ---------------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_context_attr attr;
    struct rddp_qp_attr qp_attr;
    struct rddp_wire_attr wire;

    (void)state;
    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    context = rddp_open(&attr);
    pd = rddp_alloc_pd(context);
    events = rddp_create_event_channel(context);
    cq = rddp_create_cq(context, 16, NULL, NULL);
    mr = rddp_reg_mr(pd, memory, sizeof(memory), RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = cq;
    qp = rddp_create_qp(pd, &qp_attr);
    assert_true(qp && mr);
    rddp_wire_attr_init(&wire);
    wire.crc = false;
    wire.stall_timeout_ms = 0;
    listener = rddp_listen(events, (struct sockaddr *)&any, sizeof(any), 1, &wire, NULL);
    assert_non_null(listener);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(peer);
    rddp_destroy_listener(listener);
    rddp_destroy_qp(qp);
    rddp_destroy_cq(cq);
    rddp_destroy_event_channel(events);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    assert_int_equal(rddp_close(context), 0);
    return 0;
}

/* Takes the next event if there is one. */
static bool event_comes(enum rddp_event_type type)
{
    struct rddp_event *event;
    int error = rddp_get_event(events, &event);

    if (error == -EAGAIN)
        return false;
    assert_int_equal(error, 0);
    assert_int_equal(event->type, type);
    if (type == RDDP_EVENT_CONNECT_REQUEST)
        assert_int_equal(rddp_accept(event->request, qp, NULL), 0);
    rddp_ack_event(event);
    return true;
}

static void poll_once(void)
{
    struct rddp_wc wc;

    assert_int_equal(rddp_poll_cq(cq, 1, &wc), 0);
}

/* Polls until half of the payload is in its place. */
static void begin(void)
{
    uint8_t reply[FRAME];

    peer_connects();
    assert_true(event_comes(RDDP_EVENT_CONNECT_REQUEST));
    assert_int_equal(fcntl(rddp_event_channel_fd(events), F_SETFL, O_NONBLOCK), 0);
    for (int i = 0; i < POLLS_MAX && recv(peer, reply, FRAME, MSG_DONTWAIT) != FRAME; i++)
        assert_int_equal(rddp_progress(context, 0), 0);
    peer_writes(0, HEAD + TAIL);
    for (int i = 0; i < POLLS_MAX && !event_comes(RDDP_EVENT_ESTABLISHED); i++)
        poll_once();
    peer_writes(PAYLOAD, HEAD + COME);
    for (int i = 0; i < POLLS_MAX && !memory[COME - 1]; i++)
        poll_once();
    assert_int_equal(memory[COME - 1], 7);
    for (int i = 0; i < 64; i++) /* the next octets would go to the place by themselves */
        poll_once();
}

static void a_poll_tells(void **state)
{
    uint8_t term[64];
    bool has_come = false;

    (void)state;
    begin();
    assert_int_equal(rddp_dereg_mr(mr), 0);
    for (int i = 0; i < POLLS_MAX && !has_come; i++) {
        poll_once();
        has_come = event_comes(RDDP_EVENT_DISCONNECTED);
    }
    assert_true(has_come);
    assert_true(recv(peer, term, sizeof(term), MSG_DONTWAIT) > FRAME);
    assert_int_equal(get16(term + 20), TERMINATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_poll_tells, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("place_gone", tests, NULL, NULL);
}
