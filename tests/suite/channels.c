/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channels.c - which channel events come on: chosen at accept, moved later, and events of the program's own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite/lib/pair.h"

enum { ROUNDS = 10 };

static const enum rddp_event_type own = RDDP_EVENT_USER + 7;

static struct pair *of(void **state)
{
    return *state;
}

static struct rddp_event_channel *make_channel(struct side *side)
{
    struct rddp_event_channel *channel = rddp_create_event_channel(side->context);

    assert_non_null(channel);
    assert_int_equal(fcntl(rddp_event_channel_fd(channel), F_SETFL, O_NONBLOCK), 0);
    return channel;
}

static bool is_readable(const struct rddp_event_channel *channel, int timeout_ms)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(channel), .events = POLLIN};

    return poll(&fd, 1, timeout_ms) == 1;
}

/* Waits for the next event of a channel, and acknowledges it. */
static struct rddp_event next_event(struct rddp_event_channel *channel)
{
    struct rddp_event *event, copy;

    assert_true(is_readable(channel, PAIR_WAIT_MS));
    assert_int_equal(rddp_get_event(channel, &event), 0);
    copy = *event;
    copy.private_data = NULL;
    rddp_ack_event(event);
    return copy;
}

static void make_qp(struct pair *pair, struct side *side)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = side->cq;
    attr.user = pair;
    side->qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(side->qp);
}

static void start(struct pair *pair)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    attr.wire.device = pair->client.device;
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        0);
}

static void make_and_start(struct pair *pair)
{
    make_qp(pair, &pair->client);
    make_qp(pair, &pair->server);
    start(pair);
}

static void answer(struct pair *pair)
{
    struct rddp_event event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);

    assert_int_equal(rddp_accept(event.request, pair->server.qp, NULL), 0);
}

/* The events of an accepted queue pair come on the channel that rddp_accept() names. */
static void accepted_elsewhere(void **state)
{
    struct pair *pair = of(state);
    struct side *server = &pair->server;
    struct rddp_event_channel *second = make_channel(server);
    struct rddp_conn_attr attr;
    struct rddp_event event;

    make_and_start(pair);
    event = pair_event(server, RDDP_EVENT_CONNECT_REQUEST);
    rddp_conn_attr_init(&attr);
    attr.channel = second;
    assert_int_equal(rddp_accept(event.request, server->qp, &attr), 0);
    assert_int_equal(next_event(second).type, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_destroy_event_channel(second), -EBUSY);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    event = next_event(second);
    assert_int_equal(event.type, RDDP_EVENT_DISCONNECTED);
    assert_ptr_equal(event.qp, server->qp);
    assert_ptr_equal(event.user, pair);
    assert_false(is_readable(server->events, 0));
    assert_int_equal(rddp_destroy_qp(server->qp), 0);
    server->qp = NULL;
    assert_int_equal(rddp_destroy_event_channel(second), 0);
}

static void accepted_in_another_context(void **state)
{
    struct pair *pair = of(state);
    struct rddp_conn_attr attr;
    struct rddp_event event;
    struct rddp_qp_info info;

    make_and_start(pair);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    rddp_conn_attr_init(&attr);
    attr.channel = pair->client.events;
    assert_int_equal(rddp_accept(event.request, pair->server.qp, &attr), -EINVAL);
    assert_int_equal(rddp_query_qp(pair->server.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_IDLE);
    assert_int_equal(rddp_migrate_qp(pair->server.qp, pair->server.events), -EINVAL); /* it has no channel */
    assert_int_equal(rddp_migrate_qp(pair->client.qp, pair->server.events), -EINVAL);
    assert_int_equal(rddp_migrate_listener(pair->listener, pair->client.events), -EINVAL);
    assert_int_equal(rddp_migrate_events(pair->client.events, pair->server.events, NULL), -EINVAL);
}

/* What waits moves, once, and what follows comes where it has moved to. */
static void qp_moves(void **state)
{
    struct pair *pair = of(state);
    struct side *server = &pair->server;
    struct rddp_event_channel *second = make_channel(server);
    struct rddp_event event;

    make_and_start(pair);
    event = pair_event(server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_accept(event.request, server->qp, NULL), 0);
    assert_true(is_readable(server->events, PAIR_WAIT_MS));
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_migrate_qp(server->qp, second), 0);
    assert_false(is_readable(server->events, 0));
    assert_int_equal(rddp_migrate_qp(server->qp, second), 0); /* where they are already */
    assert_int_equal(next_event(second).type, RDDP_EVENT_ESTABLISHED);
    assert_false(is_readable(second, 0));
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(next_event(second).type, RDDP_EVENT_DISCONNECTED);
    assert_false(is_readable(server->events, 0));
    assert_int_equal(rddp_migrate_qp(server->qp, server->events), 0); /* it has ended, and still has an owner */
    assert_int_equal(rddp_destroy_event_channel(second), 0);
}

/* The same of a listener, with a request that waits; accepting follows it. */
static void listener_moves(void **state)
{
    struct pair *pair = of(state);
    struct side *server = &pair->server;
    struct rddp_event_channel *second = make_channel(server);
    struct rddp_event event;

    make_and_start(pair);
    assert_true(is_readable(server->events, PAIR_WAIT_MS));
    assert_int_equal(rddp_migrate_listener(pair->listener, second), 0);
    assert_false(is_readable(server->events, 0));
    event = next_event(second);
    assert_int_equal(event.type, RDDP_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(event.listener, pair->listener);
    assert_int_equal(rddp_accept(event.request, server->qp, NULL), 0);
    assert_int_equal(next_event(second).type, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    pair->listener = NULL;
    assert_int_equal(rddp_destroy_qp(server->qp), 0);
    server->qp = NULL;
    assert_int_equal(rddp_destroy_event_channel(second), 0);
}

/* --- moved while they come ------------------------------------------------------------------------------------- */

struct mover {
    struct rddp_qp *qp;
    struct rddp_event_channel *channel[2];
    atomic_bool stop;
};

static void *move_about(void *arg)
{
    struct mover *mover = arg;

    for (unsigned i = 0; !atomic_load(&mover->stop); i++)
        if (rddp_migrate_qp(mover->qp, mover->channel[i % 2]))
            return mover;
    return NULL;
}

static enum rddp_event_type next_of_two(const struct mover *mover)
{
    struct pollfd fd[2] = {{.fd = rddp_event_channel_fd(mover->channel[0]), .events = POLLIN},
                           {.fd = rddp_event_channel_fd(mover->channel[1]), .events = POLLIN}};
    struct rddp_event *event;

    for (;;) {
        assert_true(poll(fd, 2, PAIR_WAIT_MS) > 0);
        for (int i = 0; i < 2; i++)
            if (!rddp_get_event(mover->channel[i], &event)) {
                enum rddp_event_type type = event->type;

                rddp_ack_event(event);
                return type;
            }
    }
}

/* However often they move, each event comes once, and in order. */
static void moves_on_and_on(void **state)
{
    struct pair *pair = of(state);
    struct mover mover = {.channel = {make_channel(&pair->client), make_channel(&pair->client)}};
    pthread_t thread;
    void *failed;

    for (unsigned i = 0; i < (pair->row->packet ? 2 : ROUNDS); i++) {
        make_and_start(pair);
        mover.qp = pair->client.qp;
        atomic_store(&mover.stop, false);
        assert_int_equal(pthread_create(&thread, NULL, move_about, &mover), 0);
        answer(pair);
        assert_int_equal(next_of_two(&mover), RDDP_EVENT_ESTABLISHED);
        pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
        assert_int_equal(rddp_disconnect(pair->server.qp), 0);
        assert_int_equal(next_of_two(&mover), RDDP_EVENT_DISCONNECTED);
        pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
        atomic_store(&mover.stop, true);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        assert_false(is_readable(mover.channel[0], 0));
        assert_false(is_readable(mover.channel[1], 0));
        assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
        assert_int_equal(rddp_destroy_qp(pair->server.qp), 0);
    }
    pair->client.qp = pair->server.qp = NULL;
    assert_int_equal(rddp_destroy_event_channel(mover.channel[0]), 0);
    assert_int_equal(rddp_destroy_event_channel(mover.channel[1]), 0);
}

/* --- events of the program's own ------------------------------------------------------------------------------- */

static int post_own(struct rddp_event_channel *channel, int number, void *user)
{
    struct rddp_event event = {.type = own, .status = -number, .user = user};

    event.private_data = &number;
    event.private_data_length = sizeof(number);
    return rddp_post_event(channel, &event);
}

static void own_events(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event_channel *channel = pair->server.events;
    struct rddp_event_channel *second = make_channel(&pair->server);
    struct rddp_event *event, wrong = {.type = RDDP_EVENT_USER - 1};
    int number;

    assert_string_equal(rddp_event_str(own), "event of the program");
    assert_int_equal(rddp_post_event(channel, &wrong), -EINVAL);
    wrong.type = RDDP_EVENT_USER;
    wrong.request = (void *)&wrong; /* it is the program's: the library does not look */
    assert_int_equal(rddp_post_event(channel, &wrong), 0);
    assert_int_equal(rddp_withdraw_events(channel, NULL), 1);
    assert_false(is_readable(channel, 0));
    for (int i = 0; i < 4; i++)
        assert_int_equal(post_own(channel, i, i % 2 ? (void *)pair : channel), 0);
    assert_int_equal(rddp_get_event(channel, &event), 0);
    assert_int_equal(event->type, own);
    assert_int_equal(event->private_data_length, sizeof(number));
    memcpy(&number, event->private_data, sizeof(number));
    assert_int_equal(number, 0);
    assert_int_equal(event->status, 0);
    assert_ptr_equal(event->user, channel);
    rddp_ack_event(event);
    assert_int_equal(rddp_migrate_events(channel, second, pair), 2);
    assert_int_equal(next_event(second).status, -1);
    assert_int_equal(next_event(channel).status, -2);
    assert_false(is_readable(channel, 0));
    assert_int_equal(rddp_withdraw_events(second, channel), 0);
    assert_int_equal(rddp_withdraw_events(second, pair), 1);
    assert_false(is_readable(second, 0));
    assert_int_equal(post_own(second, 1, NULL), 0); /* goes with its channel */
    assert_int_equal(rddp_destroy_event_channel(second), 0);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* They come when their time has come, where they were moved to meanwhile, and not if they were withdrawn. */
static void late_events(void **state)
{
    enum { SOON_MS = 20, NEVER_MS = 3600000 };
    struct pair *pair = of(state);
    struct rddp_event_channel *channel = pair->server.events;
    struct rddp_event_channel *second = make_channel(&pair->server);
    int number = 5;
    struct rddp_event *event, wrong = {.type = RDDP_EVENT_USER - 1};
    const struct rddp_event late = {
        .type = own, .user = pair, .private_data = &number, .private_data_length = sizeof(number)};
    uint64_t from_ms = now_ms();

    assert_int_equal(rddp_post_event_later(channel, &wrong, 0), -EINVAL);
    assert_int_equal(rddp_post_event_later(channel, &late, SOON_MS), 0);
    number = 6; /* it was copied */
    assert_int_equal(post_own(channel, 1, NULL), 0);
    assert_int_equal(next_event(channel).status, -1);
    assert_true(is_readable(channel, PAIR_WAIT_MS));
    assert_true(now_ms() - from_ms >= SOON_MS - 1);
    assert_int_equal(rddp_get_event(channel, &event), 0);
    assert_ptr_equal(event->user, pair);
    memcpy(&number, event->private_data, sizeof(number));
    assert_int_equal(number, 5);
    rddp_ack_event(event);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(rddp_post_event_later(channel, &late, i ? NEVER_MS : SOON_MS), 0);
    assert_int_equal(rddp_migrate_events(channel, second, channel), 0);
    assert_int_equal(rddp_migrate_events(channel, second, pair), 3);
    assert_ptr_equal(next_event(second).user, pair);
    assert_false(is_readable(channel, 0));
    assert_int_equal(rddp_withdraw_events(channel, pair), 0);
    assert_int_equal(rddp_withdraw_events(second, pair), 2);
    assert_false(is_readable(second, 0));
    assert_int_equal(rddp_post_event_later(second, &late, NEVER_MS), 0); /* goes with its channel */
    assert_int_equal(rddp_destroy_event_channel(second), 0);
}

/* They do not get into the way of events of the library, whatever their `user` is. */
static void own_among_others(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event_channel *channel = pair->client.events;

    make_and_start(pair);
    answer(pair);
    assert_true(is_readable(channel, PAIR_WAIT_MS));
    assert_int_equal(post_own(channel, 1, pair->client.qp), 0);
    assert_int_equal(post_own(channel, 2, pair), 0);
    assert_int_equal(rddp_withdraw_events(channel, pair), 1);
    assert_int_equal(next_event(channel).type, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair->client.qp = NULL;
    assert_int_equal(next_event(channel).type, own);
    assert_false(is_readable(channel, 0));
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(accepted_elsewhere), PAIR_TEST(accepted_in_another_context),
        PAIR_TEST(qp_moves),           PAIR_TEST(listener_moves),
        PAIR_TEST(moves_on_and_on),    PAIR_TEST(own_events),
        PAIR_TEST(late_events),        PAIR_TEST(own_among_others),
    };

    return pair_run("channels", tests, sizeof(tests) / sizeof(*tests), false);
}
