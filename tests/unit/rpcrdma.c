/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcrdma.c - the RPC-over-RDMA header: vectors both ways, the verdict of each role on malformed headers,
 * arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/private.h"
#include "rpc/rpcrdma.h"
#include "rpc/payload.h"
#include "tests/lib/vectors.h"

enum { BUFFER = 8192 };

static enum rpcrdma_verdict decode(struct rpcrdma *h, const char *role, const uint8_t *p, size_t n)
{
    /* Copy into a buffer of exactly n octets, so that a sanitizer reports a read behind it. */
    uint8_t *copy = malloc(n ? n : 1);
    enum rpcrdma_verdict verdict;

    assert_non_null(copy);
    if (n)
        memcpy(copy, p, n);
    verdict = strcmp(role, "requester") == 0 ? rpcrdma_decode_call(h, copy, n) : rpcrdma_decode_reply(h, copy, n);
    rpcrdma_direction(copy, n);
    free(copy);
    return verdict;
}

static void check_segment(const struct rpcrdma_segment *got, const json_t *want)
{
    assert_int_equal(got->handle, vector_number(want, "handle"));
    assert_int_equal(got->length, vector_number(want, "length"));
    assert_int_equal(got->offset, vector_number(want, "offset"));
}

static void check_chunk(const struct rpcrdma *h, struct rpcrdma_chunk chunk, const json_t *want)
{
    size_t i;
    json_t *segment;

    assert_int_equal(chunk.count, json_array_size(want));
    json_array_foreach(want, i, segment)
        check_segment(&h->segment[chunk.first + i], segment);
}

static void check_lists(const struct rpcrdma *h, const json_t *fields)
{
    const json_t *reply = json_object_get(fields, "reply");
    json_t *entry;
    size_t i;

    assert_int_equal(h->reads, json_array_size(json_object_get(fields, "reads")));
    json_array_foreach(json_object_get(fields, "reads"), i, entry) {
        check_segment(&h->segment[i], entry);
        assert_int_equal(h->position[i], vector_number(entry, "position"));
    }
    assert_int_equal(h->writes, json_array_size(json_object_get(fields, "writes")));
    json_array_foreach(json_object_get(fields, "writes"), i, entry)
        check_chunk(h, h->write[i], entry);
    assert_int_equal(h->has_reply, json_is_array(reply));
    if (h->has_reply)
        check_chunk(h, h->reply, reply);
    assert_int_equal(h->length, vector_number(fields, "header_length"));
}

/* RPCR-2.3.2-02, RPCR-3.2-01, RPCR-3.3.1-01, RPCR-3.4.3-02, RPCR-3.4.6-01, RPCR-3.5.3-02, RPCR-4.1-02,
 * RPCR-4.2.2-01, RPCR-4.2.3-01, RPCR-4.2.4-03, RPCR-4.3.1-01, RPCR-4.3.2-01, RPCR-4-01, RPCR-4.2-01, RPCR-4.7-01,
 * RPCR-4.2.4-01, RPCR-4.3-01: each vector decodes to its fields and encodes to its octets. */
static void messages(void **state)
{
    json_t *file = vectors_load("rpcrdma"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "messages", i, entry) {
        const json_t *fields = json_object_get(entry, "fields");
        uint8_t bytes[BUFFER], again[BUFFER];
        size_t n = vector_hex(entry, "hex", bytes, sizeof(bytes));
        struct rpcrdma h;

        assert_int_equal(decode(&h, vector_text(entry, "sender"), bytes, n), RPCRDMA_ACCEPT);
        assert_int_equal(h.xid, vector_number(fields, "xid"));
        assert_int_equal(h.version, vector_number(fields, "vers"));
        assert_int_equal(h.credit, vector_number(fields, "credit"));
        assert_int_equal(h.proc, vector_number(fields, "proc"));
        if (h.proc == RDMA_ERROR) {
            assert_int_equal(h.error, vector_number(fields, "err"));
            assert_int_equal(h.version_low, vector_number_or(fields, "vers_low", 0));
            assert_int_equal(h.version_high, vector_number_or(fields, "vers_high", 0));
        } else {
            check_lists(&h, fields);
        }
        assert_int_equal(rpcrdma_size(&h), h.length);
        assert_int_equal(rpcrdma_encode(&h, again, h.length), h.length);
        assert_memory_equal(again, bytes, h.length);
        assert_int_equal(rpcrdma_encode(&h, again, h.length - 1), 0);
        /* The decoder accepts no truncated header (RPCR-4.5-02). */
        for (size_t k = 0; k < h.length; k++)
            assert_int_not_equal(decode(&h, vector_text(entry, "sender"), bytes, k), RPCRDMA_ACCEPT);
    }
    json_decref(file);
}

static enum rpcrdma_verdict verdict_of(const char *expect, bool responder)
{
    if (strncmp(expect, "discard", 7) == 0 || !responder)
        return RPCRDMA_DISCARD;
    return strncmp(expect, "ERR_VERS", 8) == 0 ? RPCRDMA_SAY_VERS : RPCRDMA_SAY_CHUNK;
}

/* RPCR-3.2-02, RPCR-7-01, RPCR-4.5-02, RPCR-4.5-03, RPCR-4.5-04, RPCR-4.5-07, RPCR-4.5.1-01, RPCR-4.5.2-01,
 * RPCR-4.6.1-02, RPCR-4.6.1-03, RPCR-4.6.2-02, RPCR-3.4.5-03, RPCR-4.2.4-02 */
static void malformed(void **state)
{
    json_t *file = vectors_load("rpcrdma"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "malformed", i, entry) {
        const char *by = vector_text(entry, "received_by"), *expect = vector_text(entry, "expect");
        uint8_t bytes[BUFFER];
        size_t n = vector_hex(entry, "hex", bytes, sizeof(bytes));
        struct rpcrdma h;

        if (strcmp(by, "requester") != 0)
            assert_int_equal(decode(&h, "requester", bytes, n), verdict_of(expect, true));
        if (strcmp(vector_text(entry, "id"), "RPCR-X-pos3") != 0)
            assert_int_equal(decode(&h, "responder", bytes, n), verdict_of(expect, false));
        else /* a reply must not have a Read list */
            assert_int_equal(decode(&h, "responder", bytes, n), RPCRDMA_DISCARD);
    }
    json_decref(file);
}

static size_t call_with(uint8_t *to, const struct rpcrdma *h)
{
    size_t n = rpcrdma_encode(h, to, BUFFER);

    assert_true(n > 0);
    memset(to + n, 0, 40);
    memcpy(to + n, to, 4);
    return n + 40;
}

/* Cases that the vectors lack: readings G2, G5, G17, G18, and segments that wrap. */
static void bad_chunks(void **state)
{
    const struct rpcrdma_segment a = {1, 100, 1000}, b = {1, 100, 1099}, c = {1, 100, 1100}, wrap = {2, 2, UINT64_MAX};
    const struct {
        uint32_t proc;
        struct rpcrdma_segment read[2];
        uint32_t position;
        struct rpcrdma_segment write[2], reply;
        enum rpcrdma_verdict verdict;
    } row[] = {
        {RDMA_MSG, {a, b}, 40, {{0}}, {0}, RPCRDMA_ACCEPT},
        {RDMA_MSG, {a, b}, 0, {{0}}, {0}, RPCRDMA_SAY_CHUNK},
        {RDMA_NOMSG, {a, b}, 0, {{0}}, {0}, RPCRDMA_ACCEPT},
        {RDMA_NOMSG, {a, b}, 40, {{0}}, {0}, RPCRDMA_SAY_CHUNK},
        {RDMA_MSG, {{0}}, 0, {a, c}, {0}, RPCRDMA_ACCEPT},
        {RDMA_MSG, {{0}}, 0, {a, b}, {0}, RPCRDMA_SAY_CHUNK},
        {RDMA_MSG, {{0}}, 0, {a, {0}}, b, RPCRDMA_SAY_CHUNK},
        {RDMA_MSG, {{0}}, 0, {a, {0}}, c, RPCRDMA_ACCEPT},
        {RDMA_MSG, {{0}}, 0, {wrap, {0}}, {0}, RPCRDMA_SAY_CHUNK},
        {RDMA_MSG, {wrap, {0}}, 40, {{0}}, {0}, RPCRDMA_SAY_CHUNK},
        {RDMA_NOMSG, {{0}}, 0, {a, {0}}, c, RPCRDMA_SAY_CHUNK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct rpcrdma h = {.xid = 7, .version = 1, .credit = 1, .proc = row[i].proc}, got;
        uint8_t bytes[BUFFER];

        for (int k = 0; k < 2; k++)
            if (row[i].read[k].length)
                assert_true(rpcrdma_add_read(&h, row[i].position, row[i].read[k]));
        for (int k = 0; k < 2; k++)
            if (row[i].write[k].length)
                assert_true(rpcrdma_add_write(&h, &row[i].write[k], 1));
        if (row[i].reply.length)
            assert_true(rpcrdma_set_reply(&h, &row[i].reply, 1));
        if (rpcrdma_decode_call(&got, bytes, call_with(bytes, &h)) != row[i].verdict)
            fail_msg("row %zu", i);
    }
}

/* RPCR-4.6-01, RPCR-A-01, RPCR-L-*: the most segments and chunks that a header may have, and one more. */
static void limits(void **state)
{
    const struct rpcrdma_segment s = {1, 4, 0};
    struct rpcrdma h = {.xid = 7, .version = 1, .proc = RDMA_MSG}, got;
    uint8_t bytes[BUFFER], longer[BUFFER];
    size_t n;

    (void)state;
    for (int i = 0; i < RPCRDMA_SEGMENTS; i++)
        assert_true(rpcrdma_add_read(&h, 40, s));
    assert_false(rpcrdma_add_read(&h, 40, s));
    n = call_with(bytes, &h);
    assert_int_equal(rpcrdma_decode_call(&got, bytes, n), RPCRDMA_ACCEPT);
    memcpy(longer, bytes, 16 + 24);
    memcpy(longer + 16 + 24, bytes + 16, n - 16);
    assert_int_equal(rpcrdma_decode_call(&got, longer, n + 24), RPCRDMA_SAY_CHUNK);
    h = (struct rpcrdma){.xid = 7, .version = 1, .proc = RDMA_MSG};
    for (int i = 0; i < RPCRDMA_CHUNKS; i++)
        assert_true(rpcrdma_add_write(&h, NULL, 0));
    assert_false(rpcrdma_add_write(&h, NULL, 0));
    n = call_with(bytes, &h);
    assert_int_equal(rpcrdma_decode_call(&got, bytes, n), RPCRDMA_ACCEPT);
    h.proc = RDMA_DONE;
    assert_int_equal(rpcrdma_encode(&h, bytes, BUFFER), 0); /* RPCR-4.6.2-01 */
    h.proc = RDMA_MSGP;
    assert_int_equal(rpcrdma_encode(&h, bytes, BUFFER), 0); /* RPCR-4.6.1-01 */
}

/* RPCR-3.4.6-04, RPCR-3.4.6-03, RPCR-3.4.6-05, RPCR-3.4.4-02, RPCR-S-fill */
static void fill(void **state)
{
    json_t *file = vectors_load("rpcrdma"), *entry, *number;
    size_t i, k;

    (void)state;
    vectors_each(vectors_find(file, "semantics", "RPCR-S-fill"), "cases", i, entry) {
        json_t *returned = json_object_get(entry, "returned");
        struct rpcrdma_segment segment[4] = {{0}};
        uint32_t count = 0;
        struct rpcrdma h = {.version = 1};
        bool fits;

        json_array_foreach(json_object_get(entry, "provided"), k, number)
            segment[count++].length = (uint32_t)json_integer_value(number);
        rpcrdma_add_write(&h, segment, count);
        fits = rpcrdma_fill(&h, h.write[0], vector_number(entry, "result_length"));
        assert_int_equal(fits, json_is_array(returned));
        json_array_foreach(returned, k, number)
            assert_int_equal(h.segment[k].length, json_integer_value(number));
    }
    json_decref(file);
}

/* RPCR-4-02, RPCR-3.4.5-02, RPCR-6.1-04, RPCR-S-reinsert, RPCR-S-two-chunks */
static void reinsert(void **state)
{
    static const char *const ids[] = {"RPCR-S-reinsert", "RPCR-S-two-chunks"};
    json_t *file = vectors_load("rpcrdma"), *chunk;
    size_t k;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        json_t *entry = vectors_find(file, "semantics", ids[i]);
        uint8_t payload[512], want[512], got[512], data[4][64];
        struct stream_item item[4];
        unsigned items = 0;
        size_t n = vector_hex(entry, "inline_payload", payload, sizeof(payload)), whole;

        json_array_foreach(json_object_get(entry, "chunks"), k, chunk) {
            item[items] = (struct stream_item){.position = (uint32_t)vector_number(chunk, "position")};
            item[items].length = (uint32_t)vector_hex(chunk, "data", data[items], 64);
            item[items].data = data[items];
            items++;
        }
        whole = vector_hex(entry, "expect", want, sizeof(want));
        assert_true(stream_is_sane(n, item, items));
        assert_int_equal(stream_length(n, item, items), whole);
        stream_join(got, payload, n, item, items);
        assert_memory_equal(got, want, whole);
        item[items - 1].position += 400;
        assert_false(stream_is_sane(n, item, items));
    }
    json_decref(file);
}

/* RPCR-3.3.1-05, RPCR-3.3.1-06, RPCR-S-credits */
static void credits(void **state)
{
    json_t *file = vectors_load("rpcrdma"), *entry;
    size_t i;

    (void)state;
    vectors_each(vectors_find(file, "semantics", "RPCR-S-credits"), "cases", i, entry) {
        if (json_object_get(entry, "requested"))
            assert_int_equal(rpcrdma_allowed((uint32_t)vector_number(entry, "requested"),
                                             (uint32_t)vector_number(entry, "granted"),
                                             (uint32_t)vector_number(entry, "in_flight")),
                             vector_number(entry, "may_send"));
    }
    json_decref(file);
}

static void header_sizes(void **state)
{
    static const struct rpcrdma_segment segment[RPCRDMA_SEGMENTS];
    json_t *file = vectors_load("rpcrdma"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "header_sizes", i, entry) {
        struct rpcrdma h = {.version = 1};
        uint32_t writes = (uint32_t)vector_number(entry, "write_segments");
        uint32_t reply = (uint32_t)vector_number(entry, "reply_segments");

        for (uint64_t n = vector_number(entry, "read_segments"); n; n--)
            rpcrdma_add_read(&h, 40, segment[0]);
        if (writes)
            rpcrdma_add_write(&h, segment, writes);
        if (reply)
            rpcrdma_set_reply(&h, segment, reply);
        assert_int_equal(rpcrdma_size(&h), vector_number(entry, "header_octets"));
    }
    json_decref(file);
}

/* RPCR-3.3.2-02, RFC 8797 */
static void private_data(void **state)
{
    json_t *file = vectors_load("rpcrdma"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "rfc8797_private_data", i, entry) {
        bool known = !json_object_get(entry, "expect");
        uint8_t bytes[64], again[PRIVATE_OCTETS];
        size_t n = vector_hex(entry, "hex", bytes, sizeof(bytes));
        struct private peer;

        assert_int_equal(private_decode(&peer, bytes, n), known);
        assert_int_equal(peer.send_size, vector_number_or(entry, "send", 1024));
        assert_int_equal(peer.receive_size, vector_number_or(entry, "recv", 1024));
        assert_int_equal(peer.remote_invalidation, vector_number_or(entry, "remote_invalidation", 0));
        private_encode(again, &peer);
        if (known)
            assert_memory_equal(again, bytes + n - PRIVATE_OCTETS, PRIVATE_OCTETS);
        for (size_t k = 0; k < n; k++)
            assert_false(private_decode(&peer, bytes, k));
    }
    json_decref(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages), cmocka_unit_test(malformed),    cmocka_unit_test(bad_chunks),
        cmocka_unit_test(limits),   cmocka_unit_test(fill),         cmocka_unit_test(reinsert),
        cmocka_unit_test(credits),  cmocka_unit_test(header_sizes), cmocka_unit_test(private_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
