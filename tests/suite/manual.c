/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* manual.c - the errors that the manual pages of section 3 name, caused by wrong arguments and wrong order. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rddp/rddp.h>
#include <rddp/stream.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

struct objects {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_comp_channel *completions;
    struct rddp_event_channel *events;
};

static void returns(int result, int error)
{
    assert_int_equal(result, -error);
}

static void makes_nothing(const void *object, int error)
{
    assert_null(object);
    assert_int_equal(errno, error);
}

static struct rddp_qp *make_qp(struct objects *o)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = o->cq;
    return rddp_create_qp(o->pd, &attr);
}

static int set_up(void **state)
{
    static struct objects o;

    o.context = rddp_open(NULL);
    o.pd = rddp_alloc_pd(o.context);
    o.cq = rddp_create_cq(o.context, 16, NULL, NULL);
    o.qp = make_qp(&o);
    o.completions = rddp_create_comp_channel(o.context);
    o.events = rddp_create_event_channel(o.context);
    *state = &o;
    return !o.qp || !o.completions || !o.events;
}

static int tear_down(void **state)
{
    struct objects *o = *state;

    return rddp_destroy_qp(o->qp) || rddp_destroy_cq(o->cq) || rddp_destroy_comp_channel(o->completions) ||
           rddp_destroy_event_channel(o->events) || rddp_dealloc_pd(o->pd) || rddp_close(o->context);
}

static void contexts(void **state)
{
    struct objects *o = *state;
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.loops = 65;
    makes_nothing(rddp_open(&attr), EINVAL);
    attr.loops = 2;
    attr.manual_progress = true;
    makes_nothing(rddp_open(&attr), EINVAL);
    returns(rddp_close(o->context), EBUSY);
}

static void nothing(int number)
{
    (void)number;
}

/* Several times, because the first signal may come before the call waits. */
static void interrupt(bool begin)
{
    const struct itimerval often = {{0, begin ? 20000 : 0}, {0, begin ? 20000 : 0}};

    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void signals(void **state)
{
    struct objects *o = *state;
    struct rddp_context_attr attr;
    struct rddp_context *manual;
    struct rddp_cq *cq;
    struct rddp_event *event;
    struct sigaction before, action = {.sa_handler = nothing};

    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    interrupt(true);
    returns(rddp_get_cq_event(o->completions, &cq, NULL), EINTR);
    returns(rddp_get_event(o->events, &event), EINTR);
    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    manual = rddp_open(&attr);
    returns(rddp_progress(manual, 60000), 0); /* a signal ends the wait and is no error */
    interrupt(false);
    returns(rddp_close(manual), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

static void regions(void **state)
{
    struct objects *o = *state;
    struct rddp_mr *mr;
    char buffer[64];

    makes_nothing(rddp_reg_mr(o->pd, buffer, 64, RDDP_ACCESS_REMOTE_WRITE), EINVAL);
    makes_nothing(rddp_reg_mr(o->pd, buffer, 64, RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE), EINVAL);
    makes_nothing(rddp_reg_mr(o->pd, buffer, 64, 1U << 31), EINVAL);
    makes_nothing(rddp_reg_mr(o->pd, buffer, SIZE_MAX, 0), EINVAL);
    makes_nothing(rddp_reg_mr(o->pd, NULL, 64, 0), EINVAL);
    makes_nothing(rddp_reg_mr(o->pd, (void *)(uintptr_t)4096, 64, 0), EFAULT);
    makes_nothing(rddp_reg_mr(o->pd, (void *)(uintptr_t) "constant", 8, RDDP_ACCESS_LOCAL_WRITE), EFAULT);
    mr = rddp_reg_mr(o->pd, buffer, 64, 0);
    assert_non_null(mr);
    returns(rddp_dealloc_pd(o->pd), EBUSY);
    returns(rddp_dereg_mr(mr), 0);
}

static void queues(void **state)
{
    struct objects *o = *state;
    struct rddp_cq *cq;
    struct rddp_wc wc;
    int fd = rddp_comp_channel_fd(o->completions);

    makes_nothing(rddp_create_cq(o->context, 0, NULL, NULL), EINVAL);
    makes_nothing(rddp_create_cq(o->context, (1 << 20) + 1, NULL, NULL), EINVAL);
    returns(rddp_destroy_cq(o->cq), EBUSY);
    returns(rddp_req_notify_cq(o->cq, false), EINVAL);
    returns(rddp_poll_cq(o->cq, -1, &wc), EINVAL);
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    returns(rddp_get_cq_event(o->completions, &cq, NULL), EAGAIN);
    cq = rddp_create_cq(o->context, 1, NULL, o->completions);
    returns(rddp_destroy_comp_channel(o->completions), EBUSY);
    returns(rddp_destroy_cq(cq), 0);
}

static void receives(void **state)
{
    struct objects *o = *state;
    struct rddp_recv_wr wr = {.wr_id = 1}, *bad = NULL;
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;

    makes_nothing(rddp_create_srq(o->pd, 0, 1), EINVAL);
    makes_nothing(rddp_create_srq(o->pd, 16385, 1), EINVAL);
    makes_nothing(rddp_create_srq(o->pd, 1, 17), EINVAL);
    rddp_qp_attr_init(&attr);
    makes_nothing(rddp_create_qp(o->pd, &attr), EINVAL); /* no CQ */
    attr.send_cq = attr.recv_cq = o->cq;
    attr.max_rd_atomic = 129;
    makes_nothing(rddp_create_qp(o->pd, &attr), EINVAL);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = o->cq;
    attr.srq = rddp_create_srq(o->pd, 1, 1);
    qp = rddp_create_qp(o->pd, &attr);
    returns(rddp_destroy_srq(attr.srq), EBUSY);
    returns(rddp_post_recv(qp, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    returns(rddp_post_srq_recv(attr.srq, &wr, NULL), 0);
    returns(rddp_post_srq_recv(attr.srq, &wr, NULL), ENOMEM);
    returns(rddp_destroy_qp(qp), 0);
    returns(rddp_destroy_srq(attr.srq), 0);
}

static void connecting(void **state)
{
    struct objects *o = *state;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr other = {.sa_family = AF_MAX};
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND};
    struct rddp_conn_attr attr;

    returns(rddp_post_send(o->qp, &wr, NULL), EINVAL);
    returns(rddp_disconnect(o->qp), ENOTCONN);
    returns(rddp_connect(o->qp, o->events, &other, sizeof(other), NULL), EAFNOSUPPORT);
    rddp_conn_attr_init(&attr);
    attr.private_data = &attr;
    attr.private_data_length = 509;
    returns(rddp_connect(o->qp, o->events, (struct sockaddr *)&addr, sizeof(addr), &attr), EINVAL);
    attr.private_data_length = 0;
    attr.wire.mpa_revision = 3;
    returns(rddp_connect(o->qp, o->events, (struct sockaddr *)&addr, sizeof(addr), &attr), EINVAL);
    returns(rddp_connect_fd(o->qp, o->events, -1, NULL), EBADF);
    returns(rddp_connect_fd(o->qp, o->events, open("/dev/null", O_RDWR), NULL), ENOTSOCK);
    returns(rddp_connect_fd(o->qp, o->events, socket(AF_INET, SOCK_STREAM, 0), NULL), ENOTCONN);
    returns(rddp_connect_fd(o->qp, o->events, socket(AF_INET, SOCK_DGRAM, 0), NULL), EINVAL);
}

static void listening(void **state)
{
    struct objects *o = *state;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr other = {.sa_family = AF_MAX};
    struct rddp_wire_attr wire;
    struct rddp_listener *listener;
    struct sockaddr_storage where;

    makes_nothing(rddp_listen(o->events, &other, sizeof(other), 1, NULL, NULL), EAFNOSUPPORT);
    makes_nothing(rddp_listen(o->events, (struct sockaddr *)&addr, 4, 1, NULL, NULL), EINVAL);
    rddp_wire_attr_init(&wire);
    wire.startup_timeout_ms = 0;
    makes_nothing(rddp_listen(o->events, (struct sockaddr *)&addr, sizeof(addr), 1, &wire, NULL), EINVAL);
    makes_nothing(rddp_listen_fd(o->events, -1, NULL, NULL), EBADF);
    makes_nothing(rddp_listen_fd(o->events, open("/dev/null", O_RDWR), NULL, NULL), ENOTSOCK);
    makes_nothing(rddp_listen_fd(o->events, socket(AF_INET, SOCK_STREAM, 0), NULL, NULL), EINVAL);
    listener = rddp_listen(o->events, (struct sockaddr *)&addr, sizeof(addr), 1, NULL, NULL);
    returns(rddp_destroy_event_channel(o->events), EBUSY);
    returns(rddp_listener_addr(listener, &where), 0);
    makes_nothing(rddp_listen(o->events, (struct sockaddr *)&where, sizeof(addr), 1, NULL, NULL), EADDRINUSE);
    returns(rddp_destroy_listener(listener), 0);
}

/* A queue pair that failed to connect at once is unchanged; one that is connecting is used, whatever the result. */
static void refused(void **state)
{
    struct objects *o = *state;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(where);
    struct sockaddr other = {.sa_family = AF_MAX};
    struct rddp_event *event;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound to the port but not listening */

    assert_int_equal(bind(fd, (struct sockaddr *)&where, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&where, &length), 0);
    returns(rddp_connect(o->qp, o->events, &other, sizeof(other), NULL), EAFNOSUPPORT);
    returns(rddp_connect(o->qp, o->events, (struct sockaddr *)&where, length, NULL), 0);
    returns(rddp_connect(o->qp, o->events, (struct sockaddr *)&where, length, NULL), EINVAL);
    returns(rddp_get_event(o->events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_UNREACHABLE);
    assert_int_equal(event->status, -ECONNREFUSED);
    rddp_ack_event(event);
    close(fd);
}

static void streams(void **state)
{
    struct rddp_stream_net_attr attr;

    (void)state;
    rddp_stream_net_attr_init(&attr);
    attr.mtu = 1279;
    makes_nothing(rddp_stream_net_open(&attr), EINVAL);
    rddp_stream_net_attr_init(&attr);
    attr.window = 4095;
    makes_nothing(rddp_stream_net_open(&attr), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(contexts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(signals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(regions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(receives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(connecting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(listening, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test(streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
