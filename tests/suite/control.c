/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - control data of RDMA/TCP segments beside Writes, Reads and responses, from one application to the other.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crcseg.h"
#include "tests/suite/lib/bare.h"

enum { LIMIT = 1020, PAYLOAD = 100000 };

static uint8_t header[LIMIT], buffer[LIMIT + 4];

static struct pair *of(void **state)
{
    return *state;
}

/* Connects with receives for control data; skips the test on a wire without control data. */
static void open_pair(void **state)
{
    if (of(state)->row->wire != RDDP_WIRE_RDMATCP)
        skip();
    of(state)->qp_attr.rdma_control = true;
    pair_connect(of(state));
    pair_pattern(header, sizeof(header), 7);
    memset(buffer, 0xee, sizeof(buffer));
}

static void receive(struct side *side, uint64_t id, uint32_t octets)
{
    struct rddp_sge sge = pair_sge(side, PAYLOAD, PAYLOAD);
    struct rddp_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .control = buffer, .control_size = octets};

    assert_int_equal(rddp_post_recv(side->qp, &wr, NULL), 0);
}

static void post(struct side *from, const struct side *to, enum rddp_wr_opcode opcode, uint16_t control, size_t payload)
{
    struct rddp_sge sge = pair_sge(from, 0, payload);
    struct rddp_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode};

    wr.rkey = rddp_mr_key(to->mr);
    wr.control = header;
    wr.control_length = control;
    assert_int_equal(rddp_post_send(from->qp, &wr, NULL), 0);
}

static void expect(struct rddp_wc wc, uint64_t id, enum rddp_wc_opcode opcode, size_t payload, uint32_t control)
{
    uint32_t n = control < LIMIT - 4 ? control : LIMIT - 4;

    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.byte_len, payload);
    assert_int_equal(wc.control_length, control);
    assert_memory_equal(buffer, header, n);
    for (size_t i = n; i < sizeof(buffer); i++)
        assert_int_equal(buffer[i], 0xee);
    memset(buffer, 0xee, sizeof(buffer));
}

/* SEG-3.4-23 SEG-3.4-24 SEG-3.4-25: 1, 254 and 255 words, in a room of 254; 0 words are not reported. */
static void requests(void **state)
{
    static const uint16_t lengths[] = {0, 4, LIMIT - 4, LIMIT};
    static const enum rddp_wr_opcode opcode[] = {RDDP_WR_RDMA_WRITE, RDDP_WR_RDMA_READ};
    static const enum rddp_wc_opcode told[] = {RDDP_WC_RECV_RDMA_WITH_IMM, RDDP_WC_RECV_RDMA_READ};
    struct pair *pair = of(state);
    struct side *from = &pair->client, *to = &pair->server;
    uint64_t id = 0;

    pair->qp_attr.sq_sig_all = true;
    open_pair(state);
    pair_pattern(from->buffer, PAYLOAD, 8);
    for (size_t i = 0; i < 4 * 2 * 2; i++) {
        size_t payload = i / 8 * PAYLOAD;
        uint16_t length = lengths[i % 4];

        memset(to->buffer, 0, 2 * PAYLOAD);
        receive(to, id, LIMIT - 4);
        post(from, to, opcode[i / 4 % 2], length, payload);
        if (length)
            expect(pair_completion(to), id++, told[i / 4 % 2], payload, length);
        /* The receive that was not taken is used by the next Send. */
        if (!length) {
            post(from, to, RDDP_WR_SEND, 4, 0);
            expect(pair_completion(to), id++, RDDP_WC_RECV, 0, 4);
            assert_int_equal(pair_completion(from).status, RDDP_WC_SUCCESS);
        }
        /* The memory of a Read, at both ends, is not ours until its response has arrived. */
        assert_int_equal(pair_completion(from).status, RDDP_WC_SUCCESS);
        if (opcode[i / 4 % 2] == RDDP_WR_RDMA_WRITE)
            assert_true(pair_is_pattern(to->buffer, payload, 8));
        for (size_t k = PAYLOAD; k < 2 * PAYLOAD; k++)
            assert_int_equal(to->buffer[k], 0);
        pair_pattern(from->buffer, PAYLOAD, 8);
    }
}

/* Many requests of all kinds in both directions at once are reported in posting order. */
static void in_order(void **state)
{
    enum { MANY = 30 };
    static const enum rddp_wr_opcode opcode[] = {RDDP_WR_RDMA_WRITE, RDDP_WR_SEND, RDDP_WR_RDMA_READ};
    static const enum rddp_wc_opcode told[] = {RDDP_WC_RECV_RDMA_WITH_IMM, RDDP_WC_RECV, RDDP_WC_RECV_RDMA_READ};
    struct pair *pair = of(state);
    struct side *side[2] = {&pair->client, &pair->server};
    struct rddp_wc wc[MANY + 1];

    open_pair(state);
    for (int i = 0; i < 2; i++)
        for (uint64_t k = 0; k < MANY + (uint64_t)i; k++)
            receive(side[i], k, 0);
    post(side[0], side[1], RDDP_WR_SEND, 4, 0); /* the client must send first */
    pair_completion(side[1]);
    for (unsigned k = 0; k < MANY; k++)
        for (int i = 0; i < 2; i++)
            post(side[i], side[!i], opcode[k % 3], (uint16_t)(4 + 4 * k), 1000 * k);
    for (int i = 0; i < 2; i++) {
        pair_completions(side[i], wc, MANY);
        for (unsigned k = 0; k < MANY; k++) {
            assert_int_equal(wc[k].status, RDDP_WC_SUCCESS);
            assert_int_equal(wc[k].opcode, told[k % 3]);
            assert_int_equal(wc[k].byte_len, 1000 * k);
            assert_int_equal(wc[k].control_length, 4 + 4 * k);
        }
    }
}

/* --- a peer that is a bare socket -------------------------------------------------------------------------------- */

/* Completes a segment and returns its end. Segment Length counts neither pad nor CRC, and no pad is needed here. */
static uint8_t *seal(uint8_t *segment, uint8_t *end)
{
    put16(segment + 2, (uint16_t)(end - segment));
    put32le(end, crcseg(0, segment, (size_t)(end - segment)));
    return end + 4;
}

/* Writes an empty RDMA Write with one word of control data. */
static size_t empty_write(uint8_t *p, uint32_t number)
{
    uint8_t *q = put64(put16(put16(p, 0x010d), 0), 0x1234567812345678);

    q = put32(put16(put16(put32(q, number), 0xffff), 1), 7);
    return (size_t)(seal(p, put32(put32(put32(q, 0), 0), 0xc0ffee)) - p);
}

/* 200 000 Writes whose control data find no room: with rdma_control the connection ends at the first; without it they
 * are counted. */
static void flood(void **state)
{
    enum { MANY = 200000, EACH = 40 };
    struct pair *pair = of(state);
    uint8_t *all;
    struct rddp_qp_info info;
    struct rddp_qp *qp;

    open_pair(state);
    all = malloc((size_t)MANY * EACH);
    assert_non_null(all);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(empty_write(all + (size_t)i * EACH, i), EACH);
    for (int asked = 0; asked < 2; asked++) {
        int fd = bare_dial(pair, &qp, asked);
        size_t at = 0;
        ssize_t n;

        while (at < (size_t)MANY * EACH && (n = send(fd, all + at, (size_t)MANY * EACH - at, MSG_NOSIGNAL)) > 0)
            at += (size_t)n;
        if (asked) {
            pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
            assert_true(pair_said(&pair->server, "no receive is posted"));
        } else {
            assert_int_equal(shutdown(fd, SHUT_WR), 0);
            pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
            assert_int_equal(at, (size_t)MANY * EACH);
        }
        assert_int_equal(rddp_query_qp(qp, &info), 0);
        assert_int_equal(info.control_dropped, asked ? 0 : 4 * MANY);
        assert_int_equal(rddp_destroy_qp(qp), 0);
        close(fd);
    }
    free(all);
}

/* Answers the next Read Request, of 8 octets, in two segments with `control` octets of header[] each. */
static void answer(int fd, size_t control)
{
    uint8_t request[36], response[2 * (24 + LIMIT + 8)], *end = response;

    assert_int_equal(recv(fd, request, sizeof(request), MSG_WAITALL), (ssize_t)sizeof(request));
    assert_int_equal(request[1], 0x0e);
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t *begin = end;

        end = put_bytes(put16(put16(end, i ? 0x0107 : 0x010b), 0), request + 4, 12);
        end = put32(put8(put8(put16(end, 0xffff), 0), (uint8_t)(control / 4)), 4 * i);
        end = put_bytes(put_bytes(end, header + i * control, control), &"answered"[4 * i], 4);
        end = seal(begin, end);
    }
    assert_int_equal(send(fd, response, (size_t)(end - response), MSG_NOSIGNAL), end - response);
}

/* SEG-3.4-24 SEG-3.4-25: control data of a response are stored at the Read's response_control. Our code never sends
 * such responses. */
static void responses(void **state)
{
    static const size_t control[] = {0, 4, (LIMIT - 4) / 2};
    struct pair *pair = of(state);
    struct rddp_qp *qp;
    int fd;

    open_pair(state);
    fd = bare_answer(pair, &qp);
    for (size_t i = 0; i < 3; i++) {
        struct rddp_sge sge = pair_sge(&pair->client, 16, 8);
        struct rddp_send_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_READ};

        wr.send_flags = RDDP_SEND_SIGNALED;
        wr.response_control = buffer;
        wr.response_size = LIMIT - 4;
        memset(pair->client.buffer, 0, 64);
        assert_int_equal(rddp_post_send(qp, &wr, NULL), 0);
        answer(fd, control[i]);
        expect(pair_completion(&pair->client), i, RDDP_WC_RDMA_READ, 8, (uint32_t)(2 * control[i]));
        assert_memory_equal(pair->client.buffer + 12, "\0\0\0\0answered\0\0\0\0", 16);
    }
    assert_int_equal(rddp_destroy_qp(qp), 0);
    close(fd);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(requests),
        PAIR_TEST(in_order),
        PAIR_TEST(flood),
        PAIR_TEST(responses),
    };

    return pair_run("control", tests, sizeof(tests) / sizeof(*tests), false);
}
