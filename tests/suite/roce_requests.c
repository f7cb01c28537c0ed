/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_requests.c - what peers ask of a listener over RoCE, from bare sockets: as many requests as wait, one fewer and
 * one more, and the request of a peer that has restarted. ROCE-CM-05, ROCE-CM-12. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "endpoint/objects.h"
#include "roce/icrc.h"
#include "roce/rcm.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum {
    HOSTS = RCM_SHARE + 1,               /* addresses of peers: each has its share of the requests, and one more */
    SHARE = RCM_BACKLOG_MAX / RCM_SHARE, /* requests of an address that wait */
    PACKET = RCM_PACKET_OCTETS + ICRC_OCTETS,
    STEP = 32,       /* requests that are sent before their events are taken */
    PAUSE_US = 2000, /* after them: the listener's socket keeps up */
    FIRST_QPN = 0x100,
};
static const char ours[] = "127.0.0.1";

static struct hands h;
static struct rddp_event_channel *channel;
static struct rddp_listener *listener;
static struct rddp_request *request[RCM_BACKLOG_MAX + 1];
static uint32_t requests;

static struct peer {
    struct sockaddr_in address;
    int fd;
} peer[HOSTS];

/* --- bare peers ----------------------------------------------------------------------------------------------------
 */

static struct sockaddr_in address_of_ours(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(ours)};
}

static void open_peer(struct peer *p, unsigned number)
{
    int discover = IP_PMTUDISC_DO, on = 1;

    p->address = address_of_ours(ROCE_PORT); /* where it is answered */
    p->address.sin_addr.s_addr = htonl(0x7f000014 + number);
    p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(p->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    assert_int_equal(setsockopt(p->fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)), 0);
    assert_int_equal(bind(p->fd, (struct sockaddr *)&p->address, sizeof(p->address)), 0);
}

static void say(const struct peer *p, const struct rcm_message *m)
{
    struct sockaddr_in to = address_of_ours(ROCE_PORT);
    struct icrc_path path = {.source_port = ntohs(p->address.sin_port), .destination_port = ROCE_PORT};
    uint8_t mad[RCM_MAD_OCTETS], packet[PACKET];

    memcpy(path.source, &p->address.sin_addr, 4);
    memcpy(path.destination, &to.sin_addr, 4);
    assert_true(rcm_encode(m, mad));
    rcm_packet(packet, mad, 0);
    put32le(packet + RCM_PACKET_OCTETS, icrc_head(icrc_begin(&path, 0, PACKET), packet, RCM_PACKET_OCTETS));
    assert_int_equal(sendto(p->fd, packet, PACKET, 0, (struct sockaddr *)&to, sizeof(to)), PACKET);
}

/* Takes the next message of this kind; others may come before it. */
static struct rcm_message hear_message(const struct peer *p, enum rcm_attribute attribute)
{
    static uint8_t packet[2048];
    struct pollfd fd = {p->fd, POLLIN, 0};
    struct rcm_message m;

    do {
        assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
        assert_int_equal(recv(p->fd, packet, sizeof(packet), 0), PACKET);
        assert_int_equal(rcm_decode(&m, packet + PACKET - ICRC_OCTETS - RCM_MAD_OCTETS, RCM_MAD_OCTETS), RCM_OK);
    } while (m.attribute != attribute);
    return m;
}

static bool hears_nothing(const struct peer *p)
{
    struct pollfd fd = {p->fd, POLLIN, 0};

    return poll(&fd, 1, 0) == 0;
}

static void map_gid(uint8_t *gid, struct in_addr address)
{
    memset(gid, 0, 16);
    gid[10] = gid[11] = 0xff;
    memcpy(gid + 12, &address, 4);
}

/* Asks for a connection, with `id` as comm ID, transaction and part of the queue pair's number. */
static void ask_for(const struct peer *p, uint32_t id, uint32_t qpn)
{
    struct sockaddr_storage at;
    struct rcm_ip ip = {.port = 1};
    uint8_t data[RCM_PRIVATE_REQ] = {0};
    struct rcm_message m = {
        .attribute = RCM_REQ,
        .transaction = id,
        .local_id = id,
        .terms = {.qpn = qpn, .mtu = rcm_mtu_code(1024), .pkey = BTH_PKEY_DEFAULT, .retries = 7, .rnr_retries = 7},
        .remote_timeout = 20,
        .local_timeout = 20,
        .cm_retries = RCM_RETRIES_MAX,
        .data = data,
        .octets = sizeof(data),
    };

    assert_int_equal(rddp_listener_addr(listener, &at), 0);
    m.service = rcm_service(RCM_SPACE_TCP, ntohs(((struct sockaddr_in *)&at)->sin_port));
    map_gid(ip.source, p->address.sin_addr);
    map_gid(ip.destination, address_of_ours(0).sin_addr);
    memcpy(m.route.local_gid, ip.source, 16);
    memcpy(m.route.remote_gid, ip.destination, 16);
    rcm_ip_encode(&ip, data);
    say(p, &m);
}

/* --- our end -------------------------------------------------------------------------------------------------------
 */

static struct rddp_event take_event(enum rddp_event_type type)
{
    struct pollfd fd = {rddp_event_channel_fd(channel), POLLIN, 0};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(channel, &event), 0);
    copy = *event;
    rddp_ack_event(event);
    assert_int_equal(copy.type, type);
    return copy;
}

static int open_all(void **state)
{
    struct sockaddr_in address = address_of_ours(0);
    struct rddp_wire_attr wire;

    (void)state;
    hands_open(&h, RDDP_QPT_CONNECTED, ours);
    channel = rddp_create_event_channel(h.end[0].context);
    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    wire.startup_timeout_ms = 120000;
    listener = rddp_listen(channel, (struct sockaddr *)&address, sizeof(address), RCM_BACKLOG_MAX, &wire, NULL);
    assert_non_null(listener);
    for (unsigned i = 0; i < HOSTS; i++)
        open_peer(&peer[i], i);
    requests = 0;
    return 0;
}

static int close_all(void **state)
{
    struct rddp_event *event;

    (void)state;
    for (unsigned i = 0; i < HOSTS; i++)
        close(peer[i].fd);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    if (h.end[0].qp)
        assert_int_equal(rddp_destroy_qp(h.end[0].qp), 0);
    h.end[0].qp = NULL;
    fcntl(rddp_event_channel_fd(channel), F_SETFL, O_NONBLOCK);
    while (!rddp_get_event(channel, &event))
        rddp_ack_event(event);
    assert_int_equal(rddp_destroy_event_channel(channel), 0);
    hands_close(&h);
    return 0;
}

/* Asks until there are `wanted` requests in all, and takes their events. */
static void ask_until(uint32_t wanted)
{
    for (uint32_t asked = requests; requests < wanted;) {
        for (uint32_t n = 0; n < STEP && asked < wanted; n++, asked++)
            ask_for(&peer[asked / SHARE], 1 + asked, FIRST_QPN + asked);
        while (requests < asked)
            request[requests++] = take_event(RDDP_EVENT_CONNECT_REQUEST).request;
    }
}

static void limit(void **state)
{
    struct rcm_message m;

    (void)state;
    ask_until(RCM_BACKLOG_MAX - 1);
    assert_true(hears_nothing(&peer[0]));
    ask_until(RCM_BACKLOG_MAX);
    assert_true(hears_nothing(&peer[0]));
    ask_until(RCM_BACKLOG_MAX + 1); /* the oldest gives way */
    m = hear_message(&peer[0], RCM_REJ);
    assert_int_equal(m.reason, RCM_NO_RESOURCES);
    assert_int_equal(m.remote_id, 1);
    assert_true(hears_nothing(&peer[0]));
    for (unsigned i = 1; i < HOSTS; i++)
        assert_true(hears_nothing(&peer[i]));
    assert_int_equal(rddp_reject(request[0], NULL, 0), 0); /* it is gone, and is not told again */
    for (uint32_t i = 1; i < requests; i++) {
        assert_int_equal(rddp_reject(request[i], NULL, 0), 0);
        m = hear_message(&peer[i / SHARE], RCM_REJ);
        assert_int_equal(m.reason, RCM_CONSUMER);
        assert_int_equal(m.remote_id, 1 + i);
    }
}

/* Has the library's thread used the processor in the last moment? */
static bool is_busy(void)
{
    clock_t before = clock();

    usleep(100 * PAUSE_US);
    return clock() - before > CLOCKS_PER_SEC / 200;
}

/* Requests whose turn to give way comes before the application takes an event: not all of their events are kept. */
static void untaken(void **state)
{
    enum { ASKED = LISTENER_UNTAKEN_MAX + RCM_BACKLOG_MAX };
    struct rddp_event *event;
    uint32_t taken = 0;

    (void)state;
    for (uint32_t i = 0; i < ASKED; i++) {
        ask_for(&peer[i % HOSTS], 1 + i, FIRST_QPN + i);
        if (i % STEP == 0)
            usleep(PAUSE_US);
    }
    while (is_busy())
        ;
    fcntl(rddp_event_channel_fd(channel), F_SETFL, O_NONBLOCK);
    for (; !rddp_get_event(channel, &event); taken++) {
        (void)rddp_reject(event->request, NULL, 0);
        rddp_ack_event(event);
    }
    assert_int_equal(taken, LISTENER_UNTAKEN_MAX);
    fcntl(rddp_event_channel_fd(channel), F_SETFL, 0);
    ask_for(&peer[0], 1 + ASKED, FIRST_QPN + ASKED); /* there is room again */
    assert_int_equal(rddp_reject(take_event(RDDP_EVENT_CONNECT_REQUEST).request, NULL, 0), 0);
}

/* The peer knows nothing of the connection that its queue pair had: it is refused as stale, and that connection ends.
 */
static void restarted(void **state)
{
    struct rcm_message m;

    (void)state;
    ask_for(&peer[0], 1, FIRST_QPN);
    h.qp.send_cq = h.qp.recv_cq = h.end[0].cq;
    h.end[0].qp = rddp_create_qp(h.end[0].pd, &h.qp);
    assert_int_equal(rddp_accept(take_event(RDDP_EVENT_CONNECT_REQUEST).request, h.end[0].qp, NULL), 0);
    m = hear_message(&peer[0], RCM_REP);
    m = (struct rcm_message){
        .attribute = RCM_RTU, .transaction = m.transaction, .local_id = 1, .remote_id = m.local_id};
    say(&peer[0], &m);
    (void)take_event(RDDP_EVENT_ESTABLISHED);
    hand_receive(&h.end[0], 7, 0, 64);

    ask_for(&peer[0], 2, FIRST_QPN);
    assert_int_equal(hear_message(&peer[0], RCM_REJ).reason, RCM_STALE);
    m = hear_message(&peer[0], RCM_DREQ);
    assert_int_equal(m.remote_id, 1);
    assert_int_equal(m.remote_qpn, FIRST_QPN);
    (void)take_event(RDDP_EVENT_DISCONNECTED);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_WR_FLUSH_ERR);
    m = (struct rcm_message){
        .attribute = RCM_DREP, .transaction = m.transaction, .local_id = 1, .remote_id = m.local_id};
    say(&peer[0], &m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limit, open_all, close_all),
        cmocka_unit_test_setup_teardown(untaken, open_all, close_all),
        cmocka_unit_test_setup_teardown(restarted, open_all, close_all),
    };

    if (!network_alone()) {
        print_message("no namespace here: requests to port 4791 would come to other tests, too\n");
        return 77;
    }
    return cmocka_run_group_tests_name("roce_requests", tests, NULL, NULL);
}
