/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_hostile.c - a requester that breaks the rules: a bare queue pair sends what a table says. Shows RPCR-8.1-01. */
#include <string.h>

#include "base/bytes.h"
#include "rpc/rpcrdma.h"
#include "tests/lib/vectors.h"
#include "tests/suite/lib/pair.h"
#include "tests/suite/lib/service.h"

enum { XID = 0x0a0b0c0d, BUFFER = 4096, RECEIVES = 16, SENT_AT = 1 << 20 };

static const struct row row = {.name = "crc", .crc = true, .mpa_revision = 2};
static struct service service;
static struct pair pair;

/* --- a bare requester against the responder ---------------------------------------------------------------------- */

static void raw_connect(void)
{
    struct rddp_qp_attr qp;
    struct rddp_conn_attr attr;

    rddp_qp_attr_init(&qp);
    qp.send_cq = qp.recv_cq = pair.client.cq;
    pair.client.qp = rddp_create_qp(pair.client.pd, &qp);
    assert_non_null(pair.client.qp);
    for (int i = 0; i < RECEIVES; i++)
        pair_receive(&pair.client, (uint64_t)i, (size_t)i * BUFFER, BUFFER);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(&row, false);
    assert_int_equal(
        rddp_connect(pair.client.qp, pair.client.events, (struct sockaddr *)&service.addr, sizeof(service.addr), &attr),
        0);
    pair_event(&pair.client, RDDP_EVENT_ESTABLISHED);
}

static void raw_open(const struct responder_attr *attr)
{
    memset(&pair, 0, sizeof(pair));
    service_open(&service, attr, false);
    pair_open(&pair, &row);
    raw_connect();
}

static void raw_close(void)
{
    pair_close(&pair);
    service_close(&service);
}

/* A message that is not answered may leave as late as the next one: each has octets of its own, in turn. */
static void raw_send(const uint8_t *p, size_t n)
{
    static size_t turn;
    size_t at = SENT_AT + turn++ % RECEIVES * BUFFER;

    if (n)
        memcpy(pair.client.buffer + at, p, n);
    assert_int_equal(pair_post(&pair.client, &pair.server, RDDP_WR_SEND, 1000, at, n, 0, RDDP_SEND_SIGNALED), 0);
}

/* Receives the next message of the peer and posts the receive again. */
static size_t raw_receive(uint8_t *to)
{
    struct rddp_wc wc;

    do {
        wc = pair_completion(&pair.client);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    } while (wc.opcode != RDDP_WC_RECV);
    memcpy(to, pair.client.buffer + wc.wr_id * BUFFER, wc.byte_len);
    pair_receive(&pair.client, wc.wr_id, (size_t)wc.wr_id * BUFFER, BUFFER);
    return wc.byte_len;
}

static size_t null_call(uint8_t *to, uint32_t xid)
{
    struct rpcrdma h = {.xid = xid, .version = 1, .credit = 8, .proc = RDMA_MSG};
    size_t n = rpcrdma_encode(&h, to, BUFFER);

    return n + service_call(to + n, xid, PROC_NULL, NULL, 0);
}

/* Whatever came before, this call is answered, and its reply is the next message (RPCR-4.5-01). */
static void check_alive(uint32_t xid)
{
    uint8_t bytes[BUFFER];
    struct rpcrdma h;

    raw_send(bytes, null_call(bytes, xid));
    assert_int_equal(rpcrdma_decode_reply(&h, bytes, raw_receive(bytes)), RPCRDMA_ACCEPT);
    assert_int_equal(h.xid, xid);
    assert_int_equal(h.proc, RDMA_MSG);
    assert_true(h.credit > 0);
}

static void check_error(uint32_t version, enum rpcrdma_error error)
{
    uint8_t bytes[BUFFER];
    size_t n = raw_receive(bytes);

    assert_int_equal(n, error == ERR_VERS ? 28 : 20);
    assert_int_equal(get32(bytes + 4), version); /* RPCR-4.5-05: copied from the request */
    assert_int_equal(get32(bytes + 12), RDMA_ERROR);
    assert_int_equal(get32(bytes + 16), error);
    assert_true(get32(bytes + 8) > 0);
    if (error == ERR_VERS) {
        assert_int_equal(get32(bytes + 20), 1);
        assert_int_equal(get32(bytes + 24), 1);
    }
}

/* RPCR-3.3.1-11: every malformed vector over a real connection: silence, ERR_VERS or ERR_CHUNK, and the next call is
 * answered (RPCR-4.5-02, RPCR-4.5-03, RPCR-4.5.1-01, RPCR-4.5.2-01, RPCR-4.6.1-02, RPCR-4.6.2-02, RPCR-4.2.4-02). */
static void malformed_calls(void **state)
{
    json_t *file = vectors_load("rpcrdma"), *entry;
    uint32_t xid = 100;
    size_t i;

    (void)state;
    raw_open(NULL);
    vectors_each(file, "malformed", i, entry) {
        const char *expect = vector_text(entry, "expect");
        uint8_t bytes[BUFFER];
        size_t n = vector_hex(entry, "hex", bytes, sizeof(bytes));

        if (strcmp(vector_text(entry, "received_by"), "requester") == 0)
            continue;
        raw_send(bytes, n);
        if (strncmp(expect, "discard", 7) != 0)
            check_error(get32(bytes + 4), strncmp(expect, "ERR_VERS", 8) == 0 ? ERR_VERS : ERR_CHUNK);
        check_alive(xid++);
    }
    json_decref(file);
    raw_close();
}

/* Other wrong headers, and headers that are not for a responder (RPCR-4.2.4-05): one row each. */
static void lying_calls(void **state)
{
    static const struct {
        const char *what;
        uint32_t proc, position, lengths[2], handle, answer; /* answer: 0: silence; else the error */
        bool write, reply_word;
    } rows[] = {
        {"RDMA_ERROR", RDMA_ERROR, 0, {0}, 0, 0, false, false},
        {"a reply for no call", RDMA_MSG, 0, {0}, 0, 0, false, true},
        {"a position behind the stream", RDMA_MSG, 4096, {8}, 1, ERR_CHUNK, false, false},
        {"a position just behind the stream's end", RDMA_MSG, 44, {8}, 1, ERR_CHUNK, false, false},
        {"more than is pulled", RDMA_MSG, 40, {1 << 20, 70000}, 1, ERR_CHUNK, false, false},
        {"lengths that wrap together", RDMA_MSG, 40, {UINT32_MAX, UINT32_MAX}, 1, ERR_CHUNK, false, false},
        {"a chunk in the middle of the RPC header", RDMA_MSG, 20, {8}, 1, ERR_CHUNK, false, false},
        {"a Position Zero chunk beside the stream", RDMA_MSG, 0, {8}, 1, ERR_CHUNK, false, false},
        {"a long call of nothing", RDMA_NOMSG, 0, {0}, 1, ERR_CHUNK, true, false},
    };
    uint32_t xid = 100;

    (void)state;
    raw_open(NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rpcrdma h = {.xid = XID, .version = 1, .credit = 8, .proc = rows[i].proc, .error = ERR_CHUNK};
        struct rpcrdma_segment segment = {rows[i].handle, 16, 0};
        uint8_t bytes[BUFFER];
        size_t n;

        for (int k = 0; k < 2 && rows[i].handle; k++)
            if (k == 0 || rows[i].lengths[k])
                rpcrdma_add_read(&h, rows[i].position, (struct rpcrdma_segment){rows[i].handle, rows[i].lengths[k], 0});
        if (rows[i].write)
            rpcrdma_add_write(&h, &segment, 1);
        n = rpcrdma_encode(&h, bytes, sizeof(bytes));
        n += service_call(bytes + n, XID, PROC_NULL, NULL, 0);
        if (rows[i].reply_word)
            put32(bytes + n - 36, 1);
        /* A chunk in the RPC header is pulled before it is examined, so the row names an existing region. */
        if (rows[i].position == 20)
            put32(bytes + 24, rddp_mr_key(pair.client.mr));
        raw_send(bytes, n);
        if (rows[i].answer)
            check_error(1, rows[i].answer);
        check_alive(xid++);
    }
    raw_close();
}

/* RPCR-8.1.4-02, RPCR-4.5.3-01, RPCR-4.5.3-04: an unknown handle ends the connection; the same XID on the next
 * connection gets ERR_CHUNK, and that connection stays. */
static void stale_handle(void **state)
{
    struct rpcrdma h = {.xid = XID, .version = 1, .credit = 8, .proc = RDMA_MSG};
    const uint32_t count = 100;
    uint8_t bytes[BUFFER];
    size_t n;

    (void)state;
    raw_open(NULL);
    rpcrdma_add_read(&h, SERVICE_CALL_HEAD + 4, (struct rpcrdma_segment){~rddp_mr_key(pair.client.mr), count, 0});
    n = rpcrdma_encode(&h, bytes, sizeof(bytes));
    n += service_call(bytes + n, XID, PROC_STORE, &count, 1);
    raw_send(bytes, n);
    pair_event(&pair.client, RDDP_EVENT_DISCONNECTED);
    rddp_destroy_qp(pair.client.qp);
    raw_connect();
    for (uint32_t i = 0; i < 2; i++) {
        raw_send(bytes, n);
        uint8_t answer[BUFFER];
        assert_int_equal(raw_receive(answer), 20);
        assert_int_equal(get32(answer + 16), ERR_CHUNK);
        check_alive(100 + i);
    }
    raw_close();
}

/* RPCR-3.4.4-01, RPCR-3.4.5-01, RPCR-3.4.5.2-02, RPCR-3.4.5.2-03, RPCR-3.4.5.2-04, RPCR-3.4.5.1-01, RPCR-3.4.5-04: a
 * chunk in two odd pieces; with its roundup, or without; or neither.
 */
static void chunk_lengths(void **state)
{
    static const uint32_t lengths[] = {5, 8, 6, 4};
    const uint32_t count = 5;

    (void)state;
    raw_open(NULL);
    for (uint32_t i = 0; i < 4; i++) {
        struct rpcrdma h = {.xid = XID + i, .version = 1, .credit = 8, .proc = RDMA_MSG};
        uint8_t bytes[BUFFER];
        size_t n;

        memcpy(pair.client.buffer + 2 * SENT_AT, "abcde???", 8);
        rpcrdma_add_read(&h, 44, (struct rpcrdma_segment){rddp_mr_key(pair.client.mr), 3, 2 * SENT_AT});
        rpcrdma_add_read(&h, 44,
                         (struct rpcrdma_segment){rddp_mr_key(pair.client.mr), lengths[i] - 3, 2 * SENT_AT + 3});
        n = rpcrdma_encode(&h, bytes, sizeof(bytes));
        n += service_call(bytes + n, XID + i, PROC_STORE, &count, 1);
        raw_send(bytes, n);
        n = raw_receive(bytes);
        assert_int_equal(get32(bytes + 12), i < 2 ? RDMA_MSG : RDMA_ERROR);
        if (i < 2)
            assert_int_equal(get32(bytes + n - 4), service_sum((const uint8_t *)"abcde", 5));
    }
    raw_close();
}

/* RPCR-8.1.4-03, RPCR-3.3-01: more calls than granted end the connection, but not the responder. */
static void credit_overrun(void **state)
{
    struct responder_attr attr;
    uint8_t bytes[BUFFER];
    uint32_t n = 4;

    (void)state;
    responder_attr_init(&attr);
    attr.credits = 2;
    attr.backward_credits = 0;
    raw_open(&attr);
    for (uint32_t i = 0; i < 12; i++) {
        struct rpcrdma h = {.xid = XID + i, .version = 1, .credit = 8, .proc = RDMA_MSG};
        size_t length = rpcrdma_encode(&h, bytes, sizeof(bytes));

        length += service_call(bytes + length, XID + i, PROC_HOLD, &n, 1);
        memcpy(pair.client.buffer + SENT_AT + i * BUFFER, bytes, length);
        pair_post(&pair.client, &pair.server, RDDP_WR_SEND, 1000, SENT_AT + i * BUFFER, length, 0, 0);
    }
    pair_event(&pair.client, RDDP_EVENT_DISCONNECTED);
    assert_true(atomic_load(&service.held) <= 2);
    atomic_store(&service.release, true);
    rddp_destroy_qp(pair.client.qp);
    raw_connect();
    check_alive(7);
    raw_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_calls), cmocka_unit_test(lying_calls),    cmocka_unit_test(stale_handle),
        cmocka_unit_test(chunk_lengths),   cmocka_unit_test(credit_overrun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
