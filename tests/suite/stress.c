/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stress.c - threads that post, poll, register, connect, close and fork at one context: everything posted completes
 * once. Random numbers are seeded, timing is not. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

enum {
    RUN_MS = 1500,
    LANES = 3, /* permanent connections, with a posting thread each */
    POLLERS = 2,
    DEPTH = 64,
    BUFFER = 1 << 20, /* octets of the region; each lane uses a part of it at each end */
    PART = BUFFER / (2 * LANES),
    REGIONS = 40,
    FORK_MS = 40,
    CHILD_S = 40,
    GUESTS = 256, /* connections of the visitor, at the passive end */
    SEED = 20251122,
};

/* The upper half of a wr_id. */
enum { SENT, RECEIVED, PASSING };

struct lane {
    struct rddp_qp *client, *server;
    atomic_uint posted, completed, sends, received;
};

struct world {
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_mr *mr;
    struct rddp_listener *listener;
    struct sockaddr_in addr;
    uint8_t *buffer;
    struct lane lane[LANES];
    struct rddp_qp *guest[GUESTS]; /* used by the host's thread only */
    atomic_bool stop, ending;
    atomic_uint wrong, passed, forked;
};

static struct world world;

/* cmocka's assertions work in the main thread only. */
static void check(bool is_right, const char *what, int line)
{
    if (is_right)
        return;
    fprintf(stderr, "stress.c:%d: %s (seed %d)\n", line, what, SEED);
    world.wrong++;
}
#define CHECK(what) check(what, #what, __LINE__)

static uint64_t name(unsigned kind, unsigned lane)
{
    return (uint64_t)kind << 32 | lane;
}

static void sleep_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* --- posting and polling ----------------------------------------------------------------------------------------- */

static struct rddp_sge part_of(unsigned lane, bool server, uint32_t length)
{
    return (struct rddp_sge){.addr = (lane * 2 + server) * PART, .length = length, .lkey = rddp_mr_key(world.mr)};
}

static int post(unsigned lane, struct rng *rng)
{
    struct rddp_sge sge = part_of(lane, false, rng_size(rng, rng_one_in(rng, 64) ? PART : 2000));
    struct rddp_send_wr wr = {.wr_id = name(SENT, lane), .sg_list = &sge, .num_sge = 1};
    struct lane *l = &world.lane[lane];
    bool may_send = l->sends - l->received < DEPTH / 2;
    unsigned what = rng_below(rng, may_send ? 3 : 2);
    int error;

    wr.opcode = what == 0 ? RDDP_WR_RDMA_WRITE : what == 1 ? RDDP_WR_RDMA_READ : RDDP_WR_SEND;
    wr.send_flags = RDDP_SEND_SIGNALED;
    wr.remote_addr = part_of(lane, true, 0).addr;
    wr.rkey = rddp_mr_key(world.mr);
    error = rddp_post_send(l->client, &wr, NULL);
    l->posted += !error;
    l->sends += !error && what == 2;
    return error;
}

static void *post_on(void *arg)
{
    unsigned lane = (unsigned)(uintptr_t)arg;
    struct rng rng = {SEED + lane};

    while (!world.stop) {
        int error = post(lane, &rng);

        CHECK(!error || error == -ENOMEM);
        if (error || rng_one_in(&rng, 16))
            sched_yield();
    }
    return NULL;
}

static int receive(unsigned lane)
{
    struct rddp_sge sge = part_of(lane, true, PART);
    struct rddp_recv_wr wr = {.wr_id = name(RECEIVED, lane), .sg_list = &sge, .num_sge = 1};

    return rddp_post_recv(world.lane[lane].server, &wr, NULL);
}

static void completed(const struct rddp_wc *wc)
{
    unsigned lane = (uint32_t)wc->wr_id;

    if (wc->wr_id >> 32 == PASSING)
        return;
    if (wc->status != RDDP_WC_SUCCESS) {
        CHECK(world.ending);
    } else if (wc->wr_id >> 32 == SENT) {
        world.lane[lane].completed++;
    } else {
        CHECK(!receive(lane));
        world.lane[lane].received++;
    }
}

static void *poll_on(void *arg)
{
    struct rddp_wc wc[16];

    (void)arg;
    while (!world.ending) {
        int n = rddp_poll_cq(world.cq, 16, wc);

        CHECK(n >= 0);
        for (int i = 0; i < n; i++)
            completed(&wc[i]);
        if (n <= 0)
            sched_yield();
    }
    return NULL;
}

/* --- registering ---------------------------------------------------------------------------------------------------
 */

static void *register_on(void *arg)
{
    struct rddp_mr *mr[REGIONS];

    (void)arg;
    while (!world.stop) {
        for (int i = 0; i < REGIONS; i++) {
            mr[i] = rddp_reg_mr(world.pd, world.buffer, BUFFER, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_READ);
            CHECK(mr[i]);
        }
        for (int i = 0; i < REGIONS; i++)
            CHECK(mr[i] && !rddp_dereg_mr(mr[i]));
        sched_yield();
    }
    return NULL;
}

/* --- connecting and closing ------------------------------------------------------------------------------------- */

static struct rddp_qp *make_qp(void *user)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = world.cq;
    attr.max_send_wr = attr.max_recv_wr = user ? 8 : DEPTH;
    attr.user = user;
    return rddp_create_qp(world.pd, &attr);
}

/* The visitor, which connects and closes: what its events have reported. */
struct visitor {
    atomic_bool established, over;
};

static bool wait_for(const atomic_bool *what)
{
    for (int i = 0; i < PAIR_WAIT_MS && !*what; i++)
        sleep_ms(1);
    return *what;
}

static void connect_to_us(struct rddp_qp *qp, struct visitor *visitor)
{
    visitor->established = visitor->over = false;
    CHECK(!rddp_connect(qp, world.events, (struct sockaddr *)&world.addr, sizeof(world.addr), NULL));
    CHECK(wait_for(&visitor->established));
}

static void say_something(struct rddp_qp *qp)
{
    struct rddp_send_wr wr = {.wr_id = name(PASSING, 0), .opcode = RDDP_WR_SEND};

    for (int i = 0; i < 3; i++)
        CHECK(!rddp_post_send(qp, &wr, NULL));
}

static void *come_and_go(void *arg)
{
    static struct visitor visitor;
    struct rng rng = {SEED + 100};

    (void)arg;
    while (!world.stop) {
        struct rddp_qp *qp = make_qp(&visitor);

        CHECK(qp);
        connect_to_us(qp, &visitor);
        say_something(qp);
        switch (rng_below(&rng, 4)) {
        case 0:
            CHECK(!rddp_disconnect(qp) && wait_for(&visitor.over));
            break;
        case 1:
            CHECK(!rddp_fail_qp(qp) && wait_for(&visitor.over));
            break;
        case 2:
            CHECK(!rddp_reset_qp(qp));
            connect_to_us(qp, &visitor);
            say_something(qp);
            break;
        }
        CHECK(!rddp_destroy_qp(qp));
        world.passed++;
    }
    return NULL;
}

static void let_in(struct rddp_request *request)
{
    struct rddp_recv_wr wr = {.wr_id = name(PASSING, 0)};
    struct rddp_qp *qp = make_qp(&world);
    int place = 0;

    CHECK(qp);
    for (int i = 0; i < 8; i++)
        CHECK(!rddp_post_recv(qp, &wr, NULL));
    while (place < GUESTS && world.guest[place])
        place++;
    if (place < GUESTS && !rddp_accept(request, qp, NULL))
        world.guest[place] = qp;
    else
        CHECK(!rddp_destroy_qp(qp));
}

static void see_off(struct rddp_qp *qp)
{
    for (int i = 0; i < GUESTS; i++)
        if (world.guest[i] == qp) {
            world.guest[i] = NULL;
            CHECK(!rddp_destroy_qp(qp));
        }
}

static void hear(const struct rddp_event *event)
{
    struct visitor *visitor = event->user;

    if (event->type == RDDP_EVENT_CONNECT_REQUEST) {
        let_in(event->request);
    } else if (event->user == &world) {
        if (event->type != RDDP_EVENT_ESTABLISHED)
            see_off(event->qp);
    } else if (event->user) {
        visitor->established = true;
        visitor->over = event->type != RDDP_EVENT_ESTABLISHED;
        CHECK(event->type == RDDP_EVENT_ESTABLISHED || event->type == RDDP_EVENT_DISCONNECTED);
    }
}

static void *be_the_host(void *arg)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(world.events), .events = POLLIN};
    struct rddp_event *event;

    (void)arg;
    while (!world.ending) {
        poll(&fd, 1, 20);
        while (!rddp_get_event(world.events, &event)) {
            hear(event);
            rddp_ack_event(event);
        }
    }
    for (int i = 0; i < GUESTS; i++)
        if (world.guest[i])
            CHECK(!rddp_destroy_qp(world.guest[i]));
    memset(world.guest, 0, sizeof(world.guest));
    return NULL;
}

/* --- forking -------------------------------------------------------------------------------------------------------
 */

/* Closes everything except what other threads were making or destroying during the fork. */
static void close_in_child(void)
{
    alarm(CHILD_S);
    for (unsigned i = 0; i < LANES; i++) {
        CHECK(rddp_post_send(world.lane[i].client, &(struct rddp_send_wr){.opcode = RDDP_WR_SEND}, NULL) != -EINVAL);
        CHECK(!rddp_destroy_qp(world.lane[i].client));
        CHECK(!rddp_destroy_qp(world.lane[i].server));
    }
    CHECK(!rddp_destroy_listener(world.listener));
    CHECK(!rddp_dereg_mr(world.mr));
    _exit(world.wrong != 0);
}

static void *fork_on(void *arg)
{
    struct rng rng = {SEED + 200};
    int status;

    (void)arg;
    while (!world.stop) {
        pid_t child = fork();

        if (!child) {
            if (rng_one_in(&rng, 3) || FORK_NEEDS_CARE)
                _exit(0);
            close_in_child();
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
        world.forked++;
        sleep_ms(FORK_MS);
    }
    return NULL;
}

/* --- the test ------------------------------------------------------------------------------------------------------
 */

static struct rddp_event next_event(enum rddp_event_type type)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(world.events), .events = POLLIN};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(world.events, &event), 0);
    copy = *event;
    assert_int_equal(copy.type, type);
    rddp_ack_event(event);
    return copy;
}

static void open_lane(unsigned i)
{
    struct lane *lane = &world.lane[i];

    lane->client = make_qp(NULL);
    lane->server = make_qp(NULL);
    assert_true(lane->client && lane->server);
    assert_int_equal(rddp_connect(lane->client, world.events, (struct sockaddr *)&world.addr, sizeof(world.addr), NULL),
                     0);
    for (unsigned k = 0; k < DEPTH; k++)
        assert_int_equal(receive(i), 0);
    assert_int_equal(rddp_accept(next_event(RDDP_EVENT_CONNECT_REQUEST).request, lane->server, NULL), 0);
    next_event(RDDP_EVENT_ESTABLISHED);
    next_event(RDDP_EVENT_ESTABLISHED);
}

static void open_world(uint32_t loops)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr;
    struct rddp_context_attr attr;

    memset(&world, 0, sizeof(world));
    rddp_context_attr_init(&attr);
    attr.loops = loops;
    attr.log_level = RDDP_LOG_ERROR;
    world.context = rddp_open(&attr);
    assert_non_null(world.context);
    world.pd = rddp_alloc_pd(world.context);
    world.cq = rddp_create_cq(world.context, 8192, NULL, NULL);
    world.events = rddp_create_event_channel(world.context);
    assert_int_equal(fcntl(rddp_event_channel_fd(world.events), F_SETFL, O_NONBLOCK), 0);
    world.buffer = calloc(1, BUFFER);
    world.mr = rddp_reg_mr(world.pd, world.buffer, BUFFER,
                           RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_WRITE |
                               RDDP_ACCESS_ZERO_BASED);
    assert_non_null(world.mr);
    world.listener = rddp_listen(world.events, (struct sockaddr *)&any, sizeof(any), 64, NULL, NULL);
    assert_non_null(world.listener);
    assert_int_equal(rddp_listener_addr(world.listener, &addr), 0);
    memcpy(&world.addr, &addr, sizeof(world.addr));
    for (unsigned i = 0; i < LANES; i++)
        open_lane(i);
}

static void close_world(void)
{
    for (unsigned i = 0; i < LANES; i++) {
        assert_int_equal(rddp_destroy_qp(world.lane[i].client), 0);
        assert_int_equal(rddp_destroy_qp(world.lane[i].server), 0);
    }
    assert_int_equal(rddp_destroy_listener(world.listener), 0);
    assert_int_equal(rddp_dereg_mr(world.mr), 0);
    assert_int_equal(rddp_destroy_cq(world.cq), 0);
    assert_int_equal(rddp_destroy_event_channel(world.events), 0);
    assert_int_equal(rddp_dealloc_pd(world.pd), 0);
    assert_int_equal(rddp_close(world.context), 0);
    free(world.buffer);
}

static bool is_balanced(void)
{
    for (unsigned i = 0; i < LANES; i++)
        if (world.lane[i].posted != world.lane[i].completed || world.lane[i].sends != world.lane[i].received)
            return false;
    return true;
}

static void all_at_once(uint32_t loops)
{
    void *(*const busy[])(void *) = {register_on, come_and_go, fork_on};
    pthread_t poster[LANES], helper[3], poller[POLLERS], host;

    open_world(loops);
    for (int i = 0; i < POLLERS; i++)
        assert_int_equal(pthread_create(&poller[i], NULL, poll_on, NULL), 0);
    assert_int_equal(pthread_create(&host, NULL, be_the_host, NULL), 0);
    for (uintptr_t i = 0; i < LANES; i++)
        assert_int_equal(pthread_create(&poster[i], NULL, post_on, (void *)i), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&helper[i], NULL, busy[i], NULL), 0);
    sleep_ms(RUN_MS);
    world.stop = true;
    for (int i = 0; i < LANES; i++)
        pthread_join(poster[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(helper[i], NULL);
    for (int i = 0; i < PAIR_WAIT_MS && !is_balanced(); i++)
        sleep_ms(1);
    for (unsigned i = 0; i < LANES; i++) {
        print_message("lane %u: %u posted, %u sends\n", i, world.lane[i].posted, world.lane[i].sends);
        assert_true(world.lane[i].posted > 0);
        assert_int_equal(world.lane[i].completed, world.lane[i].posted);
        assert_int_equal(world.lane[i].received, world.lane[i].sends);
    }
    print_message("%u came and went, %u forked\n", world.passed, world.forked);
    assert_true(world.passed > 0 && world.forked > 0);
    world.ending = true;
    for (int i = 0; i < POLLERS; i++)
        pthread_join(poller[i], NULL);
    pthread_join(host, NULL);
    assert_int_equal(world.wrong, 0);
    close_world();
}

static void one_loop(void **state)
{
    (void)state;
    all_at_once(1);
}

static void two_loops(void **state)
{
    (void)state;
    all_at_once(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_loop),
        cmocka_unit_test(two_loops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
