/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refused.c - a peer that refuses is called again, for as long as the application says. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <rddp/rddp.h>

enum { LONG_MS = 60000, SHORT_MS = 50 };

/* One context with both ends: the peer's port belongs to `fd`, and nothing listens there yet. */
struct scene {
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp, *peer;
    struct sockaddr_in address, from;
    int fd;
    enum rddp_wire wire;
};

static const char greeting[] = "again";

static int bound_socket(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof(*address);

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static int open_scene(void **state, enum rddp_wire wire)
{
    static struct scene scene;
    struct rddp_qp_attr attr;

    scene = (struct scene){.context = rddp_open(NULL), .wire = wire};
    assert_non_null(scene.context);
    scene.events = rddp_create_event_channel(scene.context);
    scene.pd = rddp_alloc_pd(scene.context);
    scene.cq = rddp_create_cq(scene.context, 16, NULL, NULL);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = scene.cq;
    scene.qp = rddp_create_qp(scene.pd, &attr);
    scene.peer = rddp_create_qp(scene.pd, &attr);
    assert_non_null(scene.qp);
    assert_non_null(scene.peer);
    scene.fd = bound_socket(&scene.address);
    *state = &scene;
    return 0;
}

static int open_iwarp(void **state)
{
    return open_scene(state, RDDP_WIRE_IWARP);
}

static int open_roce(void **state)
{
    return open_scene(state, RDDP_WIRE_ROCE);
}

static int close_scene(void **state)
{
    struct scene *scene = *state;

    if (scene->fd >= 0)
        close(scene->fd);
    if (scene->qp)
        assert_int_equal(rddp_destroy_qp(scene->qp), 0);
    assert_int_equal(rddp_destroy_qp(scene->peer), 0);
    assert_int_equal(rddp_destroy_cq(scene->cq), 0);
    assert_int_equal(rddp_dealloc_pd(scene->pd), 0);
    assert_int_equal(rddp_destroy_event_channel(scene->events), 0);
    assert_int_equal(rddp_close(scene->context), 0);
    return 0;
}

/* Over loopback the kernel knows of the refusal when this returns. */
static void start(struct scene *scene, uint32_t retry_ms, uint32_t startup_ms)
{
    struct rddp_conn_attr attr;

    close(bound_socket(&scene->from)); /* a port that is free */
    rddp_conn_attr_init(&attr);
    attr.local = (struct sockaddr *)&scene->from;
    attr.wire.wire = scene->wire;
    attr.private_data = greeting;
    attr.private_data_length = sizeof(greeting);
    attr.wire.startup_timeout_ms = startup_ms;
    attr.retry_refused_ms = retry_ms;
    assert_int_equal(
        rddp_connect(scene->qp, scene->events, (struct sockaddr *)&scene->address, sizeof(scene->address), &attr), 0);
}

static int status_of_end(const struct scene *scene)
{
    struct rddp_event *event;
    int status;

    assert_int_equal(rddp_get_event(scene->events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_UNREACHABLE);
    status = event->status;
    rddp_ack_event(event);
    return status;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void by_default_once(void **state)
{
    struct scene *scene = *state;
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    assert_int_equal(attr.retry_refused_ms, 0);
    start(scene, attr.retry_refused_ms, LONG_MS);
    assert_int_equal(listen(scene->fd, 1), 0); /* too late */
    assert_int_equal(status_of_end(scene), -ECONNREFUSED);
}

static struct rddp_listener *start_to_listen(struct scene *scene)
{
    struct rddp_listener *listener;
    struct rddp_wire_attr wire;

    rddp_wire_attr_init(&wire);
    wire.wire = scene->wire;
    if (scene->wire == RDDP_WIRE_ROCE) {
        listener =
            rddp_listen(scene->events, (struct sockaddr *)&scene->address, sizeof(scene->address), 1, &wire, NULL);
    } else {
        assert_int_equal(listen(scene->fd, 1), 0);
        listener = rddp_listen_fd(scene->events, scene->fd, &wire, NULL);
        scene->fd = -1;
    }
    assert_non_null(listener);
    return listener;
}

/* The peer begins to listen, and the next attempt comes from the address that was named. */
static void until_it_listens(void **state)
{
    struct scene *scene = *state;
    struct rddp_listener *listener;
    struct sockaddr_storage from;
    struct rddp_event *event;

    start(scene, LONG_MS, LONG_MS);
    usleep(2 * SHORT_MS * 1000); /* some more refusals */
    listener = start_to_listen(scene);
    assert_int_equal(rddp_get_event(scene->events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_CONNECT_REQUEST);
    rddp_request_addr(event->request, &from);
    assert_memory_equal(&from, &scene->from, sizeof(scene->from));
    assert_memory_equal(event->private_data, greeting, sizeof(greeting));
    assert_int_equal(rddp_accept(event->request, scene->peer, NULL), 0);
    rddp_ack_event(event);
    assert_int_equal(rddp_get_event(scene->events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_ESTABLISHED);
    rddp_ack_event(event);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

static void until_the_time_is_over(void **state)
{
    struct scene *scene = *state;
    uint64_t begun_ms = now_ms();

    start(scene, SHORT_MS, LONG_MS);
    assert_int_equal(status_of_end(scene), -ECONNREFUSED);
    assert_true(now_ms() - begun_ms >= SHORT_MS / 2);
}

static void until_the_startup_is_over(void **state)
{
    struct scene *scene = *state;

    start(scene, LONG_MS, SHORT_MS);
    assert_int_equal(status_of_end(scene), -ETIMEDOUT);
}

static void until_its_queue_pair_goes(void **state)
{
    struct scene *scene = *state;

    start(scene, LONG_MS, LONG_MS);
    assert_int_equal(rddp_destroy_qp(scene->qp), 0);
    scene->qp = NULL;
}

#define OVER_BOTH(test) \
    {#test, test, open_iwarp, close_scene, NULL}, \
    { \
#test " (roce)", test, open_roce, close_scene, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(by_default_once),           OVER_BOTH(until_it_listens),          OVER_BOTH(until_the_time_is_over),
        OVER_BOTH(until_the_startup_is_over), OVER_BOTH(until_its_queue_pair_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
