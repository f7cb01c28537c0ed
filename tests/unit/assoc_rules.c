/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_rules.c - a peer that breaks a rule: the association is aborted, no octet outside a buffer changes, and nothing
 * is delivered afterwards. */
#include "tests/unit/assoc_peer.h"

/* Every indication combined with every mode, on a whole association. SCTP-3.2.1-R1 SCTP-3.2.1-R2 SCTP-3.2.1-R3
 * SCTP-3.2.1-R4 SCTP-3.2.1-R6 SCTP-3.2.1-09 SCTP-5-03 */
static void modes(void **state)
{
    static const enum fault rule[] = {FAULT_CHUNK_R1, FAULT_CHUNK_R2, FAULT_CHUNK_R3, FAULT_CHUNK_R4};

    (void)state;
    for (unsigned peer = SCTPDDP_DDP; peer <= SCTPDDP_RDMA_NEGOTIATION; peer++) {
        for (unsigned mode = 0; mode < 6; mode++) {
            enum sctpddp_adaptation kind = (enum sctpddp_adaptation)peer;
            uint32_t value = mode == 5 ? 0xffffff : mode;
            struct mr *mr;

            if (sctpddp_may_send(kind, value))
                continue;
            open_both(kind, SCTPDDP_DDP);
            mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
            engine_remember(&n.engine);
            give(kind, placed(value, mr->key, mr->start, 10));
            expect_abort(kind, mode > 3 ? FAULT_CHUNK_MODE : rule[mode], mr);
        }
    }
}

/* --- where a chunk may place data ---------------------------------------------------------------------------- */

/* One octet before the buffer, up to the last octet of the buffer, one octet behind it; offsets about 2^64; and the
 * other wrong buffers. SCTP-2.2-10 SCTP-2.2-27 SCTP-3.2.1-08 SCTP-5-02 SCTP-2.1-05 SCTP-3.2.1-R5c */
static void places(void **state)
{
    enum { NONE = ALL_ACCESS };
    static const struct {
        int64_t from; /* the offset at which the region starts */
        uint32_t length;
        unsigned access;
        enum fault fault;
        uint32_t other_tag;
    } rows[] = {
        {0, 200, ALL_ACCESS, FAULT_NONE, 0},
        {OCTETS - 200, 200, ALL_ACCESS, FAULT_NONE, 0},
        {OCTETS - 199, 200, ALL_ACCESS, FAULT_BOUNDS, 0},
        {OCTETS - 1, 1, ALL_ACCESS, FAULT_NONE, 0},
        {OCTETS, 1, ALL_ACCESS, FAULT_BOUNDS, 0},
        {-1, 1, ALL_ACCESS, FAULT_BOUNDS, 0},
        {-1, 200, ALL_ACCESS, FAULT_BOUNDS, 0},
        {INT64_MIN, 1, ALL_ACCESS, FAULT_BOUNDS, 0},
        {0, 1, RDDP_ACCESS_REMOTE_READ, FAULT_RIGHT, 0},
        {0, 1, LOCAL, FAULT_RIGHT, 0},
        {0, 1, NONE, FAULT_KEY, 0xffffffff},
        {0, 1, NONE, FAULT_KEY, 1},
        {0, 0, NONE, FAULT_NONE, 1}, /* nothing is placed, so nothing is checked */
    };
    static const enum sctpddp_adaptation kinds[] = {SCTPDDP_DDP_WITH_TAG, SCTPDDP_RDMA_ONLY, BOTH};

    (void)state;
    for (unsigned i = 0; i < 3 * sizeof(rows) / sizeof(rows[0]); i++) {
        const enum sctpddp_adaptation kind = kinds[i % 3];
        uint32_t mode = kind == SCTPDDP_DDP_WITH_TAG ? SCTPDDP_MODE_TAG : SCTPDDP_MODE_RDMA, tag;
        struct mr *mr;

        open_both(kind, kind);
        mr = engine_region(&n.engine, OCTETS, rows[i / 3].access);
        tag = rows[i / 3].other_tag ? rows[i / 3].other_tag : mr->key;
        engine_remember(&n.engine);
        give(kind, placed(mode, tag, mr->start + (uint64_t)rows[i / 3].from, rows[i / 3].length));
        if (rows[i / 3].fault) {
            expect_abort(kind, rows[i / 3].fault, mr);
            continue;
        }
        assert_int_equal(victim()->life.state, CONN_READY);
        if (rows[i / 3].length)
            memcpy(want_of(&n.engine, mr) + rows[i / 3].from, data, rows[i / 3].length);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

/* SCTP-X-off-wrap: offset plus length exceeds 2^64, in a region from 0 on and in another. SCTP-2.2-10 */
static void wrap(void **state)
{
    (void)state;
    for (unsigned length = 1; length < 3; length++) {
        struct mr *mr;

        open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
        mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
        engine_remember(&n.engine);
        give(SCTPDDP_RDMA_ONLY, placed(SCTPDDP_MODE_RDMA, mr->key, UINT64_MAX, length));
        expect_abort(SCTPDDP_RDMA_ONLY, FAULT_WRAP, mr);
    }
}

static void other_domain(void **state)
{
    struct mr *mr;

    (void)state;
    open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
    mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
    mr->pd = &n.engine.other_pd;
    engine_remember(&n.engine);
    give(SCTPDDP_RDMA_ONLY, placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 10));
    expect_abort(SCTPDDP_RDMA_ONLY, FAULT_DOMAIN, mr);
}

/* DDP: the last of 4096 octets, and one octet beyond it; the tag has no effect; a stream without a buffer, and streams
 * that do not exist. SCTP-2.1-03 SCTP-2.1-04 SCTP-2.2-15 */
static void streams(void **state)
{
    static const struct {
        uint16_t stream;
        uint64_t at;
        uint32_t length, tag;
        enum fault fault;
    } rows[] = {
        {1, 4095, 1, 0, FAULT_NONE},          {1, 4095, 1, 0xdeadbeef, FAULT_NONE},
        {1, 4095, 2, 0, FAULT_BOUNDS},        {1, 4096, 0, 0, FAULT_NONE},
        {2, 0, 1, 0, FAULT_CHUNK_STREAM},     {ASSOC_STREAMS, 0, 1, 0, FAULT_CHUNK_STREAM},
        {65535, 0, 1, 0, FAULT_CHUNK_STREAM},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t p[NET_PAYLOAD];
        struct sctpddp_chunk chunk;
        struct mr *mr;
        size_t head;

        open_both(SCTPDDP_DDP, SCTPDDP_DDP);
        mr = engine_region(&n.engine, 4096, ALL_ACCESS);
        assert_int_equal(assoc_bind(victim(), 1, mr->key), 0);
        victim()->tx_pos = mr->key; /* what lies behind the streams in memory is no stream */
        engine_remember(&n.engine);
        chunk = placed(SCTPDDP_MODE_DDP, rows[i].tag, mr->start + rows[i].at, rows[i].length);
        head = sctpddp_encode(SCTPDDP_DDP, &chunk, p);
        memcpy(p + head, data, rows[i].length);
        net_give(&n, VICTIM, p, (uint32_t)head + rows[i].length, 0xfffffff0, rows[i].stream, true);
        if (rows[i].fault) {
            expect_abort(SCTPDDP_DDP, rows[i].fault, mr);
            continue;
        }
        memcpy(want_of(&n.engine, mr) + rows[i].at, data, rows[i].length);
        engine_expect(&n.engine);
        assert_int_equal(victim()->life.state, CONN_READY);
        net_fini(&n);
    }
}

/* SCTP-2.2-04 SCTP-2.2-08 SCTP-2.2-18 */
static void form(void **state)
{
    uint8_t p[SCTPDDP_HEAD_MAX] = {0};
    struct mr *mr;

    (void)state;
    for (uint32_t octets = 0; octets < 20; octets++) {
        open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
        engine_remember(&n.engine);
        net_give(&n, VICTIM, p, octets, 0, 0, true);
        expect_abort(SCTPDDP_RDMA_ONLY, FAULT_CHUNK_SHORT, NULL);
    }
    open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
    mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
    engine_remember(&n.engine);
    p[2] = SCTPDDP_MODE_RDMA;
    net_give(&n, VICTIM, p, 20, 0, 0, false);
    expect_abort(SCTPDDP_RDMA_ONLY, FAULT_CHUNK_FLAGS, mr);
}

/* --- negotiation --------------------------------------------------------------------------------------------- */

static void give_neg(struct neg neg)
{
    net_neg(&n, VICTIM, next_aws(), &neg);
}

/* A HELLO that breaks the rules: before the peer's HELLO, twice, of a wrong type, with a wrong version. */
static void hello(void **state)
{
    struct sctpddp_chunk chunk;
    struct mr *mr;

    (void)state;
    for (unsigned row = 0; row < 5; row++) {
        net_init(&n, BOTH, BOTH, NULL, 1);
        net_up(&n);
        mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
        engine_remember(&n.engine);
        if (row == 0)
            give_neg((struct neg){.type = NEG_SEND, .id = 1, .flags = NEG_LAST});
        if (row == 1)
            give_neg((struct neg){.type = NEG_HELLO, .flags = NEG_REPLY});
        if (row == 2)
            give_neg((struct neg){.type = NEG_HELLO, .ird = NEG_READS_MAX + 1});
        if (row == 3) {
            chunk = placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 10);
            give(BOTH, chunk);
        }
        if (row == 4) {
            give_neg((struct neg){.type = NEG_HELLO});
            assert_int_equal(victim()->life.state, CONN_WAIT_ANSWER);
            assert_int_equal(assoc_accept(victim(), &n.side[VICTIM].side.qp, 0, 0, NULL, 0), 0);
            give_neg((struct neg){.type = NEG_HELLO});
            net_expect_abort(&n, VICTIM, FAULT_NEG_TURN);
            net_fini(&n);
            continue;
        }
        /* The association was never established, so its end does not reach the queue pair. */
        assert_int_equal(victim()->life.note.fault, row == 2 ? FAULT_NEG_FIELD : FAULT_NEG_TURN);
        assert_true(n.side[VICTIM].aborted);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

static void versions_and_types(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 4; row++) {
        static const enum fault faults[] = {FAULT_NEG_SHORT, FAULT_NEG_VERSION, FAULT_NEG_TYPE, FAULT_NEG_FIELD};
        static const uint8_t octets[4][9] = {{1, 2}, {2, 2}, {1, 9}, {1, 4, 0, 1}};
        struct sctpddp_chunk chunk = {.data = octets[row], .length = row ? 12 : 7};
        uint8_t p[32] = {0};

        open_both(BOTH, BOTH);
        memcpy(p, octets[row], 9);
        chunk.data = p;
        chunk.aws = next_aws();
        engine_remember(&n.engine);
        give(BOTH, chunk);
        expect_abort(BOTH, faults[row], NULL);
    }
}

/* Sends without a receive, longer than the receive, and out of order; Reads outside the region or without a right. */
static void requests(void **state)
{
    struct mr *mr;
    struct rddp_sge sge;

    (void)state;
    for (unsigned row = 0; row < 5; row++) {
        static const enum fault faults[] = {FAULT_NO_RECEIVE, FAULT_TOO_LONG, FAULT_MSN, FAULT_BOUNDS, FAULT_RIGHT};
        struct neg read = {.type = NEG_READ_REQUEST, .id = 1, .sink_tag = 5, .length = OCTETS};

        open_both(BOTH, BOTH);
        mr = engine_region(&n.engine, OCTETS, row == 4 ? RDDP_ACCESS_REMOTE_WRITE | LOCAL : RDDP_ACCESS_REMOTE_READ);
        read.source_tag = mr->key;
        read.source_offset = mr->start;
        sge = piece_of(mr, 0, 10);
        engine_remember(&n.engine);
        if (row == 0)
            give_neg((struct neg){.type = NEG_SEND, .id = 1, .flags = NEG_LAST});
        if (row == 1 || row == 2)
            assert_int_equal(post_recv(&n.side[VICTIM].side, 1, &sge, 1), 0);
        if (row == 1)
            give_neg((struct neg){.type = NEG_SEND, .id = 1, .flags = NEG_LAST, .data = data, .data_length = 11});
        if (row == 2)
            give_neg((struct neg){.type = NEG_SEND, .id = 2, .flags = NEG_LAST});
        if (row == 3)
            read.source_offset++;
        if (row >= 3)
            give_neg(read);
        net_expect_abort(&n, VICTIM, faults[row]);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

/* The peer sends more Read Requests than were agreed, before any of them is answered. */
static void too_many_reads(void **state)
{
    struct neg read = {.type = NEG_READ_REQUEST, .sink_tag = 5};
    struct net_message give[8];

    (void)state;
    open_both(BOTH, BOTH);
    for (uint32_t i = 0; i < 5; i++) {
        struct sctpddp_chunk chunk = {.aws = next_aws()};
        struct assoc_message m = {.data = give[i].data, .whole = true, .name = 999};
        size_t head = sctpddp_encode(BOTH, &chunk, give[i].data);

        read.id = i + 1;
        m.octets = (uint32_t)(head + neg_encode(&read, give[i].data + head));
        assert_int_equal(assoc_rx(victim(), &m, n.now_us), ASSOC_TAKEN);
        assert_int_equal(victim()->life.state, i < 4 ? CONN_READY : CONN_TERMINATING);
    }
    net_expect_abort(&n, VICTIM, FAULT_READS);
    net_fini(&n);
}

/* --- answers without a request ------------------------------------------------------------------------------- */

/* Only the answer to a Read may write to the sink of the Read: within its length, with NOTIFY on exactly the last
 * octets, and not after the answer is complete. The sink's region needs no remote right. SCTP-3.2.1-07 SCTP-5-01 */
static void sinks(void **state)
{
    static const struct {
        uint64_t offset;
        uint32_t length;
        uint8_t flags;
        enum fault fault;
    } rows[] = {
        {0, 100, SCTPDDP_NOTIFY, FAULT_NONE},
        {0, 101, SCTPDDP_NOTIFY, FAULT_UNASKED},
        {0, 101, 0, FAULT_UNASKED},
        {0, 99, SCTPDDP_NOTIFY, FAULT_UNASKED}, /* has NOTIFY, but is not all */
        {0, 100, 0, FAULT_UNASKED},             /* is all, but lacks NOTIFY */
        {1, 99, SCTPDDP_NOTIFY, FAULT_UNASKED},
        {101, 0, 0, FAULT_UNASKED},
        {UINT64_MAX, 1, 0, FAULT_UNASKED},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct side *s;
        struct rddp_sge sge;
        struct assoc_chunk request;
        struct sctpddp_chunk chunk;
        struct mr *mr;

        open_both(BOTH, BOTH);
        s = &n.side[VICTIM].side;
        mr = engine_region(&n.engine, OCTETS, LOCAL);
        sge = piece_of(mr, 50, 100);
        engine_remember(&n.engine);
        assert_int_equal(post_remote(s, 1, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 3, 4), 0);
        assert_true(assoc_emit(victim(), &request, n.now_us));
        assoc_sent(victim(), request.end, n.now_us);
        chunk = placed(SCTPDDP_MODE_RDMA, victim()->read[0].tag, rows[i].offset, rows[i].length);
        chunk.flags = rows[i].flags;
        give(BOTH, chunk);
        if (rows[i].fault) {
            net_expect_abort(&n, VICTIM, rows[i].fault);
        } else {
            expect_wc(&s->send_cq, 1, RDDP_WC_SUCCESS);
            memcpy(want_of(&n.engine, mr) + 50, data, 100);
            chunk.aws = next_aws();
            give(BOTH, chunk);
            net_expect_abort(&n, VICTIM, FAULT_KEY);
        }
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

/* --- time ---------------------------------------------------------------------------------------------------- */

/* A peer that never fills a gap, or never sends HELLO, does not hold the association without limit. */
static void silence(void **state)
{
    struct sctpddp_chunk chunk;
    struct mr *mr;

    (void)state;
    open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
    mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
    chunk = placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 10);
    chunk.aws = 1;
    give(SCTPDDP_RDMA_ONLY, chunk);
    n.now_us = assoc_deadline(victim()) - 1;
    assoc_tick(victim(), n.now_us);
    assert_int_equal(victim()->life.state, CONN_READY);
    n.now_us++;
    assoc_tick(victim(), n.now_us);
    net_expect_abort(&n, VICTIM, FAULT_STALLED);
    net_fini(&n);

    net_init(&n, BOTH, BOTH, NULL, 1);
    net_up(&n);
    n.now_us = assoc_deadline(victim());
    assoc_tick(victim(), n.now_us);
    assert_int_equal(victim()->life.state, CONN_OVER);
    assert_true(victim()->life.news & CONN_NEWS_FAILED);
    net_fini(&n);
}

/* The peer is told why the association fails, and the status of its request says so. */
static void told(void **state)
{
    struct rddp_sge sge;
    struct mr *mr;

    (void)state;
    open_both(BOTH, BOTH);
    mr = engine_region(&n.engine, OCTETS, LOCAL);
    sge = piece_of(mr, 0, 10);
    assert_int_equal(
        post_remote(&n.side[0].side, 1, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, mr->key, mr->start), 0);
    net_run(&n);
    expect_wc(&n.side[0].side.send_cq, 1, RDDP_WC_REM_ACCESS_ERR);
    assert_int_equal(n.side[0].assoc.life.peer_term, 0x312);
    assert_true(n.side[0].news & CONN_NEWS_DISCONNECTED);
    net_fini(&n);
}

/* Chunks that have to wait for the HELLO: exactly `limit` octets are kept, what they cost besides included. */
static void keep_to(unsigned side, uint32_t limit)
{
    static uint8_t p[8192 - ASSOC_KEPT_ENTRY];
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_MODE_RDMA, .tag = 1};
    struct assoc_message m = {.data = p, .octets = sizeof(p), .whole = true};
    struct assoc *a = &n.side[side].assoc;

    net_init(&n, BOTH, BOTH, NULL, 1);
    net_up(&n);
    for (uint32_t octets = 8192; octets <= limit; octets += 8192) {
        m.name = m.tsn = ++chunk.aws;
        sctpddp_encode(BOTH, &chunk, p);
        assert_int_equal(assoc_rx(a, &m, n.now_us), ASSOC_KEPT);
        assert_int_equal(a->kept_octets, octets);
    }
    m.name = m.tsn = ++chunk.aws;
    m.octets = SCTPDDP_RDMA_HEAD;
    sctpddp_encode(BOTH, &chunk, p);
    assert_int_equal(assoc_rx(a, &m, n.now_us), ASSOC_TAKEN);
    assert_int_equal(a->life.state, CONN_TERMINATING);
    assert_int_equal(a->life.note.fault, FAULT_CHUNK_AHEAD);
    net_fini(&n);
}

/* We have asked for the connection; or a stranger has, who sends before his HELLO. */
static void kept_octets(void **state)
{
    (void)state;
    keep_to(0, ASSOC_KEPT_OCTETS);
    keep_to(VICTIM, ASSOC_KEPT_EARLY);
}

/* A stranger has few slots until his HELLO is answered; a peer that does not negotiate has asked when it is there. */
static void few_slots(void **state)
{
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT, .aws = WINDOW_EARLY, .data = data, .length = 8};
    static struct window_slot early[WINDOW_EARLY];
    uint8_t p[SCTPDDP_RDMA_HEAD];
    struct assoc_message m = {.data = p, .octets = sizeof(p), .tsn = 1, .name = 1, .tsns = 1, .whole = true};

    (void)state;
    for (int negotiates = 0; negotiates < 2; negotiates++) {
        memset(early, 0, sizeof(early));
        net_init(&n, BOTH, BOTH, NULL, 1);
        assoc_narrow(victim(), early);
        assoc_up(victim(), negotiates ? BOTH : SCTPDDP_RDMA_ONLY, 1, NET_PAYLOAD, 0);
        assert_int_equal(assoc_wants_slots(victim()), !negotiates);
        if (negotiates) {
            chunk.length = 0;
            sctpddp_encode(BOTH, &chunk, p);
            assert_int_equal(assoc_rx(victim(), &m, n.now_us), ASSOC_TAKEN);
            assert_int_equal(victim()->life.note.fault, FAULT_CHUNK_AHEAD);
        } else {
            assoc_widen(victim(), n.side[VICTIM].slots);
            assert_false(assoc_wants_slots(victim()));
        }
        net_fini(&n);
    }
}

/* A gap with nothing behind it but what is kept is a stall, too. */
static void silence_of_kept(void **state)
{
    struct neg neg = {.type = NEG_READ_REQUEST, .id = 0, .length = 1};

    (void)state;
    open_both(BOTH, BOTH);
    n.now_us++;
    net_neg(&n, VICTIM, next_aws() + 1, &neg);
    assert_int_equal(victim()->window.ahead, 1);
    n.now_us = assoc_deadline(victim());
    assoc_tick(victim(), n.now_us);
    net_expect_abort(&n, VICTIM, FAULT_STALLED);
    net_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes),     cmocka_unit_test(places),
        cmocka_unit_test(wrap),      cmocka_unit_test(other_domain),
        cmocka_unit_test(streams),   cmocka_unit_test(form),
        cmocka_unit_test(hello),     cmocka_unit_test(versions_and_types),
        cmocka_unit_test(requests),  cmocka_unit_test(too_many_reads),
        cmocka_unit_test(sinks),     cmocka_unit_test(silence),
        cmocka_unit_test(told),      cmocka_unit_test(kept_octets),
        cmocka_unit_test(few_slots), cmocka_unit_test(silence_of_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
