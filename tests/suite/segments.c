/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* segments.c - specific to RDMA/TCP segments: control data, order, Connection ID; and how such a connection ends. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/suite/lib/bare.h"

static struct pair *of(void **state)
{
    return *state;
}

static bool is_ours(void **state)
{
    return of(state)->row->wire == RDDP_WIRE_RDMATCP;
}

static struct rddp_wc send_with(struct pair *pair, const void *control, uint16_t length, size_t payload)
{
    struct rddp_sge sge = pair_sge(&pair->client, 0, payload);
    struct rddp_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND};

    wr.control = control;
    wr.control_length = length;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    return pair_completion(&pair->server);
}

/* SEG-3.4-23 SEG-3.4-24 SEG-3.4-25: the client protocol's header travels beside the data, of any length. */
static void control_data(void **state)
{
    static const uint16_t lengths[] = {0, 4, 64, 1020};
    struct pair *pair = of(state);
    uint8_t header[1024], buffer[1024];

    if (!is_ours(state))
        skip();
    pair_pattern(header, sizeof(header), 7);
    pair_pattern(pair->client.buffer, 200000, 8);
    for (size_t i = 0; i < 4; i++) {
        for (size_t payload = 0; payload <= 200000; payload += 100000) {
            struct rddp_sge sge = pair_sge(&pair->server, 0, 200000);
            struct rddp_recv_wr recv = {
                .sg_list = &sge, .num_sge = 1, .control = buffer, .control_size = sizeof(buffer)};
            struct rddp_wc wc;

            memset(pair->server.buffer, 0, 200001);
            memset(buffer, 0xee, sizeof(buffer));
            assert_int_equal(rddp_post_recv(pair->server.qp, &recv, NULL), 0);
            wc = send_with(pair, header, lengths[i], payload);
            assert_int_equal(wc.status, RDDP_WC_SUCCESS);
            assert_int_equal(wc.byte_len, payload);
            assert_int_equal(wc.control_length, lengths[i]);
            assert_memory_equal(buffer, header, lengths[i]);
            assert_int_equal(buffer[lengths[i]], 0xee);
            assert_true(pair_is_pattern(pair->server.buffer, payload, 8));
            assert_int_equal(pair->server.buffer[payload], 0);
        }
    }
}

/* Requests that this wire cannot express are refused by the post, as are requests on other wires that only this one can
 * express. SEG-2-02 */
static void refused(void **state)
{
    struct pair *pair = of(state);
    int elsewhere = is_ours(state) ? 0 : -EINVAL;
    struct rddp_sge sge = pair_sge(&pair->client, 0, 64);
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};

    wr.rkey = rddp_mr_key(pair->server.mr);
    wr.control = "head";
    wr.control_length = 4;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), elsewhere);
    wr.control_length = 0;
    wr.send_flags = RDDP_SEND_ORDER;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), elsewhere);
    wr.control_length = 5;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EINVAL);
    if (!is_ours(state))
        return;
    wr.control_length = 1024;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EINVAL);
    wr.control_length = 0;
    wr.remote_addr = (uint64_t)1 << 32;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EINVAL);
    wr.remote_addr = UINT32_MAX - 62;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EINVAL);
}

/* SEG-3.4-17: large Reads in both directions at once, and Sends behind them, which wait for each other's responses. */
static void sends_behind_reads(void **state)
{
    enum { OCTETS = 1 << 20, SENDS = 40 };
    struct pair *pair = of(state);
    struct side *side[2] = {&pair->client, &pair->server};
    struct rddp_wc wc[SENDS + 2];

    pair_pattern(pair->client.buffer, OCTETS, 1);
    pair_pattern(pair->server.buffer, OCTETS, 2);
    /* The client must send first. */
    pair_receive(&pair->server, 9, 3 * OCTETS, 64);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 9, 0, 1, 0, 0), 0);
    pair_completion(&pair->server);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < SENDS; k++)
            pair_receive(side[i], (uint64_t)k, 2 * OCTETS + (size_t)k * 64, 64);
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(pair_post(side[i], side[!i], RDDP_WR_RDMA_READ, 100 + k, OCTETS + k * OCTETS / 2,
                                       OCTETS / 2, k * OCTETS / 2, RDDP_SEND_SIGNALED),
                             0);
        for (int k = 0; k < SENDS; k++)
            assert_int_equal(pair_post(side[i], side[!i], RDDP_WR_SEND, 1, 0, 64, 0, 0), 0);
    }
    for (int i = 0; i < 2; i++) {
        uint64_t next = 0;

        pair_completions(side[i], wc, SENDS + 2);
        for (int k = 0; k < SENDS + 2; k++) {
            assert_int_equal(wc[k].status, RDDP_WC_SUCCESS);
            if (wc[k].opcode == RDDP_WC_RECV)
                assert_int_equal(wc[k].wr_id, next++);
        }
        assert_true(pair_is_pattern(side[i]->buffer + OCTETS, OCTETS, i ? 1 : 2));
    }
}

/* SEG-3.4-17 SEG-3.4-19: a Write of order 0 is not placed before the Read in front of it, whose response takes long:
 * its stream waits meanwhile and then continues. */
static void writes_behind_reads(void **state)
{
    enum { OCTETS = 1 << 20, ROUNDS = 10 };
    struct pair *pair = of(state);
    struct rddp_wc wc[2];

    if (!is_ours(state))
        skip();
    pair_pattern(pair->server.buffer, OCTETS, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct rddp_sge sge = pair_sge(&pair->client, 0, OCTETS);
        struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};

        wr.rkey = rddp_mr_key(pair->server.mr);
        wr.send_flags = RDDP_SEND_ORDER | RDDP_SEND_SIGNALED;
        pair_pattern(pair->client.buffer, OCTETS, i + 1);
        assert_int_equal(
            pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_READ, 1, OCTETS, OCTETS, 0, RDDP_SEND_SIGNALED), 0);
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
        pair_completions(&pair->client, wc, 2);
        assert_int_equal(wc[0].status, RDDP_WC_SUCCESS);
        assert_int_equal(wc[1].status, RDDP_WC_SUCCESS);
        assert_true(pair_is_pattern(pair->client.buffer + OCTETS, OCTETS, i));
    }
}

/* --- a peer that is a bare socket -------------------------------------------------------------------------------- */

/* Receives the first segment of a connection of ours, an empty Send. */
static void first_segment(struct pair *pair, uint8_t segment[28])
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND};
    struct rddp_qp *qp;
    int fd = bare_answer(pair, &qp);

    assert_int_equal(rddp_post_send(qp, &wr, NULL), 0);
    assert_int_equal(recv(fd, segment, 28, MSG_WAITALL), 28);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    close(fd);
}

/* SEG-3.4-01 SEG-3.4-09 SEG-3.4-11 SEG-3.4-15 SEG-5-01: the first octets are a segment's, and of 200 connections no two
 * have the same Connection ID or begin with the same number; each bit of the IDs is set in about half of them. */
static void random_beginnings(void **state)
{
    enum { MANY = 200 };
    static uint8_t segment[MANY][28];
    unsigned ones[64] = {0};

    if (!is_ours(state))
        skip();
    for (int i = 0; i < MANY; i++) {
        first_segment(of(state), segment[i]);
        assert_memory_equal(segment[i], "\x01\x0c\x00\x18", 4);
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(segment[i] + 4, segment[k] + 4, 8);
            assert_memory_not_equal(segment[i] + 12, segment[k] + 12, 4);
        }
        for (int bit = 0; bit < 64; bit++)
            ones[bit] += segment[i][4 + bit / 8] >> bit % 8 & 1;
    }
    for (int bit = 0; bit < 64; bit++)
        assert_in_range(ones[bit], MANY / 4, 3 * MANY / 4); /* 7 standard deviations */
}

/* Bad input ends the connection at once without a message, and one log line names the field. */
static void bad_segments(void **state)
{
    static const struct {
        const char *words;
        uint8_t octets[36];
    } cases[] = {
        {"Version", {2, 0x0c, 0, 24}},
        {"Segment Length", {1, 0x0c, 0, 23}},
        {"CLEN", {1, 0x0c, 0, 24, [19] = 1}},
        {"CRC-32", {1, 0x0c, 0, 24}},
    };
    struct pair *pair = of(state);

    if (!is_ours(state))
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rddp_qp *qp;
        int fd = bare_dial(pair, &qp, false);
        char octet;

        assert_int_equal(write(fd, cases[i].octets, 36), 36);
        assert_true(read(fd, &octet, 1) <= 0);
        pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
        if (!pair_said(&pair->server, cases[i].words))
            fail_msg("the log does not say \"%s\":\n%s", cases[i].words, pair->server.log);
        assert_int_equal(rddp_destroy_qp(qp), 0);
        close(fd);
    }
}

/* Nothing can carry private data before the first segment. */
static void no_private_data(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_attr qp_attr;
    struct rddp_conn_attr attr;
    struct rddp_qp *qp;

    if (!is_ours(state))
        skip();
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = pair->client.cq;
    qp = rddp_create_qp(pair->client.pd, &qp_attr);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    attr.private_data = "x";
    attr.private_data_length = 1;
    assert_int_equal(rddp_connect(qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
                     -EINVAL);
    assert_int_equal(rddp_destroy_qp(qp), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(control_data),        PAIR_TEST(refused),           PAIR_TEST(sends_behind_reads),
        PAIR_TEST(writes_behind_reads), PAIR_TEST(random_beginnings), PAIR_TEST(bad_segments),
        PAIR_TEST(no_private_data),
    };

    return pair_run("segments", tests, sizeof(tests) / sizeof(*tests), true);
}
