/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rereg.c - a region changes its rights or its domain, or its memory, under a new key; regions whose addresses begin at
 * a number of their owner's. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum {
    OCTETS = 4096,
    REMOTE = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ,
    BASED = REMOTE | RDDP_ACCESS_ZERO_BASED,
    MEMORY = RDDP_REREG_MR_CHANGE_TRANSLATION,
    DOMAIN = RDDP_REREG_MR_CHANGE_PD,
    ACCESS = RDDP_REREG_MR_CHANGE_ACCESS,
};

static struct rddp_mr *region(struct pair *pair, unsigned access)
{
    struct rddp_mr *mr = rddp_reg_mr(pair->server.pd, pair->server.buffer, OCTETS, access);

    assert_non_null(mr);
    return mr;
}

static void post_write(struct pair *pair, uint32_t key, uint64_t remote, size_t length)
{
    struct rddp_sge sge = pair_sge(&pair->client, 0, length);
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .rkey = key, .remote_addr = remote};

    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
}

/* Writes, and waits until the octets are there: a Send comes after them. */
static void write_to(struct pair *pair, uint32_t key, uint64_t remote, size_t length)
{
    pair_receive(&pair->server, 1, PAIR_BUFFER - 64, 64);
    post_write(pair, key, remote, length);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 1, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
}

static void refused(struct pair *pair, uint32_t key, uint64_t remote, const char *why)
{
    post_write(pair, key, remote, 1);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    if (!pair_said(&pair->server, why))
        fail_msg("the log does not say \"%s\":\n%s", why, pair->server.log);
}

static void access_rights(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_ZERO_BASED);
    uint32_t before = rddp_mr_key(mr);

    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED), 0);
    assert_int_equal(rddp_mr_key(mr), before);
    pair_pattern(pair->client.buffer, OCTETS, 4);
    write_to(pair, rddp_mr_key(mr), 0, OCTETS);
    assert_true(pair_is_pattern(pair->server.buffer, OCTETS, 4));
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_ZERO_BASED), 0);
    refused(pair, rddp_mr_key(mr), 0, "access");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void old_key(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    uint32_t before = rddp_mr_key(mr);

    write_to(pair, before, 0, 8);
    assert_int_equal(rddp_rereg_mr(mr, MEMORY, NULL, pair->server.buffer, OCTETS / 2, 0), 0);
    assert_int_not_equal(rddp_mr_key(mr), before);
    write_to(pair, rddp_mr_key(mr), 0, 8);
    before = rddp_mr_key(mr);
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, REMOTE), 0); /* addresses no longer begin at 0 */
    assert_int_not_equal(rddp_mr_key(mr), before);
    refused(pair, before, 0, "STag");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

/* A peer that may write before and after does not notice. */
static void written_meanwhile(void **state)
{
    enum { ROUNDS = 200 };
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    uint32_t key = rddp_mr_key(mr);

    for (unsigned i = 0; i < ROUNDS; i++) {
        pair_pattern(pair->client.buffer, OCTETS, i);
        pair_receive(&pair->server, 1, PAIR_BUFFER - 64, 64);
        for (unsigned n = 0; n < PAIR_DEPTH / 2; n++)
            post_write(pair, key, 0, OCTETS);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 1, 0, RDDP_SEND_SIGNALED), 0);
        assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED & ~RDDP_ACCESS_REMOTE_READ), 0);
        assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED), 0);
        assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
        assert_true(pair_is_pattern(pair->server.buffer, OCTETS, i));
        assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
        assert_int_equal(rddp_mr_key(mr), key);
    }
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

/* Once it has returned a peer does what it may do now, and no more, although it writes on and on. */
static void revoked(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    uint8_t *at = pair->server.buffer;

    memset(pair->client.buffer, 0x55, OCTETS);
    write_to(pair, rddp_mr_key(mr), 0, OCTETS);
    for (unsigned i = 0; i < PAIR_DEPTH / 2; i++)
        post_write(pair, rddp_mr_key(mr), 0, OCTETS);
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED & ~RDDP_ACCESS_REMOTE_WRITE), 0);
    memset(at, 0x66, OCTETS);
    refused(pair, rddp_mr_key(mr), 0, "access");
    for (size_t i = 0; i < OCTETS; i++)
        assert_int_equal(at[i], 0x66);
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

/* Once it has returned nothing is written to the old memory, although the peer writes on and on. */
static void memory(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    uint8_t *at = pair->server.buffer, *then = at + 2 * OCTETS;
    uint32_t before = rddp_mr_key(mr);

    memset(at, 0, 3 * OCTETS);
    memset(pair->client.buffer, 0x55, OCTETS);
    write_to(pair, before, 0, OCTETS);
    for (unsigned i = 0; i < PAIR_DEPTH / 2; i++)
        post_write(pair, before, 0, OCTETS);
    assert_int_equal(rddp_rereg_mr(mr, MEMORY, NULL, then, OCTETS / 2, 0), 0);
    memset(at, 0x66, OCTETS);
    assert_int_equal(rddp_mr_offset(mr, then + 5), 5);
    refused(pair, before, 0, "STag");
    for (size_t i = 0; i < OCTETS; i++)
        assert_int_equal(at[i], 0x66);
    for (size_t i = 0; i < OCTETS; i++)
        assert_int_equal(then[i], 0);
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void new_memory(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    uint8_t *then = pair->server.buffer + 2 * OCTETS;

    memset(pair->server.buffer, 0, 3 * OCTETS);
    pair_pattern(pair->client.buffer, OCTETS, 9);
    assert_int_equal(rddp_rereg_mr(mr, MEMORY, NULL, then, OCTETS / 2, 0), 0);
    write_to(pair, rddp_mr_key(mr), 0, OCTETS / 2);
    assert_true(pair_is_pattern(then, OCTETS / 2, 9));
    assert_int_equal(pair->server.buffer[0], 0);
    refused(pair, rddp_mr_key(mr), OCTETS / 2, "outside");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void domain(void **state)
{
    struct pair *pair = *state;
    struct rddp_pd *pd = rddp_alloc_pd(pair->server.context), *home = pair->server.pd;
    struct rddp_mr *mr = rddp_reg_mr(pd, pair->server.buffer, OCTETS, BASED);

    assert_int_equal(rddp_rereg_mr(mr, DOMAIN, pair->client.pd, NULL, 0, 0), -EINVAL); /* of another context */
    assert_int_equal(rddp_rereg_mr(mr, DOMAIN, home, NULL, 0, 0), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    write_to(pair, rddp_mr_key(mr), 0, 8);
    pd = rddp_alloc_pd(pair->server.context);
    assert_int_equal(rddp_rereg_mr(mr, DOMAIN | MEMORY, pd, pair->server.buffer, 64, 0), 0);
    assert_int_equal(rddp_dealloc_pd(pd), -EBUSY);
    refused(pair, rddp_mr_key(mr), 0, "domain");
    assert_int_equal(rddp_dereg_mr(mr), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
}

/* After an error everything is as before. */
static void refused_changes(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED), *part;
    uint32_t key = rddp_mr_key(mr);
    uint8_t *hole = mmap(NULL, OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(hole, MAP_FAILED);
    assert_int_equal(munmap(hole, OCTETS), 0);
    assert_int_equal(rddp_rereg_mr(mr, 0, NULL, NULL, 0, 0), -EINVAL);
    assert_int_equal(rddp_rereg_mr(mr, 8, NULL, NULL, 0, 0), -EINVAL);
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, RDDP_ACCESS_REMOTE_WRITE), -EINVAL);
    assert_int_equal(rddp_rereg_mr(mr, MEMORY, NULL, NULL, 1, 0), -EINVAL);
    assert_int_equal(rddp_rereg_mr(mr, MEMORY, NULL, hole, OCTETS, 0), -EFAULT);
    part = rddp_reg_sub_mr(mr, pair->server.buffer, 8, REMOTE);
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED), -EBUSY);
    assert_int_equal(rddp_rereg_mr(part, ACCESS, NULL, NULL, 0, BASED), -EINVAL);
    assert_int_equal(rddp_dereg_mr(part), 0);
    assert_int_equal(rddp_mr_key(mr), key);
    write_to(pair, key, 0, OCTETS);
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

/* A region that was invalidated is valid again, under another key. */
static void invalidated(void **state)
{
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    struct rddp_send_wr wr = {
        .opcode = RDDP_WR_LOCAL_INV, .invalidate_rkey = rddp_mr_key(mr), .send_flags = RDDP_SEND_SIGNALED};

    write_to(pair, rddp_mr_key(mr), 0, 8); /* the server may send from now on */
    assert_int_equal(rddp_post_send(pair->server.qp, &wr, NULL), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_false(rddp_mr_is_valid(mr));
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED), 0);
    assert_true(rddp_mr_is_valid(mr));
    assert_int_not_equal(rddp_mr_key(mr), wr.invalidate_rkey);
    write_to(pair, rddp_mr_key(mr), 0, 8);
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static int invalidate_at_server(struct pair *pair, uint32_t key)
{
    struct rddp_sge sge = pair_sge(&pair->client, 0, 8);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1, .invalidate_rkey = key};

    return rddp_post_send(pair->client.qp, &wr, NULL);
}

/* A peer invalidates the key while the rights change: then that key is invalid, whichever came first. */
static void invalidated_meanwhile(void **state)
{
    enum { ROUNDS = 300 };
    struct pair *pair = *state;
    struct rddp_mr *mr = region(pair, BASED);
    struct rddp_wc wc;

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t key = rddp_mr_key(mr);

        pair_receive(&pair->server, 1, PAIR_BUFFER - 64, 64);
        if (invalidate_at_server(pair, key))
            break; /* this wire has no such request */
        do
            assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED), 0);
        while (!rddp_poll_cq(pair->server.cq, 1, &wc));
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_false(rddp_mr_is_valid(mr) && rddp_mr_key(mr) == key);
        assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, BASED), 0);
        assert_true(rddp_mr_is_valid(mr));
    }
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

/* --- addresses of the owner's ------------------------------------------------------------------------------------ */

static void iova(void **state)
{
    enum { IOVA = 0x10007 };
    struct pair *pair = *state;
    uint8_t *at = pair->server.buffer;
    struct rddp_mr *mr = rddp_reg_mr_iova(pair->server.pd, at + 3, 100, IOVA, REMOTE), *part;
    struct rddp_sge sge = {.addr = IOVA + 10, .length = 20};
    struct rddp_recv_wr recv = {.sg_list = &sge, .num_sge = 1};

    assert_non_null(mr);
    assert_int_equal(rddp_mr_offset(mr, at + 3 + 99), IOVA + 99);
    memset(at, 0, 200);
    pair_pattern(pair->client.buffer, 100, 2);
    write_to(pair, rddp_mr_key(mr), IOVA, 100);
    assert_true(pair_is_pattern(at + 3, 100, 2));
    /* Local requests name the same addresses. */
    sge.lkey = rddp_mr_key(mr);
    assert_int_equal(rddp_post_recv(pair->server.qp, &recv, NULL), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 20, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(at + 13, 20, 2));
    /* A part keeps them, or begins at 0. */
    part = rddp_reg_sub_mr(mr, at + 3 + 50, 8, REMOTE);
    assert_int_equal(rddp_mr_offset(part, at + 3 + 51), IOVA + 51);
    write_to(pair, rddp_mr_key(part), IOVA + 50, 8);
    assert_true(pair_is_pattern(at + 53, 8, 2));
    assert_int_equal(rddp_dereg_mr(part), 0);
    part = rddp_reg_sub_mr(mr, at + 3 + 60, 8, BASED);
    write_to(pair, rddp_mr_key(part), 0, 8);
    assert_true(pair_is_pattern(at + 63, 8, 2));
    assert_int_equal(rddp_dereg_mr(part), 0);
    /* Other rights leave them as they are. */
    assert_int_equal(rddp_rereg_mr(mr, ACCESS, NULL, NULL, 0, REMOTE), 0);
    write_to(pair, rddp_mr_key(mr), IOVA + 99, 1);
    refused(pair, rddp_mr_key(mr), IOVA - 1, "outside");
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

static void iova_limits(void **state)
{
    struct pair *pair = *state;
    struct rddp_pd *pd = pair->server.pd;
    uint8_t *at = pair->server.buffer;
    struct rddp_mr *mr = rddp_reg_mr_iova(pd, at, 8, UINT64_MAX - 8, REMOTE);

    assert_non_null(mr);
    assert_int_equal(rddp_mr_offset(mr, at + 7), UINT64_MAX - 1);
    assert_int_equal(rddp_dereg_mr(mr), 0);
    errno = 0;
    assert_null(rddp_reg_mr_iova(pd, at, 8, UINT64_MAX - 7, REMOTE));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(rddp_reg_mr_iova(pd, at, 8, 0, BASED));
    assert_int_equal(errno, EINVAL);
    mr = rddp_reg_mr_iova(pd, at, 8, 0, REMOTE);
    write_to(pair, rddp_mr_key(mr), 0, 8);
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(access_rights),
        PAIR_TEST(old_key),
        PAIR_TEST(memory),
        PAIR_TEST(new_memory),
        PAIR_TEST(domain),
        PAIR_TEST(refused_changes),
        PAIR_TEST(invalidated),
        PAIR_TEST(invalidated_meanwhile),
        PAIR_TEST(written_meanwhile),
        PAIR_TEST(revoked),
        PAIR_TEST(iova),
        PAIR_TEST(iova_limits),
    };

    return pair_run("rereg", tests, sizeof(tests) / sizeof(tests[0]), true);
}
