/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* manual.c - see manual.h. */
#include "tests/suite/lib/manual.h"

#include <netinet/in.h>

struct manual_end here, there;
static struct rddp_listener *listener;

static struct rddp_cq *make_cq(const struct manual_end *end)
{
    return rddp_create_cq(end->context, 2 * MANUAL_DEPTH, NULL, NULL);
}

enum { APART = 1, PATIENT = 2 };

static void open_end(struct manual_end *end, bool manual, unsigned how)
{
    struct rddp_context_attr attr;
    struct rddp_qp_attr qp_attr;

    rddp_context_attr_init(&attr);
    attr.manual_progress = manual;
    end->context = rddp_open(&attr);
    end->pd = rddp_alloc_pd(end->context);
    end->events = rddp_create_event_channel(end->context);
    end->cq = make_cq(end);
    end->recv_cq = how & APART ? make_cq(end) : end->cq;
    end->mr = rddp_reg_mr(end->pd, end->memory, MANUAL_SIZE, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = end->cq;
    qp_attr.recv_cq = end->recv_cq;
    qp_attr.max_send_wr = MANUAL_DEPTH;
    qp_attr.wait_for_receive_ms = how & PATIENT ? RDDP_WAIT_WITHOUT_LIMIT : 0;
    end->qp = rddp_create_qp(end->pd, &qp_attr);
    assert_non_null(end->qp);
    assert_non_null(end->mr);
}

void manual_send(struct manual_end *from, struct manual_end *to)
{
    struct rddp_sge sge = {(uintptr_t)from->memory, MANUAL_SIZE, rddp_mr_key(from->mr)};
    struct rddp_sge place = {(uintptr_t)to->memory, MANUAL_SIZE, rddp_mr_key(to->mr)};
    struct rddp_recv_wr receive = {.sg_list = &place, .num_sge = 1}, *bad_receive;
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND}, *bad;

    assert_int_equal(rddp_post_recv(to->qp, &receive, &bad_receive), 0);
    assert_int_equal(rddp_post_send(from->qp, &wr, &bad), 0);
}

struct rddp_event manual_event(struct manual_end *end, enum rddp_event_type type)
{
    struct rddp_event *event, copy;

    assert_int_equal(rddp_get_event(end->events, &event), 0);
    copy = *event;
    rddp_ack_event(event);
    assert_int_equal(copy.type, type);
    return copy;
}

static int open_ends(unsigned how)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr;
    struct rddp_conn_attr attr;

    open_end(&here, true, how);
    open_end(&there, false, how);
    rddp_conn_attr_init(&attr);
    attr.wire.first_delay_ms = 0;
    listener = rddp_listen(there.events, (struct sockaddr *)&any, sizeof(any), 4, &attr.wire, NULL);
    assert_non_null(listener);
    rddp_listener_addr(listener, &addr);
    assert_int_equal(rddp_connect(here.qp, here.events, (struct sockaddr *)&addr, sizeof(any), &attr), 0);
    for (int i = 0; i < 10; i++)
        rddp_progress(here.context, 1);
    assert_int_equal(rddp_accept(manual_event(&there, RDDP_EVENT_CONNECT_REQUEST).request, there.qp, NULL), 0);
    manual_event(&here, RDDP_EVENT_ESTABLISHED);
    manual_event(&there, RDDP_EVENT_ESTABLISHED);
    return 0;
}

int manual_open(void **state)
{
    (void)state;
    return open_ends(0);
}

int manual_open_apart(void **state)
{
    (void)state;
    return open_ends(APART);
}

int manual_open_patient(void **state)
{
    (void)state;
    return open_ends(PATIENT);
}

static void close_end(struct manual_end *end)
{
    rddp_destroy_qp(end->qp);
    rddp_dereg_mr(end->mr);
    rddp_destroy_cq(end->cq);
    if (end->recv_cq != end->cq)
        rddp_destroy_cq(end->recv_cq);
    rddp_destroy_event_channel(end->events);
    assert_int_equal(rddp_dealloc_pd(end->pd), 0);
    assert_int_equal(rddp_close(end->context), 0);
}

int manual_close(void **state)
{
    (void)state;
    rddp_destroy_listener(listener);
    close_end(&here);
    close_end(&there);
    return 0;
}
