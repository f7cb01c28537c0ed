/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_linux.c - RoCE's connection manager in the place of each of two Linux kernels: what they said is said to it,
 * and with their numbers it says the same octets. */
#include <string.h>

#include "tests/lib/rcm_world.h"
#include "tests/lib/roce_capture.h"

/* The only connection of a capture. */
static struct {
    uint8_t mad[RCM_ATTRIBUTES][RCM_MAD_OCTETS];
    struct rcm_message message[RCM_ATTRIBUTES];
    unsigned count[RCM_ATTRIBUTES];
    struct rcm_path path; /* as the end that calls has it */
} said;

static void put_gid(uint8_t *gid, const uint8_t *address, bool ipv6)
{
    memset(gid, 0, 16);
    gid[10] = gid[11] = 0xff;
    memcpy(ipv6 ? gid : gid + 12, address, ipv6 ? 16 : 4);
}

static void take(const struct roce_captured *packet)
{
    struct rcm_message m;
    struct bth b;
    unsigned i;

    assert_int_equal(bth_decode(&b, packet->at, packet->octets), BTH_OK);
    if (!rcm_is_packet(&b))
        return;
    assert_int_equal(rcm_decode(&m, b.data, b.length), RCM_OK);
    i = m.attribute - RCM_REQ;
    memcpy(said.mad[i], b.data, RCM_MAD_OCTETS);
    rcm_decode(&said.message[i], said.mad[i], RCM_MAD_OCTETS);
    said.count[i]++;
    if (m.attribute != RCM_REQ && m.attribute != RCM_SIDR_REQ)
        return;
    put_gid(said.path.local, packet->path.source, packet->path.ipv6);
    put_gid(said.path.peer, packet->path.destination, packet->path.ipv6);
}

static const struct rcm_message *of(enum rcm_attribute attribute)
{
    assert_int_equal(said.count[attribute - RCM_REQ], 1);
    return &said.message[attribute - RCM_REQ];
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

/* The next numbers of its random source. */
static uint64_t numbers[4];
static uint32_t next_number;

static uint64_t give_number(void *unused)
{
    (void)unused;
    return next_number < 4 ? numbers[next_number++] : 0;
}

static void prepare(bool calls, uint64_t guid)
{
    const struct rcm_attr attr = {.id_mask = UINT32_MAX, .guid = guid, .random = give_number};

    memset(&cw, 0, sizeof(cw));
    next_number = 4;
    rcm_init(&cw.cm, &attr);
    cw.path = said.path;
    if (!calls) {
        memcpy(cw.path.local, said.path.peer, 16);
        memcpy(cw.path.peer, said.path.local, 16);
    }
}

static void read_capture(const char *name)
{
    memset(&said, 0, sizeof(said));
    assert_true(roce_capture_each(name, take) > 0);
}

/* It receives what the kernel sent. */
static void receives(enum rcm_attribute attribute)
{
    of(attribute);
    rcm_input(&cw.cm, &cw.path, said.mad[attribute - RCM_REQ], RCM_MAD_OCTETS, cw.now_us);
}

/* It says what the kernel said. */
static void says_the_same(enum rcm_attribute attribute)
{
    of(attribute);
    rcm_hear(attribute);
    assert_memory_equal(cw.packet + BTH_OCTETS + DETH_OCTETS, said.mad[attribute - RCM_REQ], RCM_MAD_OCTETS);
    rcm_hear_nothing();
}

static void play_passive(void)
{
    const struct rcm_message *rep = of(RCM_REP);
    const struct rcm_accept accept = {
        .terms = rep->terms, .timewait_us = TIMEWAIT_US, .data = rep->data, .octets = rep->octets};

    prepare(false, rep->guid);
    cw.listener = (struct rcm_listener){.service = of(RCM_REQ)->service, .backlog = 4, .rdma_cm = true};
    rcm_listen(&cw.cm, &cw.listener);
    receives(RCM_REQ);
    rcm_expect(RCM_EVENT_REQUEST);
    assert_memory_equal(cw.event.ip->source, cw.path.peer, 16);
    next_number = 0;
    numbers[0] = rep->local_id;
    rcm_take(&cw.cm, &cw.conn);
    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), 0);
    says_the_same(RCM_REP);
    receives(RCM_RTU);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    receives(RCM_DREQ);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    says_the_same(RCM_DREP);
    rcm_forget(&cw.cm, &cw.conn);
    rcm_assert_empty(&cw.cm);
}

static struct rcm_connect connect_as(const struct rcm_message *m)
{
    struct rcm_connect connect = {.path = said.path,
                                  .service = m->service,
                                  .rdma_cm = true,
                                  .terms = m->terms,
                                  .flow_label = m->route.flow_label,
                                  .traffic_class = m->route.traffic_class,
                                  .hop_limit = m->route.hop_limit,
                                  .ack_timeout = m->route.ack_timeout,
                                  .response_timeout = m->remote_timeout,
                                  .cm_retries = m->cm_retries,
                                  .timewait_us = TIMEWAIT_US,
                                  .data = m->data + RCM_IP_OCTETS,
                                  .octets = m->octets - RCM_IP_OCTETS};
    struct rcm_ip ip;

    assert_true(rcm_ip_decode(&ip, m->data));
    connect.source_port = ip.port;
    next_number = 0;
    numbers[0] = m->local_id;
    numbers[1] = m->transaction;
    numbers[2] = said.message[RCM_DREQ - RCM_REQ].transaction;
    return connect;
}

static void play_active(void)
{
    struct rcm_connect connect;

    prepare(true, of(RCM_REQ)->guid);
    connect = connect_as(of(RCM_REQ));
    assert_int_equal(rcm_connect(&cw.cm, &cw.conn, &connect, cw.now_us), 0);
    says_the_same(RCM_REQ);
    receives(RCM_REP);
    rcm_expect(RCM_EVENT_ANSWERED);
    assert_int_equal(rcm_confirm(&cw.cm, &cw.conn), 0);
    says_the_same(RCM_RTU);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    says_the_same(RCM_DREQ);
    receives(RCM_DREP);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_forget(&cw.cm, &cw.conn);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-02, ROCE-CM-07, ROCE-CM-09 */
static void connections(void **state)
{
    static const char *const captures[] = {"rping", "rping6", "nfs3"};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        read_capture(captures[i]);
        play_passive();
        play_active();
    }
}

/* ROCE-CM-05: no one listens */
static void rejected(void **state)
{
    struct rcm_connect connect;

    (void)state;
    read_capture("reject");
    prepare(false, 0);
    receives(RCM_REQ);
    rcm_expect_nothing();
    says_the_same(RCM_REJ);
    prepare(true, of(RCM_REQ)->guid);
    connect = connect_as(of(RCM_REQ));
    assert_int_equal(rcm_connect(&cw.cm, &cw.conn, &connect, cw.now_us), 0);
    says_the_same(RCM_REQ);
    receives(RCM_REJ);
    assert_int_equal(rcm_expect(RCM_EVENT_REJECTED)->reason, RCM_NO_SERVICE);
    rcm_expect(RCM_EVENT_GONE);
}

/* ROCE-CM-10 */
static void datagrams(void **state)
{
    const struct rcm_message *rep;
    struct rcm_accept accept;
    struct rcm_connect connect;

    (void)state;
    read_capture("udaddy");
    rep = of(RCM_SIDR_REP);
    accept = (struct rcm_accept){.terms = rep->terms, .data = rep->data, .octets = rep->octets};
    prepare(false, 0);
    cw.datagrams =
        (struct rcm_listener){.service = of(RCM_SIDR_REQ)->service, .backlog = 4, .rdma_cm = true, .datagram = true};
    rcm_listen(&cw.cm, &cw.datagrams);
    receives(RCM_SIDR_REQ);
    rcm_expect(RCM_EVENT_REQUEST);
    next_number = 0;
    numbers[0] = 5;
    rcm_take(&cw.cm, &cw.conn);
    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), 0);
    says_the_same(RCM_SIDR_REP);

    prepare(true, 0);
    connect = connect_as(of(RCM_SIDR_REQ));
    assert_int_equal(rcm_resolve(&cw.cm, &cw.conn, &connect, cw.now_us), 0);
    says_the_same(RCM_SIDR_REQ);
    receives(RCM_SIDR_REP);
    assert_int_equal(rcm_expect(RCM_EVENT_RESOLVED)->message->terms.qpn, rep->terms.qpn);
    rcm_expect(RCM_EVENT_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections),
        cmocka_unit_test(rejected),
        cmocka_unit_test(datagrams),
    };

    return cmocka_run_group_tests_name("roce_rcm_linux", tests, NULL, NULL);
}
