/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_hostile.c - peers that do not play by the rules, in front of a server over a device: they take nothing,
 * confirm nothing, or do both one octet at a time. Everybody else is served meanwhile, what they make the server hold
 * is bounded, and the application learns of their end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tcp/io/packet_device.h"
#include "endpoint/loop.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/pair.h"
#include "tests/suite/lib/raw_peer.h"

enum {
    NET = 3,
    PORT = 4000,
    LENGTH = 1 << 20,
    WRITES = 32, /* to the hostile peer */
    ROUNDS = 24, /* of an honest one beside it */
    CLOSE_MS = 300,
    GIVE_UP_US = 3000000, /* longer than a busy machine keeps the peer, which runs in this thread, from its answer */
    WINDOW = 65535,
    HEARD_MAX = 2000,    /* segments in that time to a peer that answers each: an answer is not answered again */
    FEW = 8,             /* connections at once, where they are too many */
    HELD_MAX = 20 << 20, /* octets: what one connection's buffers hold at most, with a window of 1 MiB */
};

/* How the hostile peer treats a segment that comes. */
enum habit {
    NEVER_READS,   /* acknowledges what its window takes; the window closes, and each probe is answered so */
    VANISHES,      /* the same, but no probe is answered */
    NEVER_ACKS,    /* nothing is acknowledged at all */
    ACKS_AN_OCTET, /* each segment that comes acknowledges one octet more */
    TAKES_AN_OCTET /* acknowledges everything, and opens its window by one octet */
};

static const struct row over_packets = {.name = "hostile", .packet = true, .crc = true, .mpa_revision = 2};

struct scene {
    struct pair pair;
    struct rddp_listener *listener; /* without a start-up: the hostile peers begin with TCP alone */
    struct rddp_cq *cq;
    struct rddp_qp *qp; /* its connection is the hostile one */
    struct sockaddr_storage addr;
    int fd;
    struct raw_peer peer;
    enum habit habit;
    size_t resident;
};

static size_t resident_octets(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void open_hostile_qp(struct scene *scene)
{
    struct rddp_qp_attr attr;

    scene->cq = rddp_create_cq(scene->pair.server.context, 2 * WRITES, NULL, NULL);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = scene->cq;
    scene->qp = rddp_create_qp(scene->pair.server.pd, &attr);
    assert_non_null(scene->qp);
}

static struct scene scene_of_test;

static int scene_open(void **state)
{
    struct scene *scene = &scene_of_test;
    struct rddp_device *device;
    struct rddp_wire_attr wire;
    socklen_t length;

    memset(scene, 0, sizeof(*scene));
    scene->fd = raw_peer_device(NET);
    pair_open(&scene->pair, &over_packets);
    device = scene->pair.server.device;
    /* A knob that no application has: otherwise a test would wait for R2 of RFC 9293 3.8.3, 100 seconds. */
    loop_lock(device->loop);
    device->host.attr.tcp.give_up_us = GIVE_UP_US;
    loop_unlock(device->loop);
    rddp_wire_attr_init(&wire);
    wire.device = device;
    wire.immediate = true;
    wire.crc = false;
    wire.close_timeout_ms = CLOSE_MS;
    length = network_address(&scene->addr, 2, 2, PORT);
    scene->listener = rddp_listen(scene->pair.server.events, (struct sockaddr *)&scene->addr, length, 16, &wire, NULL);
    assert_non_null(scene->listener);
    pair_connect(&scene->pair);
    open_hostile_qp(scene);
    *state = scene;
    return 0;
}

static int scene_close(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(rddp_destroy_qp(scene->qp), 0);
    assert_int_equal(rddp_destroy_cq(scene->cq), 0);
    assert_int_equal(rddp_destroy_listener(scene->listener), 0);
    pair_close(&scene->pair);
    close(scene->fd);
    return 0;
}

/* --- the hostile peer ------------------------------------------------------------------------------------------ */

static void react(struct scene *scene)
{
    struct raw_peer *peer = &scene->peer;
    uint32_t came = peer->received - peer->acked;

    switch (scene->habit) {
    case NEVER_READS:
    case VANISHES:
        if (scene->habit == VANISHES && !came)
            return;
        peer->acked = peer->received;
        peer->window = (uint16_t)(peer->window - (came < peer->window ? came : peer->window));
        break;
    case NEVER_ACKS:
        return;
    case ACKS_AN_OCTET:
        peer->acked += came != 0;
        break;
    case TAKES_AN_OCTET:
        peer->acked = peer->received;
        peer->window = 1;
        break;
    }
    raw_peer_say(peer, UTCP_ACK, NULL, 0);
}

/* Lets it react to what has come. */
static void hostile_work(struct scene *scene, int limit_ms)
{
    struct utcp_segment s;

    for (int i = 0; i < 64 && raw_peer_hear(&scene->peer, &s, i ? 0 : limit_ms); i++)
        react(scene);
}

static void connect_hostile(struct scene *scene, enum habit habit)
{
    struct rddp_event request;

    scene->habit = habit;
    assert_true(
        raw_peer_connect(&scene->peer, scene->fd, NET, (uint16_t)(PORT + habit), &scene->addr, WINDOW, PAIR_WAIT_MS));
    request = pair_event(&scene->pair.server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_accept(request.request, scene->qp, NULL), 0);
    pair_event(&scene->pair.server, RDDP_EVENT_ESTABLISHED);
}

/* More than the buffers of a connection hold; where to is the peer's business. */
static void post_writes(struct scene *scene)
{
    struct rddp_sge sge = pair_sge(&scene->pair.server, 0, LENGTH);
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE, .rkey = 1};

    wr.send_flags = RDDP_SEND_SIGNALED;
    for (wr.wr_id = 0; wr.wr_id < WRITES; wr.wr_id++)
        assert_int_equal(rddp_post_send(scene->qp, &wr, NULL), 0);
}

static enum rddp_qp_state state_of(const struct scene *scene)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(scene->qp, &info), 0);
    return info.state;
}

/* --- the honest one -------------------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits for one completion; the hostile peer works meanwhile. */
static void await(struct scene *scene, struct side *side)
{
    uint64_t until = now_ms() + PAIR_WAIT_MS;
    struct rddp_wc wc;

    while (!rddp_poll_cq(side->cq, 1, &wc)) {
        hostile_work(scene, 0);
        if (now_ms() > until)
            fail_msg("the honest peer waits; log:\n%s", side->log);
    }
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
}

static void be_honest(struct scene *scene, unsigned rounds)
{
    struct pair *pair = &scene->pair;

    for (unsigned i = 0; i < rounds; i++) {
        pair_pattern(pair->client.buffer, LENGTH, i);
        pair_receive(&pair->server, i, LENGTH, 1);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, LENGTH, 0, 0), 0);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, i, 0, 1, 0, RDDP_SEND_SIGNALED), 0);
        await(scene, &pair->server);
        await(scene, &pair->client);
        assert_true(pair_is_pattern(pair->server.buffer, LENGTH, i));
    }
}

/* --- the tests ------------------------------------------------------------------------------------------------- */

/* What the application learns: each request completes, with an error if its octets had not left, and the connection
 * ends once. */
static void expect_end(struct scene *scene, int status)
{
    struct rddp_wc wc[WRITES];
    int got = 0, flushed = 0;
    struct pollfd fd = {.fd = rddp_event_channel_fd(scene->pair.server.events), .events = POLLIN};

    for (uint64_t until = now_ms() + PAIR_WAIT_MS; poll(&fd, 1, 0) != 1 && now_ms() < until;)
        hostile_work(scene, 10);
    assert_int_equal(pair_event(&scene->pair.server, RDDP_EVENT_DISCONNECTED).status, status);
    got = rddp_poll_cq(scene->cq, WRITES, wc);
    assert_int_equal(got, WRITES);
    for (int i = 0; i < got; i++)
        flushed += wc[i].status != RDDP_WC_SUCCESS;
    assert_in_range(flushed, WRITES / 2, WRITES);
    assert_true(state_of(scene) == RDDP_QP_ERROR || state_of(scene) == RDDP_QP_CLOSED);
}

/* ThreadSanitizer keeps more for each octet that is touched than the octet itself, so its numbers say nothing. */
static void expect_bounded(const struct scene *scene)
{
#ifndef __SANITIZE_THREAD__
    assert_true(resident_octets() < scene->resident + HELD_MAX);
#else
    (void)scene;
#endif
}

static void beside(struct scene *scene, enum habit habit)
{
    uint64_t begun, alone;

    connect_hostile(scene, habit);
    begun = now_ms();
    be_honest(scene, ROUNDS);
    alone = now_ms() - begun;
    scene->resident = resident_octets();
    post_writes(scene);
    begun = now_ms();
    be_honest(scene, ROUNDS);
    print_message("%d MiB alone in %d ms, beside it in %d ms\n", ROUNDS, (int)alone, (int)(now_ms() - begun));
    expect_bounded(scene);
}

/* R2 of RFC 9293 3.8.3: it is given up, whatever it had said. */
static void is_given_up(struct scene *scene, enum habit habit)
{
    beside(scene, habit);
    expect_end(scene, -ETIMEDOUT);
    be_honest(scene, 1);
}

/* "As long as the receiving TCP continues to send acknowledgments in response to the probe segments, the sending TCP
 * MUST allow the connection to stay open" (RFC 9293 3.8.6.1): the application decides. */
static void stays(struct scene *scene, enum habit habit)
{
    uint64_t begun;
    uint32_t heard;

    beside(scene, habit);
    begun = now_ms();
    heard = scene->peer.heard;
    for (uint64_t until = begun + 4 * GIVE_UP_US / 3000; now_ms() < until;)
        hostile_work(scene, 10);
    if (state_of(scene) != RDDP_QP_CONNECTED)
        fail_msg("given up after %d ms; log:\n%s", (int)(now_ms() - begun), scene->pair.server.log);
    assert_in_range(scene->peer.heard - heard, 1, HEARD_MAX);
    assert_int_equal(rddp_disconnect(scene->qp), 0);
    expect_end(scene, -ETIMEDOUT);
    be_honest(scene, 1);
}

static void never_reads(void **state)
{
    stays(*state, NEVER_READS);
}

static void vanishes(void **state)
{
    is_given_up(*state, VANISHES);
}

static void never_acks(void **state)
{
    is_given_up(*state, NEVER_ACKS);
}

static void acks_an_octet(void **state)
{
    stays(*state, ACKS_AN_OCTET);
}

static void takes_an_octet(void **state)
{
    stays(*state, TAKES_AN_OCTET);
}

/* --- too many of them ------------------------------------------------------------------------------------------ */

static void limit_connections(struct scene *scene, uint32_t connections)
{
    struct rddp_device *device = scene->pair.server.device;

    loop_lock(device->loop);
    device->attr.connections = connections;
    loop_unlock(device->loop);
}

/* A second honest client, while the first is served. */
static void another_connects(struct scene *scene)
{
    struct pair *pair = &scene->pair;
    struct rddp_qp *client = pair->client.qp, *server = pair->server.qp;

    pair_connect(pair);
    be_honest(scene, 1);
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_destroy_qp(pair->server.qp), 0);
    pair->client.qp = client;
    pair->server.qp = server;
    be_honest(scene, 1);
}

/* Peers that are turned away and never acknowledge the end: the one that has been silent longest gives way. */
static void orphans(void **state)
{
    struct scene *scene = *state;

    limit_connections(scene, FEW);
    for (uint16_t i = 0; i < 3 * FEW; i++) {
        assert_true(
            raw_peer_connect(&scene->peer, scene->fd, NET, (uint16_t)(PORT + i), &scene->addr, WINDOW, PAIR_WAIT_MS));
        assert_int_equal(rddp_reject(pair_event(&scene->pair.server, RDDP_EVENT_CONNECT_REQUEST).request, NULL, 0), 0);
    }
    scene->habit = NEVER_ACKS;
    another_connects(scene);
}

/* Peers that connect and never begin the start-up: likewise. */
static void silent(void **state)
{
    struct scene *scene = *state;

    limit_connections(scene, FEW);
    for (uint16_t i = 0; i < 3 * FEW; i++)
        assert_true(raw_peer_connect(&scene->peer, scene->fd, NET, (uint16_t)(PORT + i), &scene->pair.addr, WINDOW,
                                     PAIR_WAIT_MS));
    scene->habit = NEVER_ACKS;
    another_connects(scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(never_reads),    TEST(vanishes), TEST(never_acks), TEST(acks_an_octet),
        TEST(takes_an_octet), TEST(orphans),  TEST(silent),
    };

    if (!network_own()) {
        print_message("cannot run here: no network namespace, or no TUN device\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
