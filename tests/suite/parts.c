/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parts.c - keys over a part of a region between two connected queue pairs (RDMAP-7.2-01, RDMAP-8-01), and memory that
 * changes while it is sent. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/suite/lib/pair.h"

enum { AT = 8192, OCTETS = 1000, REMOTE = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE };

static struct rddp_mr *part_of(struct side *side, unsigned access)
{
    struct rddp_mr *part = rddp_reg_sub_mr(side->mr, side->buffer + AT, OCTETS, access | RDDP_ACCESS_ZERO_BASED);

    assert_non_null(part);
    return part;
}

static void post_to(struct side *from, enum rddp_wr_opcode opcode, uint64_t id, struct rddp_sge sge, uint32_t rkey,
                    uint64_t remote)
{
    struct rddp_send_wr wr = {
        .wr_id = id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = RDDP_SEND_SIGNALED,
        .rkey = rkey,
        .remote_addr = remote,
        .invalidate_rkey = rkey,
    };

    assert_int_equal(rddp_post_send(from->qp, &wr, NULL), 0);
}

static void only_inside(void **state)
{
    struct pair *p = *(struct pair **)state;
    struct rddp_mr *mr = p->server.mr, *part;
    uint8_t *at = p->server.buffer;

    errno = 0;
    assert_null(rddp_reg_sub_mr(mr, at - 1, 1, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(rddp_reg_sub_mr(mr, at + PAIR_BUFFER, 1, 0));
    assert_null(rddp_reg_sub_mr(mr, at, PAIR_BUFFER + 1, 0));
    assert_null(rddp_reg_sub_mr(mr, at, 1, 1 << 20));
    assert_null(rddp_reg_sub_mr(mr, at, 8, RDDP_ACCESS_REMOTE_WRITE)); /* as of rddp_reg_mr() */
    assert_null(rddp_reg_sub_mr(mr, at, 8, RDDP_ACCESS_REMOTE_ATOMIC));
    part = rddp_reg_sub_mr(mr, at, PAIR_BUFFER, RDDP_ACCESS_REMOTE_READ);
    assert_non_null(part);
    assert_null(rddp_reg_sub_mr(part, at, 1, 0));
    assert_int_not_equal(rddp_mr_key(part), rddp_mr_key(mr));
    assert_int_equal(rddp_mr_offset(part, at + 5), (uintptr_t)at + 5);
    assert_int_equal(rddp_dereg_mr(mr), -EBUSY);
    assert_true(rddp_mr_is_valid(mr));
    assert_int_equal(rddp_dereg_mr(part), 0);
    errno = 0;
    assert_null(rddp_reg_mr(p->server.pd, at, 8, RDDP_ACCESS_ONE_SHOT));
    assert_int_equal(errno, EINVAL);
}

/* Writable up to its last octet, and no further, although the region continues. */
static void written_to_its_end(void **state)
{
    struct pair *p = *(struct pair **)state;
    struct rddp_mr *part = part_of(&p->server, REMOTE);
    struct rddp_wc wc;

    pair_pattern(p->client.buffer, OCTETS + 1, 3);
    p->server.buffer[AT + OCTETS] = 0x77;
    post_to(&p->client, RDDP_WR_RDMA_WRITE, 1, pair_sge(&p->client, 0, OCTETS), rddp_mr_key(part), 0);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    post_to(&p->client, RDDP_WR_RDMA_WRITE, 2, pair_sge(&p->client, 0, OCTETS + 1), rddp_mr_key(part), 0);
    wc = pair_completion(&p->client);
    assert_true(wc.status == RDDP_WC_SUCCESS || wc.status == RDDP_WC_REM_ACCESS_ERR);
    pair_event(&p->server, RDDP_EVENT_DISCONNECTED);
    assert_true(pair_is_pattern(p->server.buffer + AT, OCTETS, 3));
    assert_int_equal(p->server.buffer[AT + OCTETS], 0x77);
    pair_event(&p->client, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_dereg_mr(part), 0);
}

static void sink_of_one_read(void **state)
{
    struct pair *p = *(struct pair **)state;
    struct rddp_mr *part = part_of(&p->client, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_ONE_SHOT);
    struct rddp_sge sink = {0, OCTETS, rddp_mr_key(part)};

    pair_pattern(p->server.buffer, OCTETS, 8);
    assert_true(rddp_mr_is_valid(part));
    post_to(&p->client, RDDP_WR_RDMA_READ, 1, sink, rddp_mr_key(p->server.mr), 0);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    assert_false(rddp_mr_is_valid(part));
    assert_true(pair_is_pattern(p->client.buffer + AT, OCTETS, 8));
    post_to(&p->client, RDDP_WR_RDMA_READ, 2, sink, rddp_mr_key(p->server.mr), 0);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_LOC_PROT_ERR);
    pair_event(&p->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&p->server, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_dereg_mr(part), 0);
}

/* The peer invalidates the part alone. */
static void invalidated_from_afar(void **state)
{
    struct pair *p = *(struct pair **)state;
    struct rddp_mr *part;
    struct rddp_wc wc;

    if (p->row->silent)
        return; /* this wire cannot invalidate keys remotely */
    part = part_of(&p->server, REMOTE);
    pair_receive(&p->server, 7, 0, 64);
    post_to(&p->client, RDDP_WR_SEND_WITH_INV, 1, pair_sge(&p->client, 0, 64), rddp_mr_key(part), 0);
    wc = pair_completion(&p->server);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.invalidated_rkey, rddp_mr_key(part));
    assert_false(rddp_mr_is_valid(part));
    assert_true(rddp_mr_is_valid(p->server.mr));
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    assert_int_equal(rddp_dereg_mr(part), 0);
}

static void dead_with_its_parent(void **state)
{
    struct pair *p = *(struct pair **)state;
    struct rddp_mr *part = part_of(&p->client, REMOTE);

    post_to(&p->client, RDDP_WR_LOCAL_INV, 1, pair_sge(&p->client, 0, 0), rddp_mr_key(p->client.mr), 0);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    assert_false(rddp_mr_is_valid(part));
    assert_null(rddp_reg_sub_mr(p->client.mr, p->client.buffer, 1, 0));
    assert_int_equal(rddp_dereg_mr(part), 0);
}

/* --- memory that changes ----------------------------------------------------------------------------------------- */

static atomic_bool enough;

/* The race is the application's, and what is tested: ThreadSanitizer is not told of it. */
__attribute__((no_sanitize_thread)) static void *scribble(void *arg)
{
    volatile uint8_t *at = arg;

    for (uint32_t i = 0; !enough; i += 64)
        at[i % (1 << 20)]++;
    return NULL;
}

/* Another thread writes to memory that large messages are sent from: no CRC is wrong, and no connection ends. */
static void sent_while_it_changes(void **state)
{
    enum { WRITES = 16, EACH = 1 << 20 };
    struct pair *p = *(struct pair **)state;
    struct rddp_wc wc[WRITES];
    int posted = 0, completed;
    pthread_t thread;

    enough = false;
    assert_int_equal(pthread_create(&thread, NULL, scribble, p->client.buffer), 0);
    for (uint64_t i = 0; i < WRITES; i++)
        posted += !pair_post(&p->client, &p->server, RDDP_WR_RDMA_WRITE, i, 0, EACH, EACH, RDDP_SEND_SIGNALED);
    completed = pair_poll(&p->client, wc, posted);
    enough = true;
    pthread_join(thread, NULL); /* before anything fails: the memory goes then */
    assert_int_equal(posted, WRITES);
    assert_int_equal(completed, WRITES);
    for (int i = 0; i < WRITES; i++)
        assert_int_equal(wc[i].status, RDDP_WC_SUCCESS);
    /* Everything has arrived: this Send comes after it. */
    pair_receive(&p->server, 7, 0, 64);
    assert_int_equal(pair_post(&p->client, &p->server, RDDP_WR_SEND, 99, 0, 8, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&p->server).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(only_inside),           PAIR_TEST(written_to_its_end),   PAIR_TEST(sink_of_one_read),
        PAIR_TEST(invalidated_from_afar), PAIR_TEST(dead_with_its_parent), PAIR_TEST(sent_while_it_changes),
    };

    return pair_run("parts", tests, sizeof(tests) / sizeof(tests[0]), true);
}
