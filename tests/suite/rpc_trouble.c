/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_trouble.c - a requester against a responder over loopback: credits, and what remains after failures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/suite/lib/rpc.h"

enum { OTHERS = 100 };

static struct exchange *others;

static int tear_down_all(void **state)
{
    free(others);
    others = NULL;
    return tear_down(state);
}

/* --- credits --------------------------------------------------------------------------------------------------- */

static void start_others(struct requester *r, unsigned n)
{
    others = calloc(n, sizeof(*others));
    assert_non_null(others);
    for (unsigned i = 0; i < n; i++) {
        uint32_t word = i;

        exchange_init(&others[i], r, PROC_ECHO, &word, 1, 4);
        requester_start(r, &others[i].request);
    }
}

static void finish_others(struct requester *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        while (others[i].request.state != REQUEST_DONE)
            requester_wait(r, SERVICE_WAIT_MS);
        assert_int_equal(others[i].request.status, REQUEST_OK);
        assert_int_equal(exchange_result(&others[i], 0), i);
    }
}

/* RPCR-1.1-01, RPCR-2.3.2-01, RPCR-2.3.2-04, RPCR-3.3.1-02, RPCR-3.3.1-09, RPCR-3.3.1-10, RPCR-3.3.3-01, RPCR-3.3.3-02,
 * RPCR-3.3.1-03, RPCR-3.3.3-03, RPCR-3.3.1-04 */
static void credits(void **state)
{
    static const uint32_t grants[] = {0, 1, 4, 64};
    struct requester_stats stats;
    struct responder_attr attr;
    struct requester *r;

    (void)state;
    for (size_t i = 0; i < sizeof(grants) / sizeof(*grants); i++) {
        uint32_t want = grants[i] == 0 ? 1 : grants[i] < 32 ? grants[i] : 32;

        responder_attr_init(&attr);
        attr.credits = grants[i];
        service_open(&service, &attr, false);
        r = service_connect(&service, NULL);
        start_others(r, OTHERS);
        requester_stats(r, &stats);
        assert_int_equal(stats.in_flight, 1);
        finish_others(r, OTHERS);
        requester_stats(r, &stats);
        assert_int_equal(stats.granted, grants[i] ? grants[i] : 1);
        assert_true(stats.most_in_flight <= want);
        assert_int_equal(stats.connects, 1);
        close_both(r);
        free(others);
        others = NULL;
    }
}

/* --- trouble --------------------------------------------------------------------------------------------------- */

/* The connection is lost before the reply: the same XID is sent on another one, from another port, and not executed
 * twice (RPCR-4.5.5-01). */
static void retransmission(void **state)
{
    static const enum service_proc procs[] = {PROC_CUT, PROC_CUT_LATE};
    struct requester_stats stats;
    struct requester *r;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        r = open_both();
        exchange_init(e, r, PROC_COUNT, NULL, 0, 4);
        assert_int_equal(run(r), REQUEST_OK);
        exchange_init(e, r, procs[i], NULL, 0, 4);
        assert_int_equal(run(r), REQUEST_OK);
        assert_int_equal(exchange_result(e, 0), 2);
        assert_int_equal(atomic_load(&service.counted), 2);
        requester_stats(r, &stats);
        assert_int_equal(stats.connects, 2);
        assert_int_equal(stats.retransmitted, 1);
        exchange_init(e, r, PROC_COUNT, NULL, 0, 4);
        assert_int_equal(run(r), REQUEST_OK);
        assert_int_equal(exchange_result(e, 0), 3);
        close_both(r);
    }
}

/* RPCR-8.1.3-03, RPCR-8.1.4-04, RPCR-8.1.4-05, RPCR-4.4.1-04: the memory of a cancelled call is unreachable, and its
 * credit is in use until the reply or the end of the connection. */
static void cancelled(void **state)
{
    uint32_t n = 60000;
    struct requester_stats stats;
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_HOLD, &n, 1, 4);
    e->request.results = 1;
    e->request.result[0] = (struct request_item){.data = target, .length = n};
    requester_start(r, &e->request);
    while (atomic_load(&service.held) == 0)
        requester_wait(r, 1);
    requester_cancel(r, &e->request);
    assert_int_equal(e->request.state, REQUEST_DONE);
    assert_int_equal(e->request.status, REQUEST_CANCELLED);
    assert_int_equal(e->request.mrs, 0);
    requester_stats(r, &stats);
    assert_int_equal(stats.in_flight, 1);
    atomic_store(&service.release, true);
    /* The late Write finds no memory and ends the connection; the next call makes a new one. */
    exchange_init(e, r, PROC_COUNT, NULL, 0, 4);
    assert_int_equal(run(r), REQUEST_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_true(target[i] == 0xa5 || service_is_marked(i));
    requester_stats(r, &stats);
    assert_int_equal(stats.connects, 2);
    close_both(r);
}

/* RPCR-3.3.1-07: the late reply of a call that timed out returns its credit and has no other effect (RPCR-2.2.2-02). */
static void timed_out(void **state)
{
    uint32_t n = 8;
    struct requester_stats stats;
    struct responder_attr attr;
    struct requester *r;

    (void)state;
    responder_attr_init(&attr);
    attr.credits = 2;
    service_open(&service, &attr, false);
    r = service_connect(&service, NULL);
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    assert_int_equal(run(r), REQUEST_OK);
    exchange_init(e, r, PROC_HOLD, &n, 1, 64);
    e->request.timeout_ms = 30;
    requester_start(r, &e->request);
    while (e->request.state != REQUEST_DONE)
        requester_wait(r, 100);
    assert_int_equal(e->request.status, REQUEST_TIMED_OUT);
    atomic_store(&service.release, true);
    do {
        requester_wait(r, 10);
        requester_stats(r, &stats);
    } while (stats.in_flight);
    assert_int_equal(stats.late, 1);
    assert_int_equal(stats.connects, 1);
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    assert_int_equal(run(r), REQUEST_OK);
    close_both(r);
}

/* After too long a silence the call is sent over a new connection, with the same XID. */
static void silence(void **state)
{
    struct requester_stats stats;
    struct requester_attr attr;
    struct requester *r;

    (void)state;
    service_open(&service, NULL, false);
    requester_attr_init(&attr);
    attr.silence_ms = 250;
    r = service_connect(&service, &attr);
    exchange_init(e, r, PROC_DROP, NULL, 0, 0);
    requester_start(r, &e->request);
    do {
        requester_wait(r, 1000);
        requester_stats(r, &stats);
    } while (stats.connects < 3);
    assert_int_equal(stats.retransmitted, 2);
    /* The credit of a cancelled call is not returned either. */
    requester_cancel(r, &e->request);
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    assert_int_equal(run(r), REQUEST_OK);
    /* Without calls a peer may be silent for any time. */
    requester_wait(r, 400);
    requester_stats(r, &stats);
    assert_in_range(stats.connects, 3, 4);
    close_both(r);
}

/* --- the other direction ---------------------------------------------------------------------------------------- */

static size_t answer(void *user, const uint8_t *call, size_t length, uint8_t *reply, size_t space)
{
    unsigned *asked = user;

    assert_true(length >= SERVICE_CALL_HEAD && space > 64);
    assert_int_equal(get32(call + 20), 99);
    memset(reply, 0, 28);
    memcpy(reply, call, 4);
    put32(reply + 4, 1);
    put32(reply + 24, 4242 + (*asked)++);
    return 28;
}

/* RPCR-4-03, RPCR-7.1-01, RFC 8167: the responder calls back while the requester's own call, with the same XID, is
 * pending. */
static void backward_calls(void **state)
{
    struct requester_attr attr;
    struct requester *r;
    unsigned asked = 0;

    (void)state;
    service_open(&service, NULL, false);
    requester_attr_init(&attr);
    attr.backward = answer;
    attr.user = &asked;
    r = service_connect(&service, &attr);
    for (uint32_t i = 0; i < 20; i++) {
        exchange_init(e, r, PROC_BACKWARD, NULL, 0, 8);
        assert_int_equal(run(r), REQUEST_OK);
        assert_int_equal(exchange_result(e, 0), BACKCALL_ANSWERED);
        assert_int_equal(exchange_result(e, 1), 4242 + i);
    }
    assert_int_equal(asked, 20);
    close_both(r);
}

/* --- ends ------------------------------------------------------------------------------------------------------ */

/* RPCR-4.5.4-01: a call that cannot be built ends at once, and the remaining ones end with the requester. */
static void ends(void **state)
{
    struct requester *r;

    (void)state;
    r = open_both();
    exchange_init(e, r, PROC_NULL, NULL, 0, 0);
    e->request.arguments = 1;
    e->request.argument[0] = (struct request_item){.position = 4000, .length = 4, .data = target};
    assert_int_equal(run(r), REQUEST_NOT_SENT);
    exchange_init(e, r, PROC_HOLD, &(uint32_t){4}, 1, 64);
    requester_start(r, &e->request);
    requester_close(r);
    assert_int_equal(e->request.status, REQUEST_CLOSED);
    service_close(&service);
}

static void nobody_listens(void **state)
{
    struct sockaddr_storage addr;
    struct requester_attr attr;

    (void)state;
    service_open(&service, NULL, false);
    addr = service.addr;
    service_close(&service);
    requester_attr_init(&attr);
    assert_null(requester_open((struct sockaddr *)&addr, sizeof(addr), &attr, 2000));
    assert_int_equal(errno, ECONNREFUSED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(credits), TEST(retransmission), TEST(cancelled), TEST(timed_out),
        TEST(silence), TEST(backward_calls), TEST(ends),      TEST(nobody_listens),
    };

    int failed = 0;

    for (int wire = RDDP_WIRE_IWARP; wire <= RDDP_WIRE_RDMATCP; wire++) {
        service_wire = (enum rddp_wire)wire;
        failed += cmocka_run_group_tests_name(wire == RDDP_WIRE_IWARP ? "rpc_trouble (iwarp)" : "rpc_trouble (rdmatcp)",
                                              tests, NULL, NULL);
    }
    return failed;
}
