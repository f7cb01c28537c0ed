/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* program.c - what programs made for verbs rely on: results of calls, order of events, error numbers of mistakes. It is
 * such a program itself, made with rdma-core's headers, and would run over an adapter for iWARP. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/verbs/lib/ids.h"

static void test_exchange(void **state)
{
    struct ids ids = {.client_param = {.private_data = "hello", .private_data_len = 5}};
    struct ibv_wc wc;
    (void)state;

    ids_connect(&ids);
    assert_int_equal(ids.connect_error, 0);
    assert_int_equal(ids.server->qp->state, IBV_QPS_RTS);
    strcpy(ids.server_buffer + 1024, "the acceptor speaks first");
    assert_int_equal(rdma_post_send(ids.server, NULL, ids.server_buffer + 1024, 64, ids.server_mr, 0), 0);
    wc = ids_completion(ids.client->recv_cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 64);
    assert_string_equal(ids.client_buffer, "the acceptor speaks first");

    strcpy(ids.server_buffer, "read me");
    assert_int_equal(rdma_post_read(ids.client, NULL, ids.client_buffer, 8, ids.client_mr, 0,
                                    (uintptr_t)ids.server_buffer, ids.server_mr->rkey),
                     0);
    wc = ids_completion(ids.client->send_cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
    assert_string_equal(ids.client_buffer, "read me");
    assert_int_equal(rdma_disconnect(ids.client), 0);
    assert_int_equal(rdma_disconnect(ids.server), 0); /* the peer was faster, and that is no error */
    assert_int_equal(rdma_disconnect(ids.server), 0);
    assert_int_equal(ids.server->event->event, RDMA_CM_EVENT_DISCONNECTED);
    wc = ids_completion(ids.server->recv_cq);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    ids_free(&ids);
}

static void test_rejected(void **state)
{
    struct ids ids = {.reject = true};
    (void)state;

    ids_connect(&ids);
    assert_int_equal(ids.connect_error, ECONNREFUSED);
    assert_int_equal(ids.client->event->event, RDMA_CM_EVENT_REJECTED);
    assert_int_equal(ids.client->event->param.conn.private_data_len, 2);
    assert_memory_equal(ids.client->event->param.conn.private_data, "no", 2);
    ids_free(&ids);
}

static void test_refused(void **state)
{
    struct ids ids = {0};
    char port[8];
    (void)state;

    ids_listen(&ids, port);
    rdma_destroy_ep(ids.listener);
    ids.listener = NULL;
    ids_make_client(&ids, port);
    assert_int_equal(rdma_connect(ids.client, NULL), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(rdma_disconnect(ids.client), -1);
    assert_int_equal(errno, EINVAL);
    ids_free(&ids);
}

/* A request that was taken can be accepted when its listener is gone. */
static void test_listener_goes_first(void **state)
{
    struct ids ids = {0};
    pthread_t thread;
    char port[8];
    (void)state;

    ids_listen(&ids, port);
    ids_make_client(&ids, port);
    pthread_create(&thread, NULL, ids_run_client, &ids);
    assert_int_equal(rdma_get_request(ids.listener, &ids.server), 0);
    rdma_ack_cm_event(ids.server->event); /* which counts for the listener */
    ids.server->event = NULL;
    rdma_destroy_ep(ids.listener);
    ids.listener = NULL;
    assert_int_equal(rdma_accept(ids.server, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(ids.connect_error, 0);
    ids_free(&ids);
}

/* The queue ids goes, and its id is told that the connection is over. */
static void test_queue_pair_goes_first(void **state)
{
    struct ids ids = {0};
    struct rdma_cm_event *event;
    (void)state;

    ids_connect(&ids);
    rdma_destroy_qp(ids.client);
    assert_null(ids.client->qp);
    assert_int_equal(rdma_get_cm_event(ids.client->channel, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_DISCONNECTED);
    assert_ptr_equal(event->id, ids.client);
    rdma_ack_cm_event(event);
    assert_int_equal(rdma_disconnect(ids.server), 0);
    ids_free(&ids);
}

static void test_event_channel(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel(), *other = rdma_create_event_channel();
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9)};
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    (void)state;

    assert_int_equal(rdma_create_id(channel, &id, &here, RDMA_PS_TCP), 0);
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    assert_int_equal(rdma_get_cm_event(channel, &event), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(rdma_resolve_route(id, 100), -1); /* no address yet */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&here, 100), 0);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(rdma_migrate_id(id, other), 0);
    assert_int_equal(poll(&fd, 1, 0), 0); /* it went along */
    assert_int_equal(rdma_get_cm_event(other, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_ptr_equal(event->id->context, &here);
    assert_non_null(id->verbs);
    assert_non_null(id->pd);
    rdma_ack_cm_event(event);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    assert_int_equal(rdma_destroy_id(id), 0); /* with an event that was not taken */
    fd.fd = other->fd;
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), -1);
    assert_int_equal(errno, EPROTONOSUPPORT);
    rdma_destroy_event_channel(channel);
    rdma_destroy_event_channel(other);
}

static void test_bind(void **state)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *one, *two;
    (void)state;

    assert_int_equal(rdma_create_id(channel, &one, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_create_id(channel, &two, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(one, (struct sockaddr *)&here), 0);
    assert_null(one->verbs); /* an address of every device */
    here.sin_port = rdma_get_src_port(one);
    assert_int_not_equal(here.sin_port, 0);
    assert_int_equal(rdma_bind_addr(two, (struct sockaddr *)&here), -1);
    assert_int_equal(errno, EADDRINUSE);
    here.sin_addr.s_addr = inet_addr("192.0.2.1");
    assert_int_equal(rdma_bind_addr(two, (struct sockaddr *)&here), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    rdma_destroy_id(one);
    rdma_destroy_id(two);
    rdma_destroy_event_channel(channel);
}

static struct ibv_context *open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);

    assert_non_null(context);
    ibv_free_device_list(list);
    return context;
}

static void test_mistakes(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_context *context = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
    struct ibv_qp_init_attr init = ids_queues();
    struct ibv_device_attr device;
    struct ibv_device_attr_ex more;
    struct ibv_gid_entry entry;
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_qp *qp;
    char memory[64];
    (void)state;

    assert_int_equal(ibv_query_port(context, 2, &port), EINVAL);
    assert_int_equal(ibv_query_gid(context, 1, 1, &gid), -1);
    assert_int_equal(ibv_query_port(context, 1, &port), 0);
    assert_int_equal(ibv_query_gid_ex(context, 1, (uint32_t)port.gid_tbl_len - 1, &entry, 0), 0);
    assert_int_equal(ibv_query_gid_ex(context, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
    assert_null(ibv_create_cq(context, 0, NULL, NULL, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_cq(context, DEPTH, NULL, NULL, 1));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_qp(pd, &init)); /* no CQ */
    assert_int_equal(errno, EINVAL);
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_UD;
    assert_null(ibv_create_qp(pd, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    init.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_cq(cq), EBUSY);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);             /* rdma_cm alone connects */
    assert_null(ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_WRITE)); /* without LOCAL_WRITE */
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_mr(pd, (void *)(uintptr_t)64, 64, IBV_ACCESS_LOCAL_WRITE));
    assert_int_equal(errno, EFAULT);
    assert_null(ibv_reg_mr(pd, memory, sizeof(memory), 1 << 10)); /* no flag of verbs */
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(ibv_alloc_mw(pd, (enum ibv_mw_type)3));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_query_device(context, &device), 0);
    assert_int_equal(ibv_query_device_ex(context, NULL, &more), 0);
    assert_true(more.odp_caps.general_caps & IBV_ODP_SUPPORT);
    assert_true(more.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_READ);
    assert_int_equal(more.odp_caps.per_transport_caps.ud_odp_caps, 0);
    assert_true(device.max_mw && device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(context), 0);
}

static void test_mistakes_of_requests(void **state)
{
    struct ids ids = {0};
    struct ibv_sge sge = {.addr = (uintptr_t)ids.client_buffer, .length = 8, .lkey = 1234};
    struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 3, .opcode = IBV_WR_SEND}, *bad = NULL;
    struct ibv_recv_wr recv = {.wr_id = 8}, *bad_recv = NULL;
    struct ibv_wc wc;
    int n = 0;
    (void)state;

    ids_connect(&ids);
    assert_int_equal(ibv_post_send(ids.client->qp, &wr, &bad), EINVAL); /* too many entries */
    assert_ptr_equal(bad, &wr);
    for (n = 0; n < 2 * DEPTH && !ibv_post_recv(ids.client->qp, &recv, &bad_recv); n++)
        ;
    assert_int_equal(n, DEPTH - 1); /* one was posted by ids_connect() */
    assert_int_equal(ibv_post_recv(ids.client->qp, &recv, &bad_recv), ENOMEM);
    wr.num_sge = 1;
    assert_int_equal(ibv_post_send(ids.client->qp, &wr, &bad), 0);
    wc = ids_completion(ids.client->send_cq);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(ibv_post_send(ids.client->qp, &wr, &bad), 0); /* in the error state: flushed */
    assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_WR_FLUSH_ERR);
    ids_free(&ids);
}

/* Requests that are built piece by piece, and completions that are read so. */
static void test_extended(void **state)
{
    struct ibv_context *context = open_device();
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = DEPTH, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &cq_attr);
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 32},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = ibv_alloc_pd(context),
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_poll_cq_attr poll_attr = {0};
    struct ibv_qp_ex *qpx;
    struct ibv_qp *qp;
    char data[64] = "inline";
    (void)state;

    assert_non_null(cq);
    attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
    attr.send_ops_flags |= IBV_QP_EX_WITH_TSO;
    assert_null(ibv_create_qp_ex(context, &attr)); /* its builder would be called unchecked */
    assert_int_equal(errno, EOPNOTSUPP);
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
    qp = ibv_create_qp_ex(context, &attr);
    assert_non_null(qp);
    qpx = ibv_qp_to_qp_ex(qp);
    assert_non_null(qpx);
    assert_int_equal(ibv_start_poll(cq, &poll_attr), ENOENT);
    ibv_wr_start(qpx);
    ibv_wr_abort(qpx);
    ibv_wr_start(qpx);
    ibv_wr_set_sge(qpx, 0, 0, 0); /* of no request */
    assert_int_equal(ibv_wr_complete(qpx), EINVAL);
    ibv_wr_start(qpx);
    for (int i = 0; i < 3; i++) { /* one too many */
        qpx->wr_id = (uint64_t)i;
        ibv_wr_send(qpx);
        ibv_wr_set_inline_data(qpx, data, 8);
    }
    assert_int_equal(ibv_wr_complete(qpx), ENOMEM);
    ibv_wr_start(qpx);
    ibv_wr_send(qpx);
    ibv_wr_set_inline_data(qpx, data, 65); /* more than 64, which is given at least */
    assert_int_equal(ibv_wr_complete(qpx), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(attr.send_cq), 0);
    cq_attr.wc_flags |= IBV_WC_EX_WITH_CVLAN;
    assert_null(ibv_create_cq_ex(context, &cq_attr)); /* its reader would be called unchecked */
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_dealloc_pd(attr.pd), 0);
    ibv_close_device(context);
}

/* A peer that names a key that is not there ends the connection, and our queue ids reports it. */
static void test_asynchronous_event(void **state)
{
    struct ids ids = {0};
    struct ibv_async_event event;
    (void)state;

    ids_connect(&ids);
    assert_int_equal(rdma_post_write(ids.client, NULL, ids.client_buffer, 8, ids.client_mr, 0, 64, 1234), 0);
    assert_int_equal(ibv_get_async_event(ids.server->verbs, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    assert_ptr_equal(event.element.qp, ids.server->qp);
    ibv_ack_async_event(&event);
    assert_int_equal(ids_completion(ids.server->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
    ids_free(&ids);
}

/* A child of a process that is connected connects by itself. */
static void test_fork(void **state)
{
    struct ids ids = {0};
    int status;
    pid_t child;
    (void)state;

    ids_connect(&ids);
    child = fork();
    if (!child) {
        struct ids own = {0};
        ids_connect(&own);
        _exit(own.connect_error ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rdma_post_send(ids.client, NULL, ids.client_buffer, 8, ids.client_mr, 0), 0);
    assert_int_equal(ids_completion(ids.server->recv_cq).status, IBV_WC_SUCCESS);
    ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_listener_goes_first),
        cmocka_unit_test(test_queue_pair_goes_first),
        cmocka_unit_test(test_event_channel),
        cmocka_unit_test(test_bind),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_mistakes_of_requests),
        cmocka_unit_test(test_extended),
        cmocka_unit_test(test_asynchronous_event),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
