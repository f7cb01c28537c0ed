/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* captures.c - what Linux 6.1's NFS/RDMA client and server said to each other: each message is taken, and encoded back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/rpcrdma.h"
#include "tests/lib/vectors.h"

enum { LINE = 20000 };

/* What a capture has to hold; a file that is cut off is no test. */
struct tally {
    unsigned messages, longs, backward, reads, writes, replies;
};

static void take(struct tally *tally, char side, const uint8_t *p, size_t n)
{
    enum rpcrdma_direction direction = rpcrdma_direction(p, n);
    bool call = direction == RPCRDMA_CALL || (direction == RPCRDMA_NEITHER && side == 'C');
    uint8_t again[LINE / 2];
    struct rpcrdma h;

    assert_int_equal(call ? rpcrdma_decode_call(&h, p, n) : rpcrdma_decode_reply(&h, p, n), RPCRDMA_ACCEPT);
    assert_true(h.credit > 0);
    assert_int_equal(rpcrdma_encode(&h, again, sizeof(again)), h.length);
    assert_memory_equal(again, p, h.length);
    tally->messages++;
    tally->longs += h.proc == RDMA_NOMSG;
    tally->backward += call == (side == 'S');
    tally->reads += h.reads > 0;
    tally->writes += h.writes > 0;
    tally->replies += h.has_reply;
}

static struct tally run(const char *name)
{
    static char line[LINE];
    static uint8_t bytes[LINE / 2];
    struct tally tally = {0};
    FILE *file;

    snprintf(line, sizeof(line), RDDP_SOURCE_DIR "/tests/captures/%s.txt", name);
    file = fopen(line, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        ptrdiff_t n;

        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#')
            continue;
        n = hex_decode(line + 2, bytes, sizeof(bytes));
        assert_true(n > 0);
        take(&tally, line[0], bytes, (size_t)n);
    }
    fclose(file);
    return tally;
}

/* RPCR-1-01 */
static void nfs3(void **state)
{
    struct tally tally = run("linux_nfs3");

    (void)state;
    assert_int_equal(tally.messages, 102);
    assert_int_equal(tally.backward, 0);
    assert_true(tally.reads && tally.writes && tally.replies && tally.longs);
}

static void long_calls(void **state)
{
    struct tally tally = run("linux_nfs3_long");

    (void)state;
    assert_int_equal(tally.messages, 38);
    assert_true(tally.longs && tally.reads);
}

/* With a call of the server over the client's connection (RFC 8167), and its reply. */
static void nfs41(void **state)
{
    struct tally tally = run("linux_nfs41");

    (void)state;
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
