/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* on_demand.c - memory that is not there, at either end of every request: an error completion and never a signal, which
 * would end this program. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

#define FAR UINT64_C(0x210000000000)

enum {
    LENGTH = 1 << 20,
    CUT = LENGTH / 2, /* what is here ends there */
    RIGHTS = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ,
    ROUNDS = 4,
    LONG_ROUNDS = 200,
    WRITES = 16,
};

enum loss { UNMAPPED, PROTECTED, READ_ONLY, TRUNCATED, LOSSES };

static const char *const not_there = "memory registered on demand that is not there";

struct memory {
    int fd;
    uint8_t *at;
    struct rddp_mr *mr;
};

/* Far from where the system puts other mappings, one of which would fill a hole; a sanitizer may not allow that. */
static void *map_at(void *at, int fd)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

    return mmap(at, LENGTH, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static void make(struct memory *m, struct side *side, bool is_file)
{
    m->fd = is_file ? memfd_create("on_demand", MFD_CLOEXEC) : -1;
    assert_true(!is_file || !ftruncate(m->fd, LENGTH));
    m->at = map_at((void *)FAR, m->fd);
    assert_ptr_not_equal(m->at, MAP_FAILED);
    m->mr = rddp_reg_mr(side->pd, m->at, LENGTH, RIGHTS | RDDP_ACCESS_ON_DEMAND | RDDP_ACCESS_ZERO_BASED);
    assert_non_null(m->mr);
}

static void unmake(struct memory *m)
{
    assert_int_equal(rddp_dereg_mr(m->mr), 0);
    munmap(m->at, LENGTH);
    if (m->fd >= 0)
        close(m->fd);
}

static bool hole_is_safe(const struct memory *m)
{
    return (uintptr_t)m->at == FAR;
}

/* From CUT on nothing is there any more. */
static void lose(struct memory *m, enum loss loss)
{
    if (loss == TRUNCATED)
        assert_int_equal(ftruncate(m->fd, CUT), 0);
    else if (loss == UNMAPPED && hole_is_safe(m))
        assert_int_equal(munmap(m->at + CUT, LENGTH - CUT), 0);
    else
        assert_int_equal(mprotect(m->at + CUT, LENGTH - CUT, loss == READ_ONLY ? PROT_READ : PROT_NONE), 0);
}

static void request(struct pair *pair, enum rddp_wr_opcode opcode, struct rddp_sge sge, uint64_t remote, uint32_t rkey)
{
    struct rddp_send_wr wr = {
        .wr_id = opcode, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = RDDP_SEND_SIGNALED};

    wr.remote_addr = remote;
    wr.rkey = rkey;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
}

static struct rddp_sge piece(const struct memory *m, size_t at, size_t length)
{
    return (struct rddp_sge){.addr = at, .length = (uint32_t)length, .lkey = rddp_mr_key(m->mr)};
}

static void take(struct side *side, struct rddp_sge sge)
{
    struct rddp_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};

    assert_int_equal(rddp_post_recv(side->qp, &wr, NULL), 0);
}

static enum rddp_wc_status ends(struct side *side)
{
    return pair_completion(side).status;
}

static void expect_end(struct pair *pair)
{
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
}

static void again(struct pair *pair)
{
    assert_int_equal(rddp_reset_qp(pair->client.qp), 0);
    assert_int_equal(rddp_reset_qp(pair->server.qp), 0);
    pair_join(pair);
}

/* --- what is there ------------------------------------------------------------------------------------------------ */

/* Reads come behind the Writes, which are placed then. */
static void there(struct pair *pair, const struct memory *own, const struct memory *far)
{
    pair_pattern(own->at, LENGTH, 1);
    memset(far->at, 0, LENGTH);
    request(pair, RDDP_WR_RDMA_WRITE, piece(own, 1, LENGTH - 1), 1, rddp_mr_key(far->mr));
    assert_int_equal(ends(&pair->client), RDDP_WC_SUCCESS);
    memset(own->at, 0, LENGTH);
    request(pair, RDDP_WR_RDMA_READ, piece(own, 1, LENGTH - 1), 1, rddp_mr_key(far->mr));
    assert_int_equal(ends(&pair->client), RDDP_WC_SUCCESS);
    pair_pattern(far->at, 1, 1);
    own->at[0] = far->at[0];
    assert_true(pair_is_pattern(own->at, LENGTH, 1) && pair_is_pattern(far->at, LENGTH, 1));
    memset(far->at, 0, LENGTH);
    take(&pair->server, piece(far, 0, LENGTH));
    request(pair, RDDP_WR_SEND, piece(own, 0, LENGTH - 3), 0, 0);
    assert_int_equal(ends(&pair->client), RDDP_WC_SUCCESS);
    assert_int_equal(ends(&pair->server), RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(far->at, LENGTH - 3, 1) && !far->at[LENGTH - 1]);
}

/* Nothing is mapped when it is registered, and none of it was touched before. */
static void comes_later(void **state)
{
    struct pair *pair = *state;
    struct memory own, far;

    make(&far, &pair->server, true);
    make(&own, &pair->client, false);
    lose(&far, TRUNCATED);
    assert_int_equal(ftruncate(far.fd, LENGTH), 0);
    there(pair, &own, &far);
    unmake(&own);
    unmake(&far);
}

/* An sge of each kind, and small ones: in one segment they are gathered and scattered together. */
static void mixed_pieces(void **state)
{
    struct pair *pair = *state;
    struct rddp_sge out[3], in[3];
    struct rddp_send_wr wr = {.sg_list = out, .num_sge = 3, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_recv_wr receive = {.sg_list = in, .num_sge = 3};
    struct memory own, far;

    make(&own, &pair->client, false);
    make(&far, &pair->server, false);
    pair_pattern(own.at, 300, 2);
    memcpy(pair->client.buffer + 64, own.at + 100, 100);
    memset(own.at + 100, 0, 100);
    out[0] = piece(&own, 0, 100);
    out[1] = pair_sge(&pair->client, 64, 100);
    out[2] = piece(&own, 200, 100);
    in[0] = pair_sge(&pair->server, 32, 150);
    in[1] = piece(&far, 4095, 2);
    in[2] = pair_sge(&pair->server, 32 + 152, 148);
    assert_int_equal(rddp_post_recv(pair->server.qp, &receive, NULL), 0);
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    assert_int_equal(ends(&pair->client), RDDP_WC_SUCCESS);
    assert_int_equal(ends(&pair->server), RDDP_WC_SUCCESS);
    memcpy(pair->server.buffer + 32 + 150, far.at + 4095, 2);
    assert_true(pair_is_pattern(pair->server.buffer + 32, 300, 2));
    unmake(&own);
    unmake(&far);
}

/* --- what is not there -------------------------------------------------------------------------------------------- */

/* Octets of which those from CUT on are missing. */
struct hole_at {
    size_t at, octets;
};

/* The octets before the hole may be on their way when it is found. */
static void source(struct pair *pair, enum loss loss, enum rddp_wr_opcode opcode, struct hole_at what)
{
    struct memory own;

    make(&own, &pair->client, loss == TRUNCATED);
    take(&pair->server, pair_sge(&pair->server, 0, LENGTH));
    lose(&own, loss);
    request(pair, opcode, piece(&own, what.at, what.octets), 0, rddp_mr_key(pair->server.mr));
    assert_int_equal(ends(&pair->client), loss == READ_ONLY ? RDDP_WC_SUCCESS : RDDP_WC_LOC_PROT_ERR);
    if (loss == READ_ONLY)
        rddp_fail_qp(pair->client.qp);
    expect_end(pair);
    (void)ends(&pair->server);
    unmake(&own);
    again(pair);
}

static void sink_of_write(struct pair *pair, enum loss loss, struct hole_at what)
{
    struct memory far;
    enum rddp_wc_status status;

    make(&far, &pair->server, loss == TRUNCATED);
    lose(&far, loss);
    request(pair, RDDP_WR_RDMA_WRITE, pair_sge(&pair->client, 0, what.octets), what.at, rddp_mr_key(far.mr));
    status = ends(&pair->client);
    if (pair->row->wire == RDDP_WIRE_ROCE)
        assert_int_equal(status, RDDP_WC_REM_ACCESS_ERR);
    else
        assert_true(status == RDDP_WC_SUCCESS || status == RDDP_WC_REM_ACCESS_ERR || status == RDDP_WC_WR_FLUSH_ERR);
    expect_end(pair);
    assert_true(pair_said(&pair->server, not_there));
    unmake(&far);
    again(pair);
}

static void source_of_read(struct pair *pair, enum loss loss, struct hole_at what)
{
    enum rddp_wc_status wanted = pair->row->silent ? RDDP_WC_WR_FLUSH_ERR : RDDP_WC_REM_ACCESS_ERR;
    struct memory far;

    make(&far, &pair->server, loss == TRUNCATED);
    lose(&far, loss);
    request(pair, RDDP_WR_RDMA_READ, pair_sge(&pair->client, 0, what.octets), what.at, rddp_mr_key(far.mr));
    assert_int_equal(ends(&pair->client), loss == READ_ONLY ? RDDP_WC_SUCCESS : wanted);
    if (loss == READ_ONLY)
        rddp_fail_qp(pair->client.qp);
    expect_end(pair);
    unmake(&far);
    again(pair);
}

static void sink_of_read(struct pair *pair, enum loss loss, struct hole_at what)
{
    struct memory own;

    make(&own, &pair->client, loss == TRUNCATED);
    lose(&own, loss);
    request(pair, RDDP_WR_RDMA_READ, piece(&own, what.at, what.octets), 0, rddp_mr_key(pair->server.mr));
    assert_int_equal(ends(&pair->client), RDDP_WC_LOC_PROT_ERR);
    expect_end(pair);
    unmake(&own);
    again(pair);
}

static void sink_of_send(struct pair *pair, enum loss loss, struct hole_at what)
{
    enum rddp_wc_status status;
    struct memory far;

    make(&far, &pair->server, loss == TRUNCATED);
    lose(&far, loss);
    take(&pair->server, piece(&far, what.at, what.octets));
    request(pair, RDDP_WR_SEND, pair_sge(&pair->client, 0, what.octets), 0, 0);
    assert_int_equal(ends(&pair->server), RDDP_WC_LOC_PROT_ERR);
    status = ends(&pair->client);
    if (pair->row->wire == RDDP_WIRE_ROCE)
        assert_int_equal(status, RDDP_WC_REM_OP_ERR);
    else
        assert_true(status == RDDP_WC_SUCCESS || status == RDDP_WC_REM_OP_ERR || status == RDDP_WC_WR_FLUSH_ERR);
    expect_end(pair);
    unmake(&far);
    again(pair);
}

/* All of CUT, or one octet before the hole: what fails is one of many segments, the first, or half of the only one. */
static void lost(struct pair *pair, enum loss loss)
{
    static const struct hole_at from[] = {{0, LENGTH}, {CUT - 1, LENGTH - CUT + 1}, {CUT - 1, 2}};

    for (unsigned i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        source(pair, loss, RDDP_WR_RDMA_WRITE, from[i]);
        source(pair, loss, RDDP_WR_SEND, from[i]);
        sink_of_write(pair, loss, from[i]);
        source_of_read(pair, loss, from[i]);
        sink_of_read(pair, loss, from[i]);
        sink_of_send(pair, loss, from[i]);
    }
}

static void is_unmapped(void **state)
{
    lost(*state, UNMAPPED);
}

static void is_protected(void **state)
{
    lost(*state, PROTECTED);
    lost(*state, READ_ONLY);
}

static void file_is_truncated(void **state)
{
    lost(*state, TRUNCATED);
}

/* All memory of the process. */
static void all_addresses(void **state)
{
    struct pair *pair = *state;
    struct memory own;
    struct rddp_mr *all = rddp_reg_mr(pair->client.pd, NULL, SIZE_MAX, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_ON_DEMAND);

    assert_non_null(all);
    make(&own, &pair->client, false);
    pair_pattern(own.at, 5000, 7);
    request(pair, RDDP_WR_RDMA_WRITE, (struct rddp_sge){(uintptr_t)own.at, 5000, rddp_mr_key(all)}, 0,
            rddp_mr_key(pair->server.mr));
    assert_int_equal(ends(&pair->client), RDDP_WC_SUCCESS);
    memset(own.at, 0, 5000);
    request(pair, RDDP_WR_RDMA_READ, (struct rddp_sge){(uintptr_t)own.at, 5000, rddp_mr_key(all)}, 0,
            rddp_mr_key(pair->server.mr));
    assert_int_equal(ends(&pair->client), RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(own.at, 5000, 7));
    request(pair, RDDP_WR_RDMA_WRITE, (struct rddp_sge){8, 8, rddp_mr_key(all)}, 0, rddp_mr_key(pair->server.mr));
    assert_int_equal(ends(&pair->client), RDDP_WC_LOC_PROT_ERR);
    expect_end(pair);
    unmake(&own);
    assert_int_equal(rddp_dereg_mr(all), 0);
}

/* --- while it comes and goes -------------------------------------------------------------------------------------- */

static atomic_bool ending;

static void *come_and_go(void *arg)
{
    struct memory *m = arg;
    bool safe = hole_is_safe(m);

    while (!ending) {
        if (safe ? munmap(m->at, LENGTH) : mprotect(m->at, LENGTH, PROT_NONE))
            _exit(3);
        usleep(50);
        if (safe ? map_at(m->at, -1) != m->at : mprotect(m->at, LENGTH, PROT_READ | PROT_WRITE))
            _exit(4);
        usleep(200);
    }
    return NULL;
}

/* Posts requests, and counts how they end. Returns how many completed: the thread ends before the test fails. */
static int endure(struct pair *pair, enum rddp_wr_opcode opcode, const struct memory *own, int counted[3])
{
    struct rddp_wc wc[WRITES];
    int n;

    memset(counted, 0, 3 * sizeof(*counted));
    for (int i = 0; i < WRITES; i++)
        request(pair, opcode, piece(own, 0, LENGTH / 4), 0, rddp_mr_key(pair->server.mr));
    n = pair_poll(&pair->client, wc, WRITES);
    for (int i = 0; i < n; i++) {
        counted[0] += wc[i].status == RDDP_WC_SUCCESS;
        counted[1] += wc[i].status == RDDP_WC_LOC_PROT_ERR;
        counted[2] += wc[i].status == RDDP_WC_WR_FLUSH_ERR;
    }
    return n;
}

/* One request is to blame, and those that had not left are flushed with it. */
static void comes_and_goes(void **state)
{
    static struct memory own;
    struct pair *pair = *state;
    int counted[3];
    pthread_t thread;

    make(&own, &pair->client, false);
    for (int i = 0; i < (getenv("RDDP_LONG") ? LONG_ROUNDS : ROUNDS); i++) {
        int n;

        ending = false;
        assert_int_equal(pthread_create(&thread, NULL, come_and_go, &own), 0);
        n = endure(pair, i % 2 ? RDDP_WR_RDMA_WRITE : RDDP_WR_RDMA_READ, &own, counted);
        ending = true;
        pthread_join(thread, NULL);
        assert_int_equal(n, WRITES);
        assert_int_equal(counted[0] + counted[1] + counted[2], WRITES);
        assert_int_equal(counted[1], counted[0] < WRITES);
        if (!counted[1])
            continue;
        expect_end(pair);
        again(pair);
    }
    unmake(&own);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(comes_later),       PAIR_TEST(mixed_pieces),  PAIR_TEST(is_unmapped),    PAIR_TEST(is_protected),
        PAIR_TEST(file_is_truncated), PAIR_TEST(all_addresses), PAIR_TEST(comes_and_goes),
    };

    return pair_run("on_demand", tests, sizeof(tests) / sizeof(*tests), true);
}
