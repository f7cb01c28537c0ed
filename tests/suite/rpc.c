/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc.c - a requester against a responder over loopback: each form of message, in each size. */
#include <stdlib.h>
#include <string.h>

#include "tests/suite/lib/rpc.h"

static void check_pattern(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != service_octet(i))
            fail_msg("octet %zu of %zu is wrong", i, n);
}

static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 100, 900, 1000, 3900, 3990, 4000, 4096, 65533, 1 << 20};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

/* Inline thresholds of both ends, and whether they announce them (RPCR-3.3.2-01, RPCR-3.3.3-05, RPCR-6.3-03). */
static const struct shape {
    uint32_t client, server;
    bool client_says, server_says, v6;
} shapes[] = {
    {4096, 4096, true, true, false},  {4096, 4096, false, true, false},  {4096, 4096, true, false, true},
    {1024, 65536, true, true, false}, {65536, 65536, true, true, false},
};

static struct requester *open_shape(const struct shape *shape)
{
    struct responder_attr server;
    struct requester_attr client;

    responder_attr_init(&server);
    requester_attr_init(&client);
    server.send_size = server.receive_size = shape->server;
    server.private_data = shape->server_says;
    client.send_size = client.receive_size = shape->client;
    client.private_data = shape->client_says;
    service_open(&service, &server, shape->v6);
    return service_connect(&service, &client);
}

/* --- forms of messages ----------------------------------------------------------------------------------------- */

/* RPCR-2.2.3-01, RPCR-4.3.1-02, RPCR-4.4-01, RPCR-2.2.2-01, RPCR-3.5.1-01, RPCR-4.2.1-01 */
static void null_call(void **state)
{
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    assert_int_equal(run(r), REQUEST_OK);
    assert_int_equal(e->request.reply_length, SERVICE_REPLY_HEAD);
    assert_memory_equal(e->reply, e->call, 4);
    close_both(r);
}

/* RPCR-3.3.3-04, RPCR-4.2.4-06, RPCR-4.3.2.3-01, RPCR-6.3-01, RPCR-8.2.2.3-02: inline, or as a Position Zero chunk and
 * into a Reply chunk: any length (RPCR-3.5.3-01, RPCR-3.5.3-03, RPCR-3.5.3-07).
 */
static void echo_of_each_size(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
        struct requester *r = open_shape(&shapes[k]);

        for (size_t i = 0; i < SIZES; i++) {
            uint32_t n = sizes[i] & ~3U;

            exchange_init(e, r, PROC_ECHO, NULL, 0, n);
            for (uint32_t at = 0; at < n; at++)
                e->call[SERVICE_CALL_HEAD + at] = service_octet(at);
            e->request.call_length += n;
            assert_int_equal(run(r), REQUEST_OK);
            assert_int_equal(e->request.reply_length, SERVICE_REPLY_HEAD + n);
            check_pattern(e->reply + SERVICE_REPLY_HEAD, n);
        }
        close_both(r);
    }
}

/* RPCR-2.3.2-06, RPCR-3.4.4.1-01, RPCR-3.4.4.4-02, RPCR-3.4.5.1-02, RPCR-3.4.5.2-01, RPCR-3.5.2-01, RPCR-3.5.2-02,
 * RPCR-4.3.1.1-01: the data of an argument is pulled by RDMA Read when it does not fit (RPCR-3.4.1-01, RPCR-3.4.2-02,
 * RPCR-3.4.5.1-01).
 */
static void store_of_each_size(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
        struct requester *r = open_shape(&shapes[k]);

        for (size_t i = 0; i < SIZES; i++) {
            exchange_init(e, r, PROC_STORE, &sizes[i], 1, 4);
            for (uint32_t at = 0; at < sizes[i]; at++)
                target[at] = service_octet(at);
            e->request.arguments = 1;
            e->request.argument[0] =
                (struct request_item){.position = SERVICE_CALL_HEAD + 4, .length = sizes[i], .data = target};
            assert_int_equal(run(r), REQUEST_OK);
            assert_int_equal(exchange_result(e, 0), service_sum(target, sizes[i]));
        }
        close_both(r);
    }
}

/* A large item and a large rest: everything goes as a Position Zero chunk, with its roundup (RPCR-3.5.3-08). */
static void long_call_with_item(void **state)
{
    uint32_t n = 70001;
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_ECHO, &n, 1, 120000);
    for (uint32_t at = 0; at < 8000; at++)
        e->call[SERVICE_CALL_HEAD + 4 + at] = service_octet(at);
    e->request.call_length += 8000;
    for (uint32_t at = 0; at < n; at++)
        target[at] = service_octet(at);
    e->request.arguments = 1;
    e->request.argument[0] = (struct request_item){.position = SERVICE_CALL_HEAD + 4, .length = n, .data = target};
    assert_int_equal(run(r), REQUEST_OK);
    assert_int_equal(e->request.reply_length, SERVICE_REPLY_HEAD + 4 + 70004 + 8000);
    check_pattern(e->reply + SERVICE_REPLY_HEAD + 4, n);
    check_pattern(e->reply + SERVICE_REPLY_HEAD + 4 + 70004, 8000);
    close_both(r);
}

static void check_fetch(struct requester *r, uint32_t n, uint32_t space)
{
    memset(target, 0xa5, TARGET);
    exchange_init(e, r, PROC_FETCH, &n, 1, 4);
    e->request.results = 1;
    e->request.result[0] = (struct request_item){.data = target, .length = space};
    assert_int_equal(run(r), REQUEST_OK);
    assert_int_equal(e->request.result[0].used, n);
    assert_int_equal(e->request.reply_length, SERVICE_REPLY_HEAD + 4);
    assert_int_equal(exchange_result(e, 0), n);
    check_pattern(target, n);
    /* RPCR-3.4.6.2-02: no roundup, even with room. */
    for (uint32_t i = n; i < n + 64; i++)
        assert_true(target[i] == 0xa5 || (i < space && service_is_marked(i)));
}

/* RPCR-2.3.2-05, RPCR-3.4.6-02, RPCR-3.4.6-06, RPCR-3.4.6.1-01, RPCR-3.4.6.2-01, RPCR-4.3.2.1-01, RPCR-3.4.6-03,
 * RPCR-3.4.6-05, RPCR-3.4.6.2-03, RPCR-4.3.2-02 */
static void fetch_of_each_size(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
        struct requester *r = open_shape(&shapes[k]);

        for (size_t i = 0; i < SIZES; i++) {
            check_fetch(r, sizes[i], sizes[i] ? sizes[i] : 1);
            check_fetch(r, sizes[i], sizes[i] + 4096);
        }
        close_both(r);
    }
}

/* RPCR-3.5.3-04, RPCR-4.3.3-01, RPCR-6.2-01, RPCR-4.3.3-02, RPCR-4.3.3-03: a Reply chunk is offered for the longest
 * reply, and what is short comes inline. */
static void reply_chunk(void **state)
{
    struct requester *r;

    (void)state;
    r = open_both();
    for (size_t i = 0; i < SIZES; i++) {
        exchange_init(e, r, PROC_LONG, &sizes[i], 1, 1 << 20);
        assert_int_equal(run(r), REQUEST_OK);
        assert_int_equal(e->request.reply_length, SERVICE_REPLY_HEAD + sizes[i]);
        check_pattern(e->reply + SERVICE_REPLY_HEAD, sizes[i]);
    }
    close_both(r);
}

/* RPCR-4.3.2.1-03, RPCR-4.5.3-03: detected before the first octet is written. */
static void misfits(void **state)
{
    uint32_t n = 8193;
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_FETCH, &n, 1, 4);
    e->request.results = 1;
    e->request.result[0] = (struct request_item){.data = target, .length = 8192};
    assert_int_equal(run(r), REQUEST_REFUSED);
    assert_int_equal(target[sizeof(uint64_t)], 0xa5);
    n = 20000;
    exchange_init(e, r, PROC_LONG, &n, 1, 10000);
    assert_int_equal(run(r), REQUEST_REFUSED);
    n = 5000;
    exchange_init(e, r, PROC_LONG, &n, 1, 100);
    assert_int_equal(run(r), REQUEST_REFUSED);
    /* The connection still works. */
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    assert_int_equal(run(r), REQUEST_OK);
    close_both(r);
}

/* RPCR-3.4.4.4-01, RPCR-3.4.6-07, RPCR-3.5.3-06, RPCR-4.3.2.1-04, RPCR-4.3.2.2-02, RPCR-4.3.2.2-04, RPCR-4.3.2.3-03,
 * RPCR-4.3.2.3-04: several Write chunks: in order, an arm without data leaves its chunk for the next, and what remains
 * is unused (RPCR-4.3.2.1-02, RPCR-4.3.2.2-01, RPCR-4.3.2.2-03); an empty chunk asks for its item inline
 * (RPCR-4.3.2.3-02). */
static void several_results(void **state)
{
    uint32_t n = 5001, buffers = 6000;
    struct requester *r;

    (void)state;
    r = open_both();
    for (int form = 0; form < 3; form++) {
        memset(target, 0xa5, TARGET);
        exchange_init(e, r, form == 1 ? PROC_ONE_OF_TWO : PROC_TWO, &n, 1, form == 2 ? 20000 : 12);
        e->request.results = 2;
        e->request.result[0] = (struct request_item){.data = form == 2 ? NULL : target, .length = buffers};
        e->request.result[1] = (struct request_item){.data = target + buffers, .length = buffers};
        assert_int_equal(run(r), REQUEST_OK);
        assert_int_equal(e->request.result[0].used, form == 2 ? 0 : n);
        assert_int_equal(e->request.result[1].used, form == 1 ? 0 : n);
        check_pattern(form == 2 ? target + buffers : target, n);
        if (form == 2) {
            assert_int_equal(e->request.reply_length, SERVICE_REPLY_HEAD + 12 + 5004);
            check_pattern(e->reply + SERVICE_REPLY_HEAD + 4, n);
        }
    }
    close_both(r);
}

/* RPCR-6.1-03, RPCR-3.4.2-01, RPCR-6.1-05: an item that is not eligible must not be reduced. */
static void not_eligible(void **state)
{
    uint32_t n = 5000;
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_FETCH, &n, 1, 4);
    e->request.arguments = 1;
    e->request.argument[0] = (struct request_item){.position = SERVICE_CALL_HEAD, .length = n, .data = target};
    assert_int_equal(run(r), REQUEST_REFUSED);
    close_both(r);
}

/* RPCR-3.4.4-03, RPCR-8.1.4-01: a call with more than the responder accepts is refused before it is pulled. */
static void too_much_to_pull(void **state)
{
    uint32_t n = (1 << 20) + 65536;
    struct requester *r;

    (void)state;
    r = open_both();
    for (uint32_t more = 0; more < 2; more++) {
        n += more;
        exchange_init(e, r, PROC_STORE, &n, 1, 4);
        e->request.arguments = 1;
        e->request.argument[0] = (struct request_item){.position = SERVICE_CALL_HEAD + 4, .length = n, .data = target};
        assert_int_equal(run(r), more ? REQUEST_REFUSED : REQUEST_OK);
    }
    close_both(r);
}

/* What was started in between leaves with requester_send(), without requester_wait(). */
static void gathered_calls(void **state)
{
    struct requester_stats stats;
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    requester_gather(r);
    requester_start(r, &e->request);
    requester_stats(r, &stats);
    assert_int_equal(stats.sent, 0);
    requester_send(r);
    requester_stats(r, &stats);
    assert_int_equal(stats.sent, 1);
    while (e->request.state != REQUEST_DONE)
        requester_wait(r, -1);
    assert_int_equal(e->request.status, REQUEST_OK);
    close_both(r);
}

/* RFC 8797: only if the peer announced support; the invalidated handle is one of the call's own. */
static void remote_invalidation(void **state)
{
    struct requester_stats stats;
    struct requester *r;

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        r = open_shape(&shapes[k]);
        check_fetch(r, 5000, 5000);
        requester_stats(r, &stats);
        assert_int_equal(stats.remotely_invalidated, shapes[k].client_says && service_wire == RDDP_WIRE_IWARP ? 1 : 0);
        close_both(r);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(null_call),
        TEST(echo_of_each_size),
        TEST(store_of_each_size),
        TEST(long_call_with_item),
        TEST(fetch_of_each_size),
        TEST(reply_chunk),
        TEST(misfits),
        TEST(several_results),
        TEST(not_eligible),
        TEST(too_much_to_pull),
        TEST(gathered_calls),
        TEST(remote_invalidation),
    };

    int failed = 0;

    for (int wire = RDDP_WIRE_IWARP; wire <= RDDP_WIRE_RDMATCP; wire++) {
        service_wire = (enum rddp_wire)wire;
        failed +=
            cmocka_run_group_tests_name(wire == RDDP_WIRE_IWARP ? "rpc (iwarp)" : "rpc (rdmatcp)", tests, NULL, NULL);
    }
    return failed;
}
