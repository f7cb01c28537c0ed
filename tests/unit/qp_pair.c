/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_pair.c - two queue pairs exchange segments. */
#include "tests/lib/engine.h"

/* All operations at once in both directions, in segments of many sizes: the memories match in the end (DDP-5.3-01
 * RDMAP-3-01). */
static void all_at_once(void **state)
{
    (void)state;
    for (uint32_t max = 1; max < 70; max += 3) {
        static struct side a, b;
        struct engine pair;
        struct mr *mine, *theirs;
        struct rddp_sge sge[2];

        engine_init(&pair);
        side_open(&a, &pair, NULL);
        side_open(&b, &pair, NULL);
        mine = engine_region(&pair, 512, ALL_ACCESS);
        theirs = engine_region(&pair, 512, ALL_ACCESS | RDDP_ACCESS_ZERO_BASED);
        pattern(mine->base, 256, max);
        pattern(theirs->base, 128, max + 1);
        sge[0] = piece_of(theirs, 400, 100);
        assert_int_equal(post_recv(&b, 1, sge, 1), 0);
        sge[0] = piece_of(mine, 0, 33);
        sge[1] = piece_of(mine, 33, 31);
        assert_int_equal(post_remote(&a, 1, RDDP_WR_RDMA_WRITE, 0, sge, 2, theirs->key, 128), 0);
        sge[0] = piece_of(mine, 256, 128);
        assert_int_equal(post_remote(&a, 2, RDDP_WR_RDMA_READ, 0, sge, 1, theirs->key, 64), 0);
        sge[0] = piece_of(mine, 64, 64);
        assert_int_equal(post(&a, 3, RDDP_WR_SEND, RDDP_SEND_SIGNALED, sge, 1), 0);
        sge[0] = piece_of(theirs, 256, 64);
        assert_int_equal(post_remote(&b, 4, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, sge, 1, mine->key, mine->start), 0);
        converse(&a, &b, max);
        expect_wc(&a.send_cq, 3, RDDP_WC_SUCCESS);
        expect_wc(&b.send_cq, 4, RDDP_WC_SUCCESS);
        assert_int_equal(expect_wc(&b.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, 64);
        assert_memory_equal(theirs->base + 128, mine->base, 64);       /* Write of a */
        assert_memory_equal(mine->base + 256, theirs->base + 64, 128); /* Read of a, after its Write */
        assert_memory_equal(theirs->base + 400, mine->base + 64, 64);  /* Send of a */
        assert_memory_equal(theirs->base + 256, mine->base, 64);       /* Read of b */
        assert_int_equal(a.qp.tx_octets, b.qp.rx_octets);
        assert_int_equal(b.qp.tx_octets, a.qp.rx_octets);
        side_fini(&a);
        side_fini(&b);
        engine_fini(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_at_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
