/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw.c - memory windows between two connected queue pairs: bound in the order of the queue, over every wire. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { IOVA = 1 << 16, AT = 4096, OCTETS = 1000, ID_BIND = 10, ID_SEND = 11, REMOTE = RDDP_ACCESS_REMOTE_WRITE };

static struct rddp_mr *region; /* the server's buffer under a key that lets no peer in */
static struct rddp_mw *window;

static struct pair *set_up(void **state, enum rddp_mw_type type)
{
    struct pair *p = *(struct pair **)state;

    region = rddp_reg_mr_iova(p->server.pd, p->server.buffer, PAIR_BUFFER, IOVA,
                              RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_MW_BIND);
    window = rddp_alloc_mw(p->server.pd, type);
    assert_non_null(region);
    assert_non_null(window);
    /* Who accepts a connection may send when something has come. */
    pair_receive(&p->server, 3, 0, 64);
    assert_int_equal(pair_post(&p->client, &p->server, RDDP_WR_SEND, 4, 0, 8, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&p->server).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    return p;
}

static void tear_down(void)
{
    assert_int_equal(rddp_dealloc_mw(window), 0);
    assert_int_equal(rddp_dereg_mr(region), 0);
}

/* The key with the next tag. */
static uint32_t next_key(uint32_t key)
{
    return (key & ~0xffu) | ((key + 1) & 0xff);
}

/* Posts in one list: `invalidate` unless it is 0, the bind, and a Send of an octet that says that it is done. */
static void bind_and_say(struct pair *p, uint32_t invalidate, uint32_t key, size_t at, size_t length)
{
    const struct rddp_mw_bind bind = {
        .addr = IOVA + at, .length = length, .lkey = rddp_mr_key(region), .access = REMOTE};
    struct rddp_sge sge = pair_sge(&p->server, 0, 1);
    struct rddp_send_wr say = {.wr_id = ID_SEND, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND};
    struct rddp_send_wr wr = {.wr_id = ID_BIND, .next = &say, .opcode = RDDP_WR_BIND_MW, .rkey = key, .bind = &bind};
    struct rddp_send_wr take = {.next = &wr, .opcode = RDDP_WR_LOCAL_INV, .invalidate_rkey = invalidate};

    wr.send_flags = say.send_flags = RDDP_SEND_SIGNALED;
    pair_receive(&p->client, 1, AT, 64);
    assert_int_equal(rddp_post_send(p->server.qp, invalidate ? &take : &wr, NULL), 0);
}

/* The bind completes, and then the peer knows. */
static void expect_bound(struct pair *p, uint32_t key)
{
    struct rddp_wc wc = pair_completion(&p->server);

    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.wr_id, ID_BIND);
    assert_int_equal(wc.opcode, RDDP_WC_BIND_MW);
    assert_int_equal(pair_completion(&p->server).wr_id, ID_SEND);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    assert_int_equal(rddp_mw_key(window), key);
}

static void write_there(struct pair *p, uint32_t key, size_t at, size_t length)
{
    struct rddp_sge sge = pair_sge(&p->client, 0, length);
    struct rddp_send_wr wr = {.wr_id = 2,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_RDMA_WRITE,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .rkey = key,
                              .remote_addr = IOVA + at};

    assert_int_equal(rddp_post_send(p->client.qp, &wr, NULL), 0);
}

/* Something of the client arrives behind what it wrote. */
static void expect_written(struct pair *p, size_t at, size_t length, unsigned seed)
{
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    pair_receive(&p->server, 3, 0, 64);
    assert_int_equal(pair_post(&p->client, &p->server, RDDP_WR_SEND, 4, 0, 8, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&p->server).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(p->server.buffer + at, length, seed));
}

static void expect_refused(struct pair *p)
{
    struct rddp_wc wc = pair_completion(&p->client);

    assert_true(wc.status == RDDP_WC_SUCCESS || wc.status == RDDP_WC_REM_ACCESS_ERR);
    pair_event(&p->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&p->client, RDDP_EVENT_DISCONNECTED);
}

/* --- binds ------------------------------------------------------------------------------------------------------ */

static void bound_and_bound_again(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_1);
    uint32_t key = rddp_mw_key(window);

    for (unsigned i = 0; i < 300; i++) { /* all tags */
        size_t at = AT + i;
        key = next_key(key);
        bind_and_say(p, 0, key, at, OCTETS);
        expect_bound(p, key);
        if (i % 50)
            continue;
        pair_pattern(p->client.buffer, OCTETS, i);
        write_there(p, key, at, OCTETS);
        expect_written(p, at, OCTETS, i);
    }
    assert_int_equal(rddp_dereg_mr(region), -EBUSY);
    tear_down();
}

static void invalidated_and_bound_again(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_2);
    uint32_t key = rddp_mw_key(window), before = 0;

    for (unsigned i = 0; i < 20; i++) {
        key = next_key(key);
        bind_and_say(p, before, key, AT, OCTETS);
        expect_bound(p, key);
        pair_pattern(p->client.buffer, OCTETS, i);
        write_there(p, key, AT, OCTETS);
        expect_written(p, AT, OCTETS, i);
        before = key;
    }
    tear_down();
}

static void old_key_leads_nowhere(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_1);
    uint32_t key = next_key(rddp_mw_key(window));

    bind_and_say(p, 0, key, AT, OCTETS);
    expect_bound(p, key);
    bind_and_say(p, 0, next_key(key), AT, OCTETS);
    expect_bound(p, next_key(key));
    p->server.buffer[AT] = 0x77;
    write_there(p, key, AT, 8);
    expect_refused(p);
    assert_int_equal(p->server.buffer[AT], 0x77);
    tear_down();
}

static void not_behind_its_end(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_2);
    uint32_t key = next_key(rddp_mw_key(window));

    bind_and_say(p, 0, key, AT, OCTETS);
    expect_bound(p, key);
    p->server.buffer[AT + OCTETS] = 0x77;
    write_there(p, key, AT + OCTETS - 7, 8);
    expect_refused(p);
    assert_int_equal(p->server.buffer[AT + OCTETS], 0x77);
    tear_down();
}

static void wrong_bind_ends_it(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_2);
    struct rddp_wc wc;

    bind_and_say(p, 0, next_key(rddp_mw_key(window)), PAIR_BUFFER - 8, 9);
    wc = pair_completion(&p->server);
    assert_int_equal(wc.status, RDDP_WC_MW_BIND_ERR);
    assert_int_equal(wc.wr_id, ID_BIND);
    assert_int_equal(pair_completion(&p->server).status, RDDP_WC_WR_FLUSH_ERR); /* the Send behind it */
    pair_event(&p->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&p->client, RDDP_EVENT_DISCONNECTED);
    tear_down();
}

static void invalidated_from_afar(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_2);
    uint32_t key = next_key(rddp_mw_key(window));
    struct rddp_sge sge = pair_sge(&p->client, 0, 8);
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_SEND_WITH_INV,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .invalidate_rkey = key};
    struct rddp_wc wc;

    bind_and_say(p, 0, key, AT, OCTETS);
    expect_bound(p, key);
    if (!p->row->silent) { /* such a wire invalidates nothing */
        pair_receive(&p->server, 7, 0, 64);
        assert_int_equal(rddp_post_send(p->client.qp, &wr, NULL), 0);
        assert_int_equal(pair_completion(&p->client).status, RDDP_WC_SUCCESS);
        wc = pair_completion(&p->server);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.invalidated_rkey, key);
        bind_and_say(p, 0, next_key(key), AT, OCTETS); /* it is free again */
        expect_bound(p, next_key(key));
    }
    tear_down();
}

/* --- objects ---------------------------------------------------------------------------------------------------- */

static void nothing_goes_too_early(void **state)
{
    struct pair *p = set_up(state, RDDP_MW_TYPE_1);
    uint32_t key = next_key(rddp_mw_key(window));
    struct rddp_pd *pd = rddp_alloc_pd(p->server.context);
    struct rddp_mw *other = rddp_alloc_mw(pd, RDDP_MW_TYPE_2);

    errno = 0;
    assert_null(rddp_alloc_mw(pd, (enum rddp_mw_type)3));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rddp_dealloc_pd(pd), -EBUSY);
    assert_int_equal(rddp_dealloc_mw(other), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    bind_and_say(p, 0, key, AT, OCTETS);
    expect_bound(p, key);
    assert_int_equal(rddp_dereg_mr(region), -EBUSY);
    assert_int_equal(rddp_rereg_mr(region, RDDP_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RDDP_ACCESS_LOCAL_WRITE),
                     -EBUSY);
    assert_int_equal(rddp_dealloc_mw(window), 0);
    p->server.buffer[AT] = 0x77;
    write_there(p, key, AT, 8);
    expect_refused(p);
    assert_int_equal(p->server.buffer[AT], 0x77);
    assert_int_equal(rddp_dereg_mr(region), 0);
}

static void *free_window(void *arg)
{
    atomic_bool *freed = arg;

    assert_int_equal(rddp_dealloc_mw(window), 0);
    *freed = true;
    return NULL;
}

/* A request binds the window just now. */
static void goes_after_a_bind(void **state)
{
    atomic_bool freed = false;
    pthread_t thread;
    bool too_early;

    set_up(state, RDDP_MW_TYPE_1);
    assert_true(mr_claim(window->mr));
    assert_int_equal(pthread_create(&thread, NULL, free_window, &freed), 0);
    poll(NULL, 0, 20);
    too_early = freed;
    if (!too_early)
        mr_release(window->mr);
    pthread_join(thread, NULL);
    assert_false(too_early);
    assert_int_equal(rddp_dereg_mr(region), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(bound_and_bound_again),  PAIR_TEST(invalidated_and_bound_again), PAIR_TEST(old_key_leads_nowhere),
        PAIR_TEST(not_behind_its_end),     PAIR_TEST(wrong_bind_ends_it),          PAIR_TEST(invalidated_from_afar),
        PAIR_TEST(nothing_goes_too_early), PAIR_TEST(goes_after_a_bind),
    };

    return pair_run("mw", tests, sizeof(tests) / sizeof(*tests), true);
}
