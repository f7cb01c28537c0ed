/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c - two connected queue pairs over loopback, and a runner that repeats the tests over every way to connect
 * them. */
#include "tests/suite/lib/pair.h"
#include "tests/suite/lib/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENT_POLLS = 100 };

enum { RTR_ALL = RDDP_RTR_SEND | RDDP_RTR_WRITE | RDDP_RTR_READ };

#ifdef __SANITIZE_THREAD__
enum { ONLY_THREADS = true };
#else
enum { ONLY_THREADS = false };
#endif

static const struct row rows[] = {
    {.name = "crc", .threads = true, .crc = true, .mpa_revision = 2},
    {.name = "plain", .mpa_revision = 2},
    {.name = "markers", .crc = true, .client_markers = true, .server_markers = true, .mpa_revision = 2},
    {.name = "client markers, no crc", .client_markers = true, .mpa_revision = 1},
    {.name = "server markers", .crc = true, .server_markers = true, .mpa_revision = 2},
    {.name = "revision 1, v6", .crc = true, .v6 = true, .mpa_revision = 1},
    {.name = "peer to peer", .crc = true, .peer_to_peer = true, .mpa_revision = 2, .rtr = RTR_ALL},
    {.name = "peer to peer by send", .crc = true, .peer_to_peer = true, .mpa_revision = 2, .rtr = RDDP_RTR_SEND},
    {.name = "peer to peer by read", .crc = true, .peer_to_peer = true, .mpa_revision = 2, .rtr = RDDP_RTR_READ},
    {.name = "immediate", .immediate = true, .mpa_revision = 2},
    {.name = "aligned, v6", .crc = true, .client_markers = true, .aligned = true, .v6 = true, .mpa_revision = 2},
    {.name = "three loops", .threads = true, .crc = true, .loops = 3, .mpa_revision = 2},
    {.name = "packets", .packet = true, .crc = true, .aligned = true, .mpa_revision = 2},
    {.name = "packets, markers, losses",
     .threads = true,
     .packet = true,
     .lose = 1000,
     .crc = true,
     .client_markers = true,
     .server_markers = true,
     .loops = 2,
     .mpa_revision = 2},
    {.name = "packets, no crc", .packet = true, .lose = 100, .mpa_revision = 1},
    {.name = "packets, rdmatcp",
     .packet = true,
     .lose = 1000,
     .wire = RDDP_WIRE_RDMATCP,
     .silent = true,
     .immediate = true,
     .mpa_revision = 2},
    {.name = "hand-off", .hand_off = true, .crc = true, .aligned = true, .mpa_revision = 2},
    {.name = "hand-off, v6, markers, losses",
     .threads = true,
     .hand_off = true,
     .v6 = true,
     .lose = 1000,
     .crc = true,
     .client_markers = true,
     .server_markers = true,
     .loops = 2,
     .mpa_revision = 2},
    {.name = "hand-off, rdmatcp",
     .hand_off = true,
     .wire = RDDP_WIRE_RDMATCP,
     .silent = true,
     .immediate = true,
     .mpa_revision = 2},
#ifndef RDDP_WITHOUT_SCTP
    {.name = "sctp", .wire = RDDP_WIRE_SCTP, .crc = true, .mpa_revision = 2},
    {.name = "sctp, v6, three loops",
     .threads = true,
     .wire = RDDP_WIRE_SCTP,
     .crc = true,
     .v6 = true,
     .loops = 3,
     .mpa_revision = 2},
#endif
#ifndef RDDP_WITHOUT_ROCE
    {.name = "roce", .wire = RDDP_WIRE_ROCE, .crc = true, .mpa_revision = 2},
    {.name = "roce, v6, three loops",
     .threads = true,
     .wire = RDDP_WIRE_ROCE,
     .crc = true,
     .v6 = true,
     .loops = 3,
     .mpa_revision = 2},
#endif
    {.name = "rdmatcp",
     .threads = true,
     .wire = RDDP_WIRE_RDMATCP,
     .silent = true,
     .immediate = true,
     .mpa_revision = 2},
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- one side -------------------------------------------------------------------------------------------------- */

static void keep_line(void *user, enum rddp_log_level level, const char *line)
{
    struct side *side = user;
    int n;

    pthread_mutex_lock(&side->log_lock);
    n = snprintf(side->log + side->logged, sizeof(side->log) - side->logged, "%d %s\n", level, line);
    if (n > 0 && (size_t)n < sizeof(side->log) - side->logged)
        side->logged += (size_t)n;
    pthread_mutex_unlock(&side->log_lock);
}

bool pair_said(struct side *side, const char *text)
{
    bool said;

    pthread_mutex_lock(&side->log_lock);
    said = strstr(side->log, text);
    pthread_mutex_unlock(&side->log_lock);
    return said;
}

static void open_device(struct side *side, const struct row *row, uint32_t net)
{
    struct sockaddr_storage own, neighbor;
    struct rddp_device_attr attr;

    if (!row->packet && !row->hand_off)
        return;
    network_address(&own, net, 2, 0);
    network_address(&neighbor, net, 1, 0);
    rddp_device_attr_init(&attr);
    attr.hand_off = row->hand_off;
    if (row->packet) {
        attr.address = (struct sockaddr *)&own;
        attr.neighbor = (struct sockaddr *)&neighbor;
        attr.prefix = 24;
    }
    attr.lose = row->lose;
    attr.lose_seed = net;
    side->device = rddp_open_device(side->context, &attr);
    assert_non_null(side->device);
}

static void open_side(struct side *side, const struct row *row)
{
    struct rddp_context_attr attr;

    memset(side, 0, sizeof(*side));
    pthread_mutex_init(&side->log_lock, NULL);
    rddp_context_attr_init(&attr);
    attr.log_level = RDDP_LOG_INFO;
    attr.log = keep_line;
    attr.log_user = side;
    if (row->loops)
        attr.loops = row->loops;
    attr.spin_us = row->spin_us;
    side->context = rddp_open(&attr);
    assert_non_null(side->context);
    side->events = rddp_create_event_channel(side->context);
    assert_int_equal(fcntl(rddp_event_channel_fd(side->events), F_SETFL, O_NONBLOCK), 0);
    side->channel = rddp_create_comp_channel(side->context);
    side->pd = rddp_alloc_pd(side->context);
    side->cq = rddp_create_cq(side->context, 4 * PAIR_DEPTH, side, side->channel);
    side->guarded = malloc(PAIR_BUFFER + 2 * PAIR_GUARD);
    assert_non_null(side->guarded);
    memset(side->guarded, 0xa5, PAIR_BUFFER + 2 * PAIR_GUARD);
    side->buffer = side->guarded + PAIR_GUARD;
    side->mr = rddp_reg_mr(side->pd, side->buffer, PAIR_BUFFER,
                           RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_WRITE |
                               RDDP_ACCESS_REMOTE_ATOMIC | RDDP_ACCESS_ZERO_BASED);
    assert_non_null(side->mr);
}

static void check_guards(const struct side *side)
{
    for (size_t i = 0; i < PAIR_GUARD; i++) {
        assert_int_equal(side->guarded[i], 0xa5);
        assert_int_equal(side->buffer[PAIR_BUFFER + i], 0xa5);
    }
}

static void close_side(struct side *side)
{
    struct rddp_event *event;

    if (side->qp)
        assert_int_equal(rddp_destroy_qp(side->qp), 0);
    if (side->device)
        assert_int_equal(rddp_close_device(side->device), 0);
    while (rddp_get_event(side->events, &event) == 0)
        rddp_ack_event(event);
    check_guards(side);
    assert_int_equal(rddp_dereg_mr(side->mr), 0);
    assert_int_equal(rddp_destroy_cq(side->cq), 0);
    assert_int_equal(rddp_destroy_comp_channel(side->channel), 0);
    assert_int_equal(rddp_destroy_event_channel(side->events), 0);
    assert_int_equal(rddp_dealloc_pd(side->pd), 0);
    assert_int_equal(rddp_close(side->context), 0);
    pthread_mutex_destroy(&side->log_lock);
    free(side->guarded);
}

/* --- both ------------------------------------------------------------------------------------------------------ */

static uint16_t udp_port;
static pid_t udp_port_pid;

/* Returns an unused UDP port, because other programs run beside this one. */
static uint16_t free_udp_port(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    socklen_t length = sizeof(any);
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &length), 0);
    close(fd);
    return ntohs(any.sin6_port);
}

struct rddp_wire_attr pair_wire(const struct row *row, bool server)
{
    struct rddp_wire_attr wire;

    rddp_wire_attr_init(&wire);
    wire.wire = row->wire;
    wire.sctp_provider = row->sctp;
    wire.crc = row->crc;
    wire.markers = server ? row->server_markers : row->client_markers;
    wire.mpa_revision = row->mpa_revision;
    wire.peer_to_peer = row->peer_to_peer;
    wire.immediate = row->immediate;
    wire.aligned = row->aligned;
    if (row->peer_to_peer)
        wire.rtr = row->rtr;
    wire.first_delay_ms = 0;
    if (ONLY_THREADS) /* everything is slow then */
        wire.close_timeout_ms = PAIR_WAIT_MS / 2;
    if (row->silent) /* the peer learns that the connection has ended at once, or the test fails */
        wire.close_timeout_ms = 2 * PAIR_WAIT_MS;
    if (udp_port_pid != getpid()) { /* a child has its own */
        udp_port = free_udp_port();
        udp_port_pid = getpid();
    }
    wire.sctp_udp_port = udp_port;
    return wire;
}

static socklen_t loopback(const struct row *row, struct sockaddr_storage *addr)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};

    memset(addr, 0, sizeof(*addr));
    if (row->v6)
        memcpy(addr, &v6, sizeof(v6));
    else
        memcpy(addr, &v4, sizeof(v4));
    return row->v6 ? sizeof(v6) : sizeof(v4);
}

void pair_open(struct pair *pair, const struct row *row)
{
    struct rddp_wire_attr wire = pair_wire(row, true);
    socklen_t length = row->packet ? network_address(&pair->addr, 2, 2, 0) : loopback(row, &pair->addr);

    pair->row = row;
    open_side(&pair->client, row);
    open_side(&pair->server, row);
    open_device(&pair->client, row, 1);
    open_device(&pair->server, row, 2);
    wire.device = pair->server.device;
    pair->listener = rddp_listen(pair->server.events, (struct sockaddr *)&pair->addr, length, 64, &wire, NULL);
    assert_non_null(pair->listener);
    assert_int_equal(rddp_listener_addr(pair->listener, &pair->addr), 0);
    rddp_qp_attr_init(&pair->qp_attr);
    pair->qp_attr.max_send_wr = pair->qp_attr.max_recv_wr = PAIR_DEPTH;
}

static void open_qp(struct pair *pair, struct side *side)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = side->cq;
    side->qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(side->qp);
}

/* Which may be a moment after the application knows of the connection. */
static void await_hand_off(const struct side *side)
{
    uint64_t until = now_ms() + PAIR_WAIT_MS;
    struct rddp_qp_info info;

    do
        assert_int_equal(rddp_query_qp(side->qp, &info), 0);
    while (!info.own_tcp && now_ms() < until && !usleep(200));
    if (!info.own_tcp)
        fail_msg("it is not handed off; log:\n%s", side->log);
}

void pair_join(struct pair *pair)
{
    struct rddp_conn_attr attr;
    struct rddp_event request;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    attr.wire.device = pair->client.device;
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        0);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_accept(request.request, pair->server.qp, NULL), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    if (pair->row->hand_off) {
        await_hand_off(&pair->client);
        await_hand_off(&pair->server);
    }
}

void pair_connect(struct pair *pair)
{
    open_qp(pair, &pair->client);
    open_qp(pair, &pair->server);
    pair_join(pair);
}

void pair_close(struct pair *pair)
{
    if (pair->listener)
        assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    close_side(&pair->client);
    close_side(&pair->server);
}

/* --- what tests do --------------------------------------------------------------------------------------------- */

struct rddp_event pair_event(struct side *side, enum rddp_event_type type)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(side->events), .events = POLLIN};
    struct rddp_event *event, copy;

    if (poll(&fd, 1, PAIR_WAIT_MS) != 1)
        fail_msg("no event \"%s\" in %d ms; log:\n%s", rddp_event_str(type), PAIR_WAIT_MS, side->log);
    assert_int_equal(rddp_get_event(side->events, &event), 0);
    copy = *event;
    if (copy.type != type)
        fail_msg("event \"%s\" (%d) instead of \"%s\"; log:\n%s", rddp_event_str(copy.type), copy.status,
                 rddp_event_str(type), side->log);
    rddp_ack_event(event);
    return copy;
}

int pair_poll(struct side *side, struct rddp_wc *wc, int n)
{
    uint64_t until = now_ms() + PAIR_WAIT_MS;
    int got = 0, k = 0;

    for (int empty = 0; got < n && k >= 0 && now_ms() <= until; empty = k ? 0 : empty + 1) {
        k = rddp_poll_cq(side->cq, n - got, wc + got);
        got += k > 0 ? k : 0;
        if (empty > PATIENT_POLLS) /* others need the processor, too */
            usleep(50);
    }
    return k < 0 ? k : got;
}

void pair_completions(struct side *side, struct rddp_wc *wc, int n)
{
    int got = pair_poll(side, wc, n);

    if (got != n)
        fail_msg("%d of %d completions in %d ms; log:\n%s", got, n, PAIR_WAIT_MS, side->log);
}

struct rddp_wc pair_completion(struct side *side)
{
    struct rddp_wc wc;

    pair_completions(side, &wc, 1);
    return wc;
}

struct rddp_sge pair_sge(const struct side *side, size_t offset, size_t length)
{
    return (struct rddp_sge){.addr = offset, .length = (uint32_t)length, .lkey = rddp_mr_key(side->mr)};
}

int pair_post(struct side *from, const struct side *to, enum rddp_wr_opcode opcode, uint64_t id, size_t local,
              size_t length, size_t remote, unsigned flags)
{
    struct rddp_sge sge = pair_sge(from, local, length);
    struct rddp_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags};

    wr.remote_addr = remote;
    wr.rkey = rddp_mr_key(to->mr);
    return rddp_post_send(from->qp, &wr, NULL);
}

void pair_receive(struct side *side, uint64_t id, size_t offset, size_t length)
{
    struct rddp_sge sge = pair_sge(side, offset, length);
    struct rddp_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

    assert_int_equal(rddp_post_recv(side->qp, &wr, NULL), 0);
}

static uint8_t octet(size_t i, unsigned seed)
{
    return (uint8_t)((i * 2654435761u + seed * 40503u) >> 11);
}

void pair_pattern(uint8_t *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = octet(i, seed);
}

bool pair_is_pattern(const uint8_t *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != octet(i, seed))
            return false;
    return true;
}

/* --- the runner ------------------------------------------------------------------------------------------------ */

struct trial {
    const struct row *row;
    bool connect;
    char name[128];
};

static int set_up(void **state)
{
    const struct trial *trial = *state;
    struct pair *pair = calloc(1, sizeof(*pair));

    assert_non_null(pair);
    *state = pair;
    pair_open(pair, trial->row);
    if (trial->connect)
        pair_connect(pair);
    return 0;
}

static int tear_down(void **state)
{
    struct pair *pair = *state;

    pair_close(pair);
    free(pair);
    return 0;
}

int pair_run(const char *group, const struct pair_test *tests, size_t n, bool connect)
{
    size_t row_count = sizeof(rows) / sizeof(*rows), total = n * row_count, used = 0;
    bool has_network = network_own();
    struct CMUnitTest *unit = calloc(total, sizeof(*unit));
    struct trial *trial = calloc(total, sizeof(*trial));
    int failed;

    if (!unit || !trial)
        return 1;
    for (size_t i = 0; i < total; i++) {
        struct trial *t = &trial[used];

        *t = (struct trial){.row = &rows[i % row_count], .connect = connect};
        if (ONLY_THREADS && !t->row->threads)
            continue;
        if ((t->row->packet || t->row->hand_off) && !has_network)
            continue;
        snprintf(t->name, sizeof(t->name), "%s (%s)", tests[i / row_count].name, t->row->name);
        unit[used++] = (struct CMUnitTest){t->name, tests[i / row_count].run, set_up, tear_down, t};
    }
    failed = _cmocka_run_group_tests(group, unit, used, NULL, NULL);
    free(unit);
    free(trial);
    return failed;
}
