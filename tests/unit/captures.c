/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* captures.c - what Linux 6.1's NFS/RDMA client and server sent to each other: each message is decoded and encoded
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rpc/rpcrdma.h"
#include "tests/lib/capture.h"

/* The least that a capture must contain, so that a truncated file fails the test. */
static struct tally {
    unsigned messages, longs, backward, reads, writes, replies;
} tally;

static void take(char side, const uint8_t *p, size_t n)
{
    enum rpcrdma_direction direction = rpcrdma_direction(p, n);
    bool call = direction == RPCRDMA_CALL || (direction == RPCRDMA_NEITHER && side == 'C');
    uint8_t again[CAPTURE_MESSAGE];
    struct rpcrdma h;

    assert_int_equal(call ? rpcrdma_decode_call(&h, p, n) : rpcrdma_decode_reply(&h, p, n), RPCRDMA_ACCEPT);
    assert_true(h.credit > 0);
    assert_int_equal(rpcrdma_encode(&h, again, sizeof(again)), h.length);
    assert_memory_equal(again, p, h.length);
    tally.messages++;
    tally.longs += h.proc == RDMA_NOMSG;
    tally.backward += call == (side == 'S');
    tally.reads += h.reads > 0;
    tally.writes += h.writes > 0;
    tally.replies += h.has_reply;
}

static void run(const char *name)
{
    tally = (struct tally){0};
    capture_each(name, take);
}

/* RPCR-3.2-03, RPCR-4.4.3-01, RPCR-1-01 */
static void nfs3(void **state)
{
    (void)state;
    run("linux_nfs3");
    assert_int_equal(tally.messages, 102);
    assert_int_equal(tally.backward, 0);
    assert_true(tally.reads && tally.writes && tally.replies && tally.longs);
}

/* RPCR-3.5.3-05. */
static void long_calls(void **state)
{
    (void)state;
    run("linux_nfs3_long");
    assert_int_equal(tally.messages, 38);
    assert_true(tally.longs && tally.reads);
}

/* Includes a call from the server over the client's connection (RFC 8167), and its reply. */
static void nfs41(void **state)
{
    (void)state;
    run("linux_nfs41");
    assert_int_equal(tally.messages, 146);
    assert_int_equal(tally.backward, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nfs3),
        cmocka_unit_test(long_calls),
        cmocka_unit_test(nfs41),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
