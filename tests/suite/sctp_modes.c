/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_modes.c - associations without negotiation through the public calls, over our own SCTP: buffers of
 * streams, tags, Writes alone beside an association for messages, and a peer that indicates nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum { STREAM = 3, AT = 100, LENGTH = 20000, TRIES = 2000 };

static struct row row = {.name = "sctp", .wire = RDDP_WIRE_SCTP, .crc = true, .mpa_revision = 2};
static struct pair pairs[2], *pair = pairs;

/* The listener of pair_open() indicates the default: another takes its place, at the same addresses. */
static void open_with(enum rddp_sctp_adaptation server)
{
    struct rddp_wire_attr wire;

    wire = pair_wire(&row, true);
    memset(pair, 0, sizeof(*pair));
    pair_open(pair, &row);
    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    wire.sctp_adaptation = server;
    pair->listener =
        rddp_listen(pair->server.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), 4, &wire, NULL);
    assert_non_null(pair->listener);
}

static struct rddp_qp *new_qp(struct side *side)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = side->cq;
    return rddp_create_qp(side->pd, &attr);
}

/* Receives are posted before: what comes at once finds one. */
static void join(enum rddp_sctp_adaptation client)
{
    struct rddp_mr *streams[STREAM + 1] = {[STREAM] = pair->server.mr};
    struct rddp_conn_attr attr;
    struct rddp_event request;

    pair->client.qp = new_qp(&pair->client);
    pair->server.qp = new_qp(&pair->server);
    assert_true(pair->client.qp && pair->server.qp);
    pair_receive(&pair->server, 1, 0, 64);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(&row, false);
    attr.wire.sctp_adaptation = client;
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        0);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    attr.sctp_streams = streams;
    attr.sctp_stream_count = STREAM + 1;
    assert_int_equal(rddp_accept(request.request, pair->server.qp, &attr), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
}

static int post_write(uint32_t rkey, uint64_t remote)
{
    struct rddp_sge sge = pair_sge(&pair->client, 0, LENGTH);
    struct rddp_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};

    wr.rkey = rkey;
    wr.remote_addr = remote;
    return rddp_post_send(pair->client.qp, &wr, NULL);
}

static void expect_peers(enum rddp_sctp_adaptation own, enum rddp_sctp_adaptation peer)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.sctp_own, own);
    assert_int_equal(info.sctp_peer, peer);
}

/* A Write, then a message: when that is received, the Write is placed. */
static void write_and_tell(uint32_t rkey)
{
    pair_pattern(pair->client.buffer, LENGTH, 5);
    assert_int_equal(post_write(rkey, AT), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 8, 0, 32, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->server.buffer + AT, LENGTH, 5));
}

/* The stream is the buffer; one without a buffer ends the association, and nothing changes. SCTP-2.1-03 */
static void streams(void **state)
{
    (void)state;
    open_with(RDDP_SCTP_DDP);
    join(RDDP_SCTP_DDP);
    expect_peers(RDDP_SCTP_DDP, RDDP_SCTP_DDP);
    write_and_tell(STREAM);
    pair_pattern(pair->client.buffer, LENGTH, 6);
    assert_int_equal(post_write(STREAM - 1, AT), 0);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    assert_true(pair_is_pattern(pair->server.buffer + AT, LENGTH, 5));
    pair_close(pair);
}

/* No more streams than there are. */
static void too_many_streams(void **state)
{
    struct rddp_mr *many[17] = {NULL};
    struct rddp_conn_attr attr;

    (void)state;
    open_with(RDDP_SCTP_DDP);
    pair->client.qp = new_qp(&pair->client);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(&row, false);
    attr.wire.sctp_adaptation = RDDP_SCTP_DDP;
    attr.sctp_streams = many;
    attr.sctp_stream_count = 17;
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        -EINVAL);
    pair_close(pair);
}

/* The tag is the key. SCTP-2.1-05 */
static void tags(void **state)
{
    (void)state;
    open_with(RDDP_SCTP_DDP_WITH_TAG);
    join(RDDP_SCTP_DDP_WITH_TAG);
    write_and_tell(rddp_mr_key(pair->server.mr));
    pair_close(pair);
}

/* Nothing tells of a Write here but the memory itself: ThreadSanitizer is not told that it is looked at. */
__attribute__((no_sanitize_thread)) static bool is_written(const uint8_t *source, const volatile uint8_t *target)
{
    size_t same = 0;

    while (same < LENGTH && target[same] == source[same])
        same++;
    return same == LENGTH;
}

/* Writes on one association, messages on another that places nothing. SCTP-2.1-06 SCTP-2.1-07 SCTP-2.2-13 */
static void siblings(void **state)
{
    (void)state;
    open_with(RDDP_SCTP_RDMA_NEGOTIATION);
    join(RDDP_SCTP_RDMA_NEGOTIATION);
    expect_peers(RDDP_SCTP_RDMA_NEGOTIATION, RDDP_SCTP_RDMA_NEGOTIATION);
    assert_int_equal(post_write(rddp_mr_key(pair->server.mr), AT), -EOPNOTSUPP);
    pair_receive(&pair->client, 2, 0, 64);
    memcpy(pair->server.buffer, &(uint32_t){rddp_mr_key(pair->server.mr)}, 4);
    assert_int_equal(pair_post(&pair->server, &pair->client, RDDP_WR_SEND, 9, 0, 4, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->client).wr_id, 2);
    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    pair->listener = NULL;

    /* The same port of UDP, at another address. */
    row.v6 = true;
    pair = &pairs[1];
    open_with(RDDP_SCTP_RDMA_ONLY);
    join(RDDP_SCTP_RDMA_ONLY);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 8, 0, 32, 0, 0), -EOPNOTSUPP);
    pair_pattern(pair->client.buffer, LENGTH, 5);
    assert_int_equal(post_write(rddp_mr_key(pair->server.mr), AT), 0);
    for (int i = 0; !is_written(pair->client.buffer, pair->server.buffer + AT); i++) {
        assert_true(i < TRIES);
        poll(NULL, 0, 5);
    }
    pair_close(pair);
    pair = pairs;
    pair_close(pair);
    row.v6 = false;
}

/* Then it is plain SCTP, which is said. SCTP-3.1-05 SCTP-3.1-06 */
static void no_indication(void **state)
{
    (void)state;
    open_with(RDDP_SCTP_NONE);
    join(RDDP_SCTP_RDMA_AND_NEGOTIATION);
    expect_peers(RDDP_SCTP_NONE, RDDP_SCTP_NONE);
    assert_true(pair_said(&pair->client, "the peer indicates no adaptation"));
    assert_int_equal(post_write(rddp_mr_key(pair->server.mr), AT), -EOPNOTSUPP);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 8, 0, 32, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    pair_close(pair);
}

/* Returns false if the peer's adaptation was there before the post, which is refused then. */
static bool is_too_early(void)
{
    struct rddp_event request;
    struct rddp_conn_attr attr;
    struct rddp_wc wc;
    int error, posted;

    open_with(RDDP_SCTP_NONE);
    pair->client.qp = new_qp(&pair->client);
    pair->server.qp = new_qp(&pair->server);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(&row, false);
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        0);
    posted = post_write(rddp_mr_key(pair->server.mr), AT);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    error = rddp_accept(request.request, pair->server.qp, NULL); /* the association may be over already */
    assert_true(error == 0 || error == -ECONNABORTED);
    if (posted) {
        assert_int_equal(posted, -EOPNOTSUPP);
        pair_close(pair);
        return false;
    }
    wc = pair_completion(&pair->client);
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.status, RDDP_WC_LOC_QP_OP_ERR);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    assert_int_not_equal(pair_event(&pair->client, RDDP_EVENT_DISCONNECTED).status, 0);
    pair_close(pair);
    return true;
}

/* What was posted before the peer told its adaptation, and has no message then, ends the association. */
static void posted_too_early(void **state)
{
    enum { ATTEMPTS = 100 };
    unsigned tries = 0;

    (void)state;
    while (!is_too_early())
        assert_true(++tries < ATTEMPTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams),  cmocka_unit_test(too_many_streams), cmocka_unit_test(tags),
        cmocka_unit_test(siblings), cmocka_unit_test(no_indication),    cmocka_unit_test(posted_too_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
