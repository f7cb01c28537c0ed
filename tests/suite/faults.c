/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* faults.c - mistakes of the application and of its peer: status, event, one English line. Shows RPCR-4.5.3-02. */
#include <errno.h>
#include <string.h>

#include "tests/suite/lib/pair.h"

static struct pair *of(void **state)
{
    return *state;
}

/* The line names the peer and the mistake; the other side receives the Terminate. */
static void expect_log(struct side *side, const char *text)
{
    if (!pair_said(side, text))
        fail_msg("the log does not say \"%s\":\n%s", text, side->log);
}

/* The side that was wrong is told, if the wire can: by a Terminate, by the reason of an ABORT, or by a NAK. */
static void expect_told(struct pair *pair, const char *terminate, const char *abort)
{
    if (pair->row->wire == RDDP_WIRE_ROCE)
        expect_log(&pair->client, "the peer refused the request");
    else if (!pair->row->silent)
        expect_log(&pair->client, pair->row->wire == RDDP_WIRE_SCTP ? abort : terminate);
}

static void expect_end(struct pair *pair)
{
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
}

static struct rddp_mr *region(struct side *side, size_t length, unsigned access)
{
    struct rddp_mr *mr = rddp_reg_mr(side->pd, side->buffer, length, access | RDDP_ACCESS_ZERO_BASED);

    assert_non_null(mr);
    return mr;
}

/* Posts a Write or Read against the server's region `key` and returns how it completed. */
static struct rddp_wc attempt(struct pair *pair, enum rddp_wr_opcode opcode, uint32_t key, uint64_t remote,
                              size_t length)
{
    struct rddp_sge sge = pair_sge(&pair->client, 0, length);
    struct rddp_send_wr wr = {
        .wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = RDDP_SEND_SIGNALED};

    wr.remote_addr = remote;
    wr.rkey = key;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    return pair_completion(&pair->client);
}

/* A Write that the target refuses changes nothing there (DDP-7.1-02, DDP-8-01). It may have completed here, because it
 * had been sent. */
static void refused_write(struct pair *pair, uint32_t key, uint64_t remote, size_t length, const char *words)
{
    pair_pattern(pair->client.buffer, 4096, 1);
    memset(pair->server.buffer, 0x77, 8192);
    attempt(pair, RDDP_WR_RDMA_WRITE, key, remote, length);
    expect_end(pair);
    for (size_t i = 0; i < 8192; i++)
        assert_int_equal(pair->server.buffer[i], 0x77);
    expect_log(&pair->server, words);
    expect_told(pair, "Terminate 0x11", "ABORT 0x021");
}

/* SEG-3.4-32. */
static void write_with_a_wrong_key(void **state)
{
    refused_write(of(state), rddp_mr_key(of(state)->server.mr) ^ 1, 0, 64, "STag");
}

static void write_past_the_end(void **state)
{
    struct pair *pair = of(state);
    struct rddp_mr *mr = region(&pair->server, 4096, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);

    refused_write(pair, rddp_mr_key(mr), 4096 - 63, 64, "outside the region");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void write_without_the_right(void **state)
{
    struct pair *pair = of(state);
    struct rddp_mr *mr = region(&pair->server, 4096, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_READ);

    refused_write(pair, rddp_mr_key(mr), 0, 64, "access");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void write_that_wraps(void **state)
{
    if (of(state)->row->wire == RDDP_WIRE_RDMATCP)
        skip(); /* offsets on this wire have 32 bits: refused by the post, see segments.c */
    refused_write(of(state), rddp_mr_key(of(state)->server.mr), UINT64_MAX - 10, 64, "2^64");
}

/* DDP-8-02: a key of another protection domain. */
static void write_into_another_domain(void **state)
{
    struct pair *pair = of(state);
    struct rddp_pd *pd = rddp_alloc_pd(pair->server.context);
    struct rddp_mr *mr = rddp_reg_mr(pd, pair->server.buffer, 4096,
                                     RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_ZERO_BASED);

    refused_write(pair, rddp_mr_key(mr), 0, 64, "domain");
    assert_int_equal(rddp_dereg_mr(mr), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
}

/* A refused Read completes with a remote access error (RFC 5040 7.2). */
static void read_without_the_right(void **state)
{
    struct pair *pair = of(state);
    struct rddp_mr *mr = region(&pair->server, 4096, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);

    memset(pair->client.buffer, 0x11, 64);
    assert_int_equal(attempt(pair, RDDP_WR_RDMA_READ, rddp_mr_key(mr), 0, 64).status,
                     pair->row->silent ? RDDP_WC_WR_FLUSH_ERR : RDDP_WC_REM_ACCESS_ERR);
    expect_end(pair);
    assert_int_equal(pair->client.buffer[0], 0x11);
    expect_told(pair, "Terminate 0x01", "ABORT 0x0312");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void send_without_a_receive(void **state)
{
    struct pair *pair = of(state);

    if (pair->row->wire == RDDP_WIRE_ROCE)
        skip(); /* the peer sends it again until there is one */
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
    expect_end(pair);
    expect_log(&pair->server, "receive");
    expect_told(pair, "Terminate 0x1202", "ABORT 0x0120");
}

static void send_longer_than_its_receive(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wc wc;

    pair_receive(&pair->server, 9, 0, 63);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
    expect_end(pair);
    wc = pair_completion(&pair->server);
    assert_int_equal(wc.wr_id, 9);
    assert_true(wc.status != RDDP_WC_SUCCESS);
    assert_int_equal(pair->server.buffer[0], 0xa5);
    expect_told(pair, "Terminate 0x1205", "ABORT 0x0123");
}

/* Mistakes of the local application. */
static void bad_lkey(void **state)
{
    struct pair *pair = of(state);
    struct rddp_sge sge = pair_sge(&pair->client, PAIR_BUFFER - 10, 11);
    struct rddp_send_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND};
    struct rddp_wc wc;

    pair_receive(&pair->server, 1, 0, 64);
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->client);
    assert_int_equal(wc.status, RDDP_WC_LOC_PROT_ERR);
    assert_int_equal(wc.wr_id, 3);
    expect_end(pair);
}

static void receive_into_foreign_memory(void **state)
{
    struct pair *pair = of(state);
    struct rddp_sge sge = {.addr = 0, .length = 64, .lkey = rddp_mr_key(pair->server.mr) + 1};
    struct rddp_recv_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1};
    struct rddp_wc wc;

    assert_int_equal(rddp_post_recv(pair->server.qp, &wr, NULL), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 8, 0, 0), 0);
    wc = pair_completion(&pair->server);
    assert_int_equal(wc.status, RDDP_WC_LOC_PROT_ERR);
    expect_end(pair);
}

static void contradictory_rights(void **state)
{
    const unsigned access[] = {1u << 31, RDDP_ACCESS_REMOTE_WRITE,
                               RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_STABLE,
                               RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE};
    struct pair *pair = of(state);

    for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++) {
        errno = 0;
        assert_null(rddp_reg_mr(pair->server.pd, pair->server.buffer, 1, access[i]));
        assert_int_equal(errno, EINVAL);
    }
}

static void queue_limits(void **state)
{
    struct pair *pair = of(state);
    struct rddp_sge sge[17];
    struct rddp_send_wr wr = {.sg_list = sge, .num_sge = 5, .opcode = RDDP_WR_SEND}, *bad = NULL;
    struct rddp_recv_wr recv = {.sg_list = sge, .num_sge = 5}, *bad_recv = NULL;

    for (int i = 0; i < 17; i++)
        sge[i] = pair_sge(&pair->client, 0, 1);
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, &bad), -EINVAL); /* default: 4 sges */
    assert_ptr_equal(bad, &wr);
    assert_int_equal(rddp_post_recv(pair->client.qp, &recv, &bad_recv), -EINVAL);
    wr.num_sge = 1;
    wr.opcode = (enum rddp_wr_opcode)99;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, &bad), -EINVAL);
    wr.opcode = RDDP_WR_SEND;
    wr.send_flags = RDDP_SEND_INLINE;
    sge[0].length = 65; /* default: 64 octets inline */
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, &bad), -EINVAL);
    for (int i = 0; i < PAIR_DEPTH; i++)
        pair_receive(&pair->client, 0, 0, 1);
    recv.num_sge = 1;
    assert_int_equal(rddp_post_recv(pair->client.qp, &recv, &bad_recv), -ENOMEM);
}

/* After deregistration nothing of the peer is placed any more (DDP-8-03). */
static void deregistered_under_load(void **state)
{
    struct pair *pair = of(state);
    struct rddp_mr *mr = region(&pair->server, 1 << 20, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    struct rddp_sge sge = pair_sge(&pair->client, 0, 1 << 20);
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};

    wr.rkey = rddp_mr_key(mr);
    for (int i = 0; i < 40; i++)
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    assert_int_equal(rddp_dereg_mr(mr), 0);
    memset(pair->server.buffer, 0x33, 1 << 20);
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0); /* in case all others arrived in time */
    expect_end(pair);
    for (size_t i = 0; i < 1 << 20; i++)
        assert_int_equal(pair->server.buffer[i], 0x33);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(write_with_a_wrong_key),
        PAIR_TEST(write_past_the_end),
        PAIR_TEST(write_without_the_right),
        PAIR_TEST(write_that_wraps),
        PAIR_TEST(write_into_another_domain),
        PAIR_TEST(read_without_the_right),
        PAIR_TEST(send_without_a_receive),
        PAIR_TEST(send_longer_than_its_receive),
        PAIR_TEST(bad_lkey),
        PAIR_TEST(receive_into_foreign_memory),
        PAIR_TEST(contradictory_rights),
        PAIR_TEST(queue_limits),
        PAIR_TEST(deregistered_under_load),
    };

    return pair_run("faults", tests, sizeof(tests) / sizeof(*tests), true);
}
