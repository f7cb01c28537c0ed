/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place_fault.c - each fault of placement once: its note, the completion that reports it, and no octet placed. */
#include <string.h>

#include "base/container.h"
#include "tests/lib/engine.h"

enum region { ALL, LOCAL_ONLY, READ_ONLY, SEALED, THEIRS, ZERO_BASED, GONE, REGIONS, UNKNOWN, NO_KEY };
enum { OCTETS = 128, PLACES = 16 };

/* An endpoint and a region of every kind. The key of GONE has been invalidated. */
struct bench {
    struct engine e;
    struct side s;
    struct mr *mr[REGIONS];
};

static uint8_t data[OCTETS * 2];

static void bench_init(struct bench *b)
{
    uint64_t epoch;
    static const unsigned access[REGIONS] = {
        [ALL] = ALL_ACCESS,  [LOCAL_ONLY] = LOCAL,  [READ_ONLY] = LOCAL | RDDP_ACCESS_REMOTE_READ,
        [SEALED] = 0,        [THEIRS] = ALL_ACCESS, [ZERO_BASED] = ALL_ACCESS | RDDP_ACCESS_ZERO_BASED,
        [GONE] = ALL_ACCESS,
    };

    engine_init(&b->e);
    for (int i = 0; i < REGIONS; i++) {
        b->mr[i] = engine_region(&b->e, OCTETS, access[i]);
        pattern(b->mr[i]->base, OCTETS, 100 + (uint32_t)i);
    }
    b->mr[THEIRS]->pd = &b->e.other_pd;
    assert_int_equal(mr_invalidate(&b->e.mrs, &b->e.pd, b->mr[GONE]->key, false, &epoch), FAULT_NONE);
    side_open(&b->s, &b->e, NULL);
    pattern(data, sizeof(data), 1);
}

static void bench_fini(struct bench *b)
{
    side_fini(&b->s);
    engine_fini(&b->e);
}

static uint64_t key_of(const struct bench *b, enum region r)
{
    return r < REGIONS ? b->mr[r]->key : r == UNKNOWN ? 0xdeadbeef : 0;
}

static uint64_t offset_of(const struct bench *b, enum region r, int64_t at)
{
    return (r < REGIONS ? b->mr[r]->start : 0) + (uint64_t)at;
}

/* --- what is there before the segment comes ------------------------------------------------------------------ */

/* Post a receive of 64 octets in two pieces. */
static void receive(struct bench *b)
{
    const struct rddp_sge sge[] = {piece_of(b->mr[ALL], 0, 40), piece_of(b->mr[LOCAL_ONLY], 40, 24)};

    assert_int_equal(post_recv(&b->s, 1, sge, 2), 0);
}

static void receive_none(struct bench *b)
{
    assert_int_equal(post_recv(&b->s, 1, NULL, 0), 0);
}

/* The second piece cannot be written, so the first piece must not be written either. */
static void receive_bad(struct bench *b)
{
    const struct rddp_sge sge[] = {piece_of(b->mr[ALL], 0, 40), piece_of(b->mr[SEALED], 40, 24)};

    assert_int_equal(post_recv(&b->s, 1, sge, 2), 0);
}

static void receive_outside(struct bench *b)
{
    const struct rddp_sge sge = piece_of(b->mr[ALL], OCTETS - 32, 64);

    assert_int_equal(post_recv(&b->s, 1, &sge, 1), 0);
}

static void receive_sealed(struct bench *b)
{
    const struct rddp_sge sge = piece_of(b->mr[SEALED], 0, 64);

    assert_int_equal(post_recv(&b->s, 1, &sge, 1), 0);
}

static void receive_theirs(struct bench *b)
{
    const struct rddp_sge sge = piece_of(b->mr[THEIRS], 0, 64);

    assert_int_equal(post_recv(&b->s, 1, &sge, 1), 0);
}

/* In a place of the queue where a longer one was: none of its pieces may be taken for one of this. */
static void receive_after_longer(struct bench *b)
{
    const struct rddp_sge sge[] = {piece_of(b->mr[ALL], 0, 64), piece_of(b->mr[ALL], 64, 64)};

    for (uint32_t msn = 1; msn <= PLACES; msn++) {
        assert_int_equal(post_recv(&b->s, msn, sge, 2), 0);
        assert_int_equal(arrive(&b->s, a_send(msn, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
        expect_wc(&b->s.recv_cq, msn, RDDP_WC_SUCCESS);
    }
    assert_int_equal(post_recv(&b->s, 1, sge, 1), 0);
}

static void receive_half(struct bench *b)
{
    receive(b);
    receive(b);
    assert_int_equal(arrive(&b->s, a_send(1, 0, data, 32, 0)), FAULT_NONE);
}

static void receive_cq_full(struct bench *b)
{
    receive(b);
    b->s.recv_cq.cqe = 1;
    assert_true(cq_push(&b->s.recv_cq, &(struct rddp_wc){.wr_id = 0}, false, NULL));
}

static void read_out(struct bench *b)
{
    const struct rddp_sge sge = piece_of(b->mr[LOCAL_ONLY], 32, 64);

    assert_int_equal(post_remote(&b->s, 9, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 5, 0), 0);
    leave(&b->s, 1000);
}

static void read_half(struct bench *b)
{
    read_out(b);
    assert_int_equal(arrive(&b->s, a_read_response(key_of(b, LOCAL_ONLY), offset_of(b, LOCAL_ONLY, 32), data, 32, 0)),
                     FAULT_NONE);
}

static void read_out_none(struct bench *b)
{
    const struct rddp_sge sge = piece_of(b->mr[LOCAL_ONLY], 32, 0);

    assert_int_equal(post_remote(&b->s, 9, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 5, 0), 0);
    leave(&b->s, 1000);
}

/* Invalidate the sink after the Read Request has left. */
static void read_sink_gone(struct bench *b)
{
    uint64_t epoch;
    read_out(b);
    assert_int_equal(mr_invalidate(&b->e.mrs, &b->e.pd, key_of(b, LOCAL_ONLY), false, &epoch), FAULT_NONE);
}

static void reads_in(struct bench *b, uint32_t n)
{
    const struct seg_read read = {.source_key = key_of(b, ALL), .source_offset = offset_of(b, ALL, 0), .length = 8};

    for (uint32_t msn = 1; msn <= n; msn++)
        assert_int_equal(arrive(&b->s, a_read_request(msn, &read)), FAULT_NONE);
}

static void reads_one(struct bench *b)
{
    reads_in(b, 1);
}

static void reads_all(struct bench *b)
{
    reads_in(b, 4);
}

/* --- every fault --------------------------------------------------------------------------------------------- */

/* `at` is relative to the region's start, or is the MO of a Send. `msn` is 0 in tagged segments. */
static const struct row {
    const char *name;
    void (*set_up)(struct bench *b);
    enum seg_op op;
    enum region region;
    uint32_t msn;
    int64_t at;
    uint32_t length;
    unsigned flags;
    enum fault fault;
    uint64_t got, want;
} rows[] = {
    /* DDP-7.1-02, RDMAP-7.2-01: tagged errors 1 to 5 */
    {"write: no such key", NULL, SEG_WRITE, UNKNOWN, 0, 0, 8, SEG_LAST, FAULT_KEY, 0, 0},
    {"write: key 0", NULL, SEG_WRITE, NO_KEY, 0, 0, 8, SEG_LAST, FAULT_KEY, 0, 0},
    {"write: invalidated", NULL, SEG_WRITE, GONE, 0, 0, 8, SEG_LAST, FAULT_KEY, 0, 0},
    {"write: another domain (DDP-8-02)", NULL, SEG_WRITE, THEIRS, 0, 0, 8, SEG_LAST, FAULT_DOMAIN, 0, 0},
    {"write: local only", NULL, SEG_WRITE, LOCAL_ONLY, 0, 0, 8, SEG_LAST, FAULT_RIGHT, 0, 0},
    {"write: read only", NULL, SEG_WRITE, READ_ONLY, 0, 0, 8, SEG_LAST, FAULT_RIGHT, 0, 0},
    {"write: one octet before", NULL, SEG_WRITE, ALL, 0, -1, 8, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"write: one octet behind", NULL, SEG_WRITE, ALL, 0, OCTETS - 7, 8, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"write: all of it behind", NULL, SEG_WRITE, ALL, 0, OCTETS, 1, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"write: one octet too long", NULL, SEG_WRITE, ALL, 0, 0, OCTETS + 1, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"write: zero-based, behind", NULL, SEG_WRITE, ZERO_BASED, 0, OCTETS - 7, 8, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"write: wraps to the start", NULL, SEG_WRITE, ZERO_BASED, 0, -8, 16, SEG_LAST, FAULT_WRAP, 0, 0},
    {"write: ends at 2^64", NULL, SEG_WRITE, ZERO_BASED, 0, -8, 8, SEG_LAST, FAULT_WRAP, 0, 0},
    {"write: ends before 2^64", NULL, SEG_WRITE, ZERO_BASED, 0, -9, 8, SEG_LAST, FAULT_BOUNDS, 0, 0},
    /* DDP-7.1-01: untagged errors 2 to 5 */
    {"send: no receive", NULL, SEG_SEND, 0, 1, 0, 8, SEG_LAST, FAULT_NO_RECEIVE, 0, 0},
    {"send: no receive, empty (RDMAP-5.3-01)", NULL, SEG_SEND, 0, 1, 0, 0, SEG_LAST, FAULT_NO_RECEIVE, 0, 0},
    {"send: number already used", receive, SEG_SEND, 0, 0, 0, 8, SEG_LAST, FAULT_MSN, 0, 1},
    {"send: number skipped", receive_half, SEG_SEND, 0, 2, 0, 8, SEG_LAST, FAULT_MSN, 2, 1},
    {"send: begins in the middle", receive, SEG_SEND, 0, 1, 1, 8, 0, FAULT_MO, 1, 0},
    {"send: all of it in the middle", receive, SEG_SEND, 0, 1, 1, 8, SEG_LAST, FAULT_MO, 1, 0},
    {"send: all of it again", receive_half, SEG_SEND, 0, 1, 0, 8, SEG_LAST, FAULT_MO, 0, 32},
    {"send: begins again", receive_half, SEG_SEND, 0, 1, 0, 8, 0, FAULT_MO, 0, 32},
    {"send: a gap", receive_half, SEG_SEND, 0, 1, 33, 8, 0, FAULT_MO, 33, 32},
    {"send: an overlap", receive_half, SEG_SEND, 0, 1, 31, 8, 0, FAULT_MO, 31, 32},
    {"send: offset of 2^32 less 1", receive, SEG_SEND, 0, 1, 0xffffffff, 8, 0, FAULT_MO, 0xffffffff, 0},
    {"send: too long", receive, SEG_SEND, 0, 1, 0, 65, SEG_LAST, FAULT_TOO_LONG, 65, 64},
    {"send: too long in the end", receive_half, SEG_SEND, 0, 1, 32, 33, SEG_LAST, FAULT_TOO_LONG, 65, 64},
    {"send: too long for nothing", receive_none, SEG_SEND, 0, 1, 0, 1, SEG_LAST, FAULT_TOO_LONG, 1, 0},
    /* faults of this side's own memory and CQ */
    {"send: receive not writable", receive_bad, SEG_SEND, 0, 1, 0, 64, SEG_LAST, FAULT_LOCAL_KEY, 0, 0},
    {"send: receive outside its region", receive_outside, SEG_SEND, 0, 1, 0, 33, SEG_LAST, FAULT_LOCAL_KEY, 0, 0},
    {"send: the only piece not writable", receive_sealed, SEG_SEND, 0, 1, 0, 8, SEG_LAST, FAULT_LOCAL_KEY, 0, 0},
    {"send: the only piece of another domain", receive_theirs, SEG_SEND, 0, 1, 0, 8, SEG_LAST, FAULT_LOCAL_KEY, 0, 0},
    {"send: one octet more than the only piece", receive_sealed, SEG_SEND, 0, 1, 0, 65, SEG_LAST, FAULT_TOO_LONG, 65,
     64},
    {"send: too long for less pieces", receive_after_longer, SEG_SEND, 0, PLACES + 1, 0, 65, SEG_LAST, FAULT_TOO_LONG,
     65, 64},
    {"send: no room for its completion", receive_cq_full, SEG_SEND, 0, 1, 0, 0, SEG_LAST, FAULT_CQ_FULL, 0, 0},
    /* RDMAP-5.3-03: `region` selects the key to invalidate */
    {"invalidate: unknown", receive, SEG_SEND, UNKNOWN, 1, 0, 0, SEG_LAST | SEG_INVALIDATE, FAULT_INVALIDATE, 0, 0},
    {"invalidate: again", receive, SEG_SEND, GONE, 1, 0, 0, SEG_LAST | SEG_INVALIDATE, FAULT_INVALIDATE, 0, 0},
    {"invalidate: not theirs", receive, SEG_SEND, THEIRS, 1, 0, 0, SEG_LAST | SEG_INVALIDATE, FAULT_INVALIDATE, 0, 0},
    {"invalidate: no right", receive, SEG_SEND, LOCAL_ONLY, 1, 0, 0, SEG_LAST | SEG_INVALIDATE, FAULT_INVALIDATE, 0, 0},
    /* RDMAP-7.2-01: Read Requests */
    {"read: no such key", NULL, SEG_READ_REQ, UNKNOWN, 1, 0, 8, SEG_LAST, FAULT_KEY, 0, 0},
    {"read: invalidated", NULL, SEG_READ_REQ, GONE, 1, 0, 8, SEG_LAST, FAULT_KEY, 0, 0},
    {"read: another domain", NULL, SEG_READ_REQ, THEIRS, 1, 0, 8, SEG_LAST, FAULT_DOMAIN, 0, 0},
    {"read: local only", NULL, SEG_READ_REQ, LOCAL_ONLY, 1, 0, 8, SEG_LAST, FAULT_RIGHT, 0, 0},
    {"read: before", NULL, SEG_READ_REQ, READ_ONLY, 1, -1, 8, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"read: behind", NULL, SEG_READ_REQ, READ_ONLY, 1, OCTETS - 7, 8, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"read: 4 GiB", NULL, SEG_READ_REQ, READ_ONLY, 1, 0, UINT32_MAX, SEG_LAST, FAULT_BOUNDS, 0, 0},
    {"read: wraps", NULL, SEG_READ_REQ, ZERO_BASED, 1, -1, 8, SEG_LAST, FAULT_WRAP, 0, 0},
    {"read: number skipped", NULL, SEG_READ_REQ, READ_ONLY, 2, 0, 8, SEG_LAST, FAULT_MSN, 2, 1},
    {"read: number already used", reads_one, SEG_READ_REQ, READ_ONLY, 1, 0, 8, SEG_LAST, FAULT_MSN, 1, 2},
    {"read: number far away", NULL, SEG_READ_REQ, READ_ONLY, 0x80000000, 0, 8, SEG_LAST, FAULT_READS, 0x80000000, 4},
    {"read: one too many (RDMAP-5.2-03)", reads_all, SEG_READ_REQ, READ_ONLY, 5, 0, 8, SEG_LAST, FAULT_READS, 5, 4},
    /* RDMAP-5.2-04: Read Responses */
    {"response: no read", NULL, SEG_READ_RESP, ALL, 0, 0, 8, SEG_LAST, FAULT_UNASKED, 0, 0},
    {"response: another key", read_out, SEG_READ_RESP, ALL, 0, 32, 64, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: no such key", read_out, SEG_READ_RESP, UNKNOWN, 0, 32, 64, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: before the sink", read_out, SEG_READ_RESP, LOCAL_ONLY, 0, 31, 64, 0, FAULT_UNASKED, 1, 1},
    {"response: not at its beginning", read_out, SEG_READ_RESP, LOCAL_ONLY, 0, 33, 63, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: too long", read_out, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 65, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: ends too early", read_out, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 63, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: does not end", read_out, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 64, 0, FAULT_UNASKED, 1, 1},
    {"response: begins again", read_half, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 32, 0, FAULT_UNASKED, 1, 1},
    {"response: a gap", read_half, SEG_READ_RESP, LOCAL_ONLY, 0, 65, 31, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: too long in the end", read_half, SEG_READ_RESP, LOCAL_ONLY, 0, 64, 33, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: octets for an empty read", read_out_none, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 1, SEG_LAST, FAULT_UNASKED,
     1, 1},
    {"response: empty, another place", read_out_none, SEG_READ_RESP, LOCAL_ONLY, 0, 33, 0, SEG_LAST, FAULT_UNASKED, 1,
     1},
    {"response: empty, another key", read_out_none, SEG_READ_RESP, ALL, 0, 32, 0, SEG_LAST, FAULT_UNASKED, 1, 1},
    {"response: empty, without end", read_out_none, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 0, 0, FAULT_UNASKED, 1, 1},
    {"response: the sink is gone", read_sink_gone, SEG_READ_RESP, LOCAL_ONLY, 0, 32, 64, SEG_LAST, FAULT_LOCAL_KEY, 0,
     0},
};

static struct seg segment_of(const struct bench *b, const struct row *row)
{
    struct seg seg = {
        .op = row->op,
        .flags = row->flags,
        .msg = row->msn,
        .key = key_of(b, row->region),
        .offset = offset_of(b, row->region, row->at),
        .data = data,
        .length = row->length,
    };

    if (row->op == SEG_SEND) {
        seg.invalidate = seg.key;
        seg.key = 0;
        seg.offset = (uint64_t)row->at;
    }
    if (row->op == SEG_READ_REQ) {
        seg.read = (struct seg_read){.source_key = seg.key, .source_offset = seg.offset, .length = row->length};
        seg.key = seg.offset = seg.length = 0;
    }
    return seg;
}

static void check_note(const struct bench *b, const struct row *row, const struct seg *seg)
{
    const struct fault_note *note = &b->s.qp.note;

    assert_int_equal(note->fault, row->fault);
    if (row->fault == FAULT_CQ_FULL || row->fault == FAULT_LOCAL_KEY)
        return;
    assert_int_equal(note->op, row->op);
    if (row->fault != FAULT_UNASKED) {
        assert_int_equal(note->got, row->got);
        assert_int_equal(note->want, row->want);
    }
    if (row->fault == FAULT_INVALIDATE)
        assert_int_equal(note->key, seg->invalidate);
    if (row->op == SEG_WRITE || row->op == SEG_READ_RESP) {
        assert_int_equal(note->key, seg->key);
        assert_int_equal(note->offset, seg->offset);
        assert_int_equal(note->length, seg->length);
    }
    if (row->op == SEG_READ_REQ) { /* compare members, because padding is not copied */
        assert_int_equal(note->read.sink_key, seg->read.sink_key);
        assert_int_equal(note->read.sink_offset, seg->read.sink_offset);
        assert_int_equal(note->read.source_key, seg->read.source_key);
        assert_int_equal(note->read.source_offset, seg->read.source_offset);
        assert_int_equal(note->read.length, seg->read.length);
    }
    if (row->op == SEG_SEND || row->op == SEG_READ_REQ)
        assert_int_equal(note->msg, row->msn);
}

static void test_faults(void **state)
{
    bool seen[FAULTS] = {false};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        struct bench b;
        struct seg seg;
        enum fault fault;

        bench_init(&b);
        if (rows[i].set_up)
            rows[i].set_up(&b);
        engine_remember(&b.e);
        seg = segment_of(&b, &rows[i]);
        fault = arrive(&b.s, seg);
        if (fault != rows[i].fault)
            fail_msg("%s: %s, not %s", rows[i].name, fault_name(fault), fault_name(rows[i].fault));
        check_note(&b, &rows[i], &seg);
        engine_expect(&b.e);
        give_up(&b.s);
        /* DDP-7.1-03: later segments are dropped silently. */
        assert_int_equal(arrive(&b.s, a_write(key_of(&b, ALL), offset_of(&b, ALL, 0), data, 8, SEG_LAST)), FAULT_NONE);
        engine_expect(&b.e);
        seen[fault] = true;
        bench_fini(&b);
    }
    for (enum fault fault = FAULT_KEY; fault <= FAULT_TOO_LONG; fault++)
        /* The wire layer checks queue numbers; on_demand.c is about memory that is absent. */
        assert_true(seen[fault] || fault == FAULT_QUEUE || fault == FAULT_ABSENT);
    assert_true(seen[FAULT_UNASKED] && seen[FAULT_READS] && seen[FAULT_INVALIDATE] && seen[FAULT_LOCAL_KEY]);
}

/* The request at fault completes with the error, and all others are flushed. */
static void test_culprits(void **state)
{
    static const struct {
        void (*set_up)(struct bench *b);
        uint32_t length;
        enum rddp_wc_status status;
    } sends[] = {
        {receive, 65, RDDP_WC_LOC_LEN_ERR},
        {receive_bad, 64, RDDP_WC_LOC_PROT_ERR},
    };
    struct bench b;
    struct rddp_wc wc;

    (void)state;
    for (size_t i = 0; i < countof(sends); i++) {
        bench_init(&b);
        sends[i].set_up(&b);
        receive_none(&b);
        assert_int_not_equal(arrive(&b.s, a_send(1, 0, data, sends[i].length, SEG_LAST)), FAULT_NONE);
        expect_quiet(&b.s.recv_cq);
        give_up(&b.s);
        wc = expect_wc(&b.s.recv_cq, 1, sends[i].status);
        assert_int_equal(wc.vendor_err, b.s.qp.note.fault);
        expect_wc(&b.s.recv_cq, 1, RDDP_WC_WR_FLUSH_ERR);
        bench_fini(&b);
    }
    bench_init(&b);
    read_sink_gone(&b);
    assert_int_equal(
        arrive(&b.s, a_read_response(key_of(&b, LOCAL_ONLY), offset_of(&b, LOCAL_ONLY, 32), data, 64, SEG_LAST)),
        FAULT_LOCAL_KEY);
    give_up(&b.s);
    wc = expect_wc(&b.s.send_cq, 9, RDDP_WC_LOC_PROT_ERR);
    assert_int_equal(wc.vendor_err, FAULT_LOCAL_KEY);
    bench_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_culprits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
