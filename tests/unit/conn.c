/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - a hostile peer: every fault that it can cause, what it is told, and that none of our memory changes. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/lib/host.h"
#include "wire/ddp.h"
#include "wire/mpa.h"

enum { REGION = 4096, RECV = 64, RECV_ID = 100 };

/* The keys of the regions; engine_region() hands them out in this order. */
enum {
    TARGET = 0x1000,
    LOCAL_ONLY = TARGET + 0x101,
    READ_ONLY = LOCAL_ONLY + 0x101,
    WRITE_ONLY = READ_ONLY + 0x101,
    OTHER_DOMAIN = WRITE_ONLY + 0x101,
    DEAD = OTHER_DOMAIN + 0x101, /* invalidated */
    REGIONS = 6,
    UNKNOWN_KEY = 0x666,
};

static struct host h;
static uint8_t before[REGIONS][REGION];

static uint8_t *octets_of(uint32_t key)
{
    return mr_find(&h.engine.mrs, key)->base;
}

/* The offset at which peers begin to count. It is not 0, because a test with zero-based regions cannot notice a
 * forgotten base. */
static uint64_t start_of(uint32_t key)
{
    return mr_find(&h.engine.mrs, key)->start;
}

/* A responder with two receives, at the beginning of TARGET and of LOCAL_ONLY, 64 octets each. */
static void begin(const struct conn_attr *attr)
{
    static const unsigned access[REGIONS] = {
        ALL_ACCESS, LOCAL, RDDP_ACCESS_REMOTE_READ, LOCAL | RDDP_ACCESS_REMOTE_WRITE, ALL_ACCESS, ALL_ACCESS};

    host_init(&h, NULL);
    for (uint32_t i = 0; i < REGIONS; i++) {
        struct mr *mr = engine_region(&h.engine, REGION, access[i]);
        struct rddp_sge sge = piece_of(mr, 0, RECV);

        pattern(mr->base, REGION, i);
        memcpy(before[i], mr->base, REGION);
        if (i < 2)
            assert_int_equal(post_recv(&h.side, RECV_ID + i, &sge, 1), 0);
    }
    mr_find(&h.engine.mrs, DEAD)->valid = false;
    mr_find(&h.engine.mrs, OTHER_DOMAIN)->pd = &h.engine.other_pd;
    host_ready(&h, false, attr);
}

static void expect_untouched(void)
{
    for (uint32_t i = 0; i < REGIONS; i++)
        assert_memory_equal(h.engine.area[i].mr.base, before[i], REGION);
}

static struct conn_attr with_markers(void)
{
    struct conn_attr attr = host_attr();

    attr.markers = true;
    return attr;
}

/* The peer sends these octets as the ULPDU of one FPDU, framed as agreed. */
static void say_ulpdu(const uint8_t *ulpdu, size_t n)
{
    struct mpa_half half = {.pos = h.peer.tx_pos, .markers = h.peer.tx_markers, .crc = h.peer.crc};
    struct span piece = {ulpdu, (uint32_t)n};
    uint8_t *unit = malloc(WIRE_UNIT_MAX);
    size_t octets;

    assert_non_null(unit);
    octets = mpa_encode(&half, unit, &piece, 1);
    h.peer.tx_pos += octets;
    host_hear(&h, unit, octets);
    free(unit);
}

/* --- one row for each fault ---------------------------------------------------------------------------------- */

static const uint8_t octets[256] = "octets that must not be seen";

/* The headers that a Terminate copies (RFC 5040 4.8). */
enum copied { COPIED_NONE, COPIED_DDP, COPIED_BOTH };

#define SAYS(o, ...) .seg = {.op = SEG_##o, .flags = SEG_LAST, __VA_ARGS__}
#define INVALIDATES(more, k) \
    .seg = {.op = SEG_SEND, .flags = SEG_LAST | SEG_INVALIDATE | (more), .msg = 1, .invalidate = (k)}
#define READS(m, ...) .seg = {.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = (m), .read = {.sink_key = 7, __VA_ARGS__}}
#define ADDS(m, ...) .seg = {.op = SEG_ATOMIC_REQ, .flags = SEG_LAST, .msg = (m), .atomic = {.data = 1, __VA_ARGS__}}
#define RAW(n, ...) .seg = {.op = SEG_OPS}, .raw_octets = (n), .raw = {__VA_ARGS__}

/* A segment, whose offset counts from the start of `region` if that is set; or the octets of a ULPDU. */
static const struct wrong {
    const char *name;
    enum fault fault;
    unsigned code;
    enum copied copied;
    uint32_t region;
    struct seg seg;
    uint32_t raw_octets;
    uint8_t raw[48];
} wrongs[] = {
    /* DDP-7.1-02 DDP-8-01 DDP-8-02 RDMAP-8-01 */
    {"write: key", FAULT_KEY, 0x1100, COPIED_DDP, 0, SAYS(WRITE, .key = UNKNOWN_KEY, .length = 8)},
    {"write: dead key", FAULT_KEY, 0x1100, COPIED_DDP, DEAD, SAYS(WRITE, .length = 8)},
    {"write: domain", FAULT_DOMAIN, 0x1102, COPIED_DDP, OTHER_DOMAIN, SAYS(WRITE, .length = 8)},
    {"write: right", FAULT_RIGHT, 0x1100, COPIED_DDP, READ_ONLY, SAYS(WRITE, .length = 8)},
    {"write: local", FAULT_RIGHT, 0x1100, COPIED_DDP, LOCAL_ONLY, SAYS(WRITE, .length = 8)},
    {"write: behind", FAULT_BOUNDS, 0x1101, COPIED_DDP, TARGET, SAYS(WRITE, .offset = REGION - 7, .length = 8)},
    {"write: before", FAULT_BOUNDS, 0x1101, COPIED_DDP, TARGET, SAYS(WRITE, .offset = -1ULL, .length = 8)},
    {"write: wrap", FAULT_WRAP, 0x1103, COPIED_DDP, 0, SAYS(WRITE, .key = TARGET, .offset = -4ULL, .length = 8)},
    /* DDP-7.1-01 RDMAP-5.3-01 */
    {"send: number", FAULT_MSN, 0x1203, COPIED_DDP, 0, SAYS(SEND, .msg = 2, .length = 8)},
    {"send: number 0", FAULT_MSN, 0x1203, COPIED_DDP, 0, SAYS(SEND, .msg = 0, .length = 8)},
    {"send: offset", FAULT_MO, 0x1204, COPIED_DDP, 0, SAYS(SEND, .msg = 1, .offset = 1, .length = 8)},
    {"send: too long", FAULT_TOO_LONG, 0x1205, COPIED_DDP, 0, SAYS(SEND, .msg = 1, .length = RECV + 1)},
    /* RDMAP-5.3-03 RDMAP-7.2-01 */
    {"invalidate: key", FAULT_INVALIDATE, 0x0109, COPIED_DDP, 0, INVALIDATES(0, UNKNOWN_KEY)},
    {"invalidate: again", FAULT_INVALIDATE, 0x0109, COPIED_DDP, 0, INVALIDATES(0, DEAD)},
    {"invalidate: local", FAULT_INVALIDATE, 0x0109, COPIED_DDP, 0, INVALIDATES(0, LOCAL_ONLY)},
    {"invalidate: domain", FAULT_INVALIDATE, 0x0109, COPIED_DDP, 0, INVALIDATES(SEG_SOLICITED, OTHER_DOMAIN)},
    /* RDMAP-5.2-02 RDMAP-7.2-01 */
    {"read: key", FAULT_KEY, 0x0100, COPIED_BOTH, 0, READS(1, .source_key = UNKNOWN_KEY, .length = 8)},
    {"read: dead key", FAULT_KEY, 0x0100, COPIED_BOTH, DEAD, READS(1, .length = 8)},
    {"read: domain", FAULT_DOMAIN, 0x0103, COPIED_BOTH, OTHER_DOMAIN, READS(1, .length = 8)},
    {"read: right", FAULT_RIGHT, 0x0102, COPIED_BOTH, WRITE_ONLY, READS(1, .length = 8)},
    {"read: local", FAULT_RIGHT, 0x0102, COPIED_BOTH, LOCAL_ONLY, READS(1, .length = 8)},
    {"read: behind", FAULT_BOUNDS, 0x0101, COPIED_BOTH, TARGET, READS(1, .source_offset = 1, .length = REGION)},
    {"read: 4 GiB", FAULT_BOUNDS, 0x0101, COPIED_BOTH, READ_ONLY, READS(1, .length = UINT32_MAX)},
    {"read: wrap", FAULT_WRAP, 0x0104, COPIED_BOTH, 0,
     READS(1, .source_key = TARGET, .source_offset = -4ULL, .length = 8)},
    {"read: number", FAULT_MSN, 0x1203, COPIED_DDP, 0, READS(2, .length = 0)},
    {"read: number 0", FAULT_MSN, 0x1203, COPIED_DDP, 0, READS(0, .length = 0)},
    {"read: number above IRD", FAULT_READS, 0x1202, COPIED_DDP, 0, READS(5, .length = 0)},
    {"response: unasked", FAULT_UNASKED, 0x1100, COPIED_DDP, TARGET, SAYS(READ_RESP, .length = 8)},
    {"response: unasked, empty", FAULT_UNASKED, 0x1100, COPIED_DDP, TARGET, SAYS(READ_RESP, .length = 0)},
    /* DDP-4.1-01 DDP-4.1-05 RDMAP-3-01 RDMAP-4.1-01 RDMAP-4.1-02 EXT-08; mpa.md 4, row 4 */
    {"queue of a Send", FAULT_QUEUE, 0x1201, COPIED_DDP, 0, RAW(18, 0x41, 0x43, [9] = 1, [13] = 1)},
    {"queue of a Read", FAULT_QUEUE, 0x1201, COPIED_DDP, 0, RAW(46, 0x41, 0x41, [9] = 0, [13] = 1)},
    {"queue 3", FAULT_QUEUE, 0x1201, COPIED_DDP, 0, RAW(20, 0x41, 0x43, [9] = 3, [13] = 1)},
    {"queue 2^24", FAULT_QUEUE, 0x1201, COPIED_DDP, 0, RAW(20, 0x41, 0x43, [6] = 1, [13] = 1)},
    {"DDP version, tagged", FAULT_DDP_VERSION, 0x1104, COPIED_DDP, 0, RAW(20, 0xc0, 0x40)},
    {"DDP version, untagged", FAULT_DDP_VERSION, 0x1206, COPIED_DDP, 0, RAW(20, 0x42, 0x43, [13] = 1)},
    {"RDMAP version", FAULT_RDMAP_VERSION, 0x0205, COPIED_DDP, 0, RAW(20, 0x41, 0x03, [13] = 1)},
    {"opcode 12", FAULT_OPCODE, 0x0206, COPIED_DDP, 0, RAW(26, 0x41, 0x4c, [13] = 1)},
    {"opcode 15", FAULT_OPCODE, 0x0206, COPIED_DDP, 0, RAW(20, 0x41, 0x4f, [13] = 1)},
    {"untagged Write", FAULT_OPCODE, 0x0206, COPIED_DDP, 0, RAW(20, 0x41, 0x40, [13] = 1)},
    {"tagged Send", FAULT_OPCODE, 0x0206, COPIED_DDP, 0, RAW(20, 0xc1, 0x43)},
    {"no octet", FAULT_SHORT, 0x02ff, COPIED_NONE, 0, RAW(0, 0)},
    {"half a header", FAULT_SHORT, 0x02ff, COPIED_NONE, 0, RAW(13, 0xc1, 0x40)},
    {"half a Read Request", FAULT_SHORT, 0x02ff, COPIED_DDP, 0, RAW(45, 0x41, 0x41, [9] = 1, [13] = 1)},
    {"a Read Request and more", FAULT_SHORT, 0x02ff, COPIED_DDP, 0, RAW(47, 0x41, 0x41, [9] = 1, [13] = 1)},
    /* EXT-06 */
    {"immediate: number", FAULT_MSN, 0x1203, COPIED_DDP, 0, RAW(26, 0x41, 0x48, [13] = 2)},
    {"immediate: 7 octets", FAULT_SHORT, 0x02ff, COPIED_DDP, 0, RAW(25, 0x41, 0x48, [13] = 1)},
    {"immediate: 9 octets", FAULT_SHORT, 0x02ff, COPIED_DDP, 0, RAW(27, 0x41, 0x49, [13] = 1)},
    /* EXT-03 EXT-04 */
    {"atomic: unaligned", FAULT_UNALIGNED, 0x0207, COPIED_DDP, TARGET, ADDS(1, .offset = 4)},
    {"atomic: right", FAULT_RIGHT, 0x0102, COPIED_DDP, WRITE_ONLY, ADDS(1, .offset = 0)},
    {"atomic: key", FAULT_KEY, 0x0100, COPIED_DDP, 0, ADDS(1, .key = UNKNOWN_KEY)},
    {"atomic: behind", FAULT_BOUNDS, 0x0101, COPIED_DDP, TARGET, ADDS(1, .offset = REGION)},
    {"atomic: number above IRD", FAULT_READS, 0x1202, COPIED_DDP, 0, ADDS(5, .key = TARGET)},
    {"atomic: unasked", FAULT_UNASKED, 0x1202, COPIED_DDP, 0, RAW(30, 0x41, 0x4b, [9] = 3, [13] = 1)},
    {"a Terminate of nothing", FAULT_SHORT, 0x02ff, COPIED_DDP, 0, RAW(18, 0x41, 0x47, [9] = 2, [13] = 1)},
};

static size_t ulpdu_of(const struct wrong *row, uint8_t *ulpdu)
{
    struct seg seg = row->seg;
    uint8_t *end;

    if (seg.op == SEG_OPS) {
        memcpy(ulpdu, row->raw, row->raw_octets);
        return row->raw_octets;
    }
    if (row->region && seg.op == SEG_READ_REQ) {
        seg.read.source_key = row->region;
        seg.read.source_offset += start_of(row->region);
    } else if (row->region && seg.op == SEG_ATOMIC_REQ) {
        seg.atomic.key = row->region;
        seg.atomic.offset += start_of(row->region);
    } else if (row->region) {
        seg.key = row->region;
        seg.offset += start_of(row->region);
    }
    end = put_bytes(ddp_encode(ulpdu, &seg, 1), octets, seg.length);
    return (size_t)(end - ulpdu);
}

/* The bits M, D and R, the DDP Segment Length, and the headers as they arrived (RFC 5040 4.8, MPA-9-02). */
static void expect_copies(const struct seg *term, enum copied copied, const uint8_t *ulpdu, size_t n)
{
    uint32_t head = ulpdu[0] & 0x80 ? DDP_TAGGED_HEAD : DDP_UNTAGGED_HEAD;

    head += copied == COPIED_BOTH ? RDMAP_READ_HEAD : 0;
    assert_int_equal(term->data[2], copied == COPIED_NONE ? 0 : copied == COPIED_DDP ? 0xc0 : 0xe0);
    assert_int_equal(term->data[3], 0);
    if (copied == COPIED_NONE) {
        assert_int_equal(term->length, 4);
        return;
    }
    assert_int_equal(term->length, 6 + head);
    assert_int_equal(get16(term->data + 4), n);
    assert_memory_equal(term->data + 6, ulpdu, head);
}

/* From here on all input is dropped: valid or not, it is neither placed, delivered nor answered (MPA-9-09 DDP-7.1-03
 * RDMAP-5.4-01). The peer's FIN ends the connection. */
static void expect_deaf(void)
{
    struct seg send = a_send(1, 0, octets, 8, SEG_LAST), write = a_write(TARGET, start_of(TARGET), octets, 8, SEG_LAST);

    peer_says(&h, write);
    peer_says(&h, send);
    peer_says(&h, a_write(UNKNOWN_KEY, 0, octets, 8, SEG_LAST));
    host_hear(&h, octets, sizeof(octets));
    expect_silence(&h);
    expect_untouched();
    expect_quiet(&h.side.recv_cq);
    expect_quiet(&h.side.send_cq);
    assert_int_equal(h.staged, 0);
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_OVER);
}

/* Both receives, and a Send of ours that has not left, complete in error. */
static void expect_flushed(enum rddp_wc_status first)
{
    expect_wc(&h.side.recv_cq, RECV_ID, first);
    expect_wc(&h.side.recv_cq, RECV_ID + 1, RDDP_WC_WR_FLUSH_ERR);
    expect_quiet(&h.side.recv_cq);
}

/* DDP-6.2-01, DDP-6.2-03, MPA-9-10: the peer is told of each fault once, and only then our stream ends. */
static void each_wrong_is_answered(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t ulpdu[512];

    (void)state;
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        const struct wrong *row = &wrongs[i];
        struct seg term;
        size_t n;

        print_message("           %s\n", row->name);
        begin(&attr);
        n = ulpdu_of(row, ulpdu);
        say_ulpdu(ulpdu, n);
        expect_end(&h, row->fault);
        assert_int_equal(h.conn.life.state, CONN_ENDING);
        assert_true(h.fin);
        expect_untouched();
        expect_flushed(row->fault == FAULT_TOO_LONG ? RDDP_WC_LOC_LEN_ERR : RDDP_WC_WR_FLUSH_ERR);
        term = expect_terminate(&h, row->code);
        expect_copies(&term, row->copied, ulpdu, n);
        expect_deaf();
        host_fini(&h);
    }
}

/* The same in FPDUs with markers whose octets arrive one by one: framing has no influence on the faults. */
static void each_wrong_with_markers(void **state)
{
    struct conn_attr attr = with_markers();
    uint8_t ulpdu[512];

    (void)state;
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        begin(&attr);
        for (size_t k = 0; k < i % 40; k++)
            peer_says(&h, a_write(1, 0, octets, 0, SEG_LAST));
        say_ulpdu(ulpdu, ulpdu_of(&wrongs[i], ulpdu));
        expect_end(&h, wrongs[i].fault);
        expect_terminate(&h, wrongs[i].code);
        expect_flushed(wrongs[i].fault == FAULT_TOO_LONG ? RDDP_WC_LOC_LEN_ERR : RDDP_WC_WR_FLUSH_ERR);
        expect_deaf();
        host_fini(&h);
    }
}

/* --- framing ------------------------------------------------------------------------------------------------- */

/* A Write of 600 octets into TARGET in one FPDU with markers, of which octet `at` is changed. */
static void say_corrupted(size_t at, uint8_t by, bool repair)
{
    static uint8_t unit[WIRE_UNIT_MAX], data[600];
    size_t n = peer_frames(&h, a_write(TARGET, start_of(TARGET), data, sizeof(data), SEG_LAST), unit);

    assert_true(at < n - MPA_CRC);
    unit[at] ^= by;
    if (repair) {
        struct mpa_half half = {.crc = true};
        uint8_t tail[MPA_TAIL_MAX];

        put_bytes(unit + n - MPA_CRC, tail + mpa_tail(&half, tail, 2, crc32c(0, unit, n - MPA_CRC)) - MPA_CRC, MPA_CRC);
    }
    host_hear(&h, unit, n);
}

static void expect_framing_fault(enum fault fault, unsigned code)
{
    static const uint8_t nothing[1];
    struct seg term;

    expect_end(&h, fault);
    expect_untouched();
    term = expect_terminate(&h, code);
    expect_copies(&term, COPIED_NONE, nothing, 0);
    expect_flushed(RDDP_WC_WR_FLUSH_ERR);
    expect_deaf();
}

/* MPA-7.4-01 MPA-9-04 MPA-7.2-08: wherever the wrong octet is, nothing of the FPDU reaches memory (siw fails this). */
static void wrong_crc(void **state)
{
    struct conn_attr attr = host_attr();

    (void)state;
    for (size_t at = 2; at < 600; at += 23) {
        begin(&attr);
        say_corrupted(at, 0x10, false);
        expect_framing_fault(FAULT_CRC, 0x2002);
        host_fini(&h);
    }
}

/* MPA-9-05 MPA-9-07: every marker is checked, even in an FPDU whose CRC is right. */
static void wrong_marker(void **state)
{
    struct conn_attr attr = with_markers();

    (void)state;
    begin(&attr);
    /* The stream is at position 24: one marker, and the empty Write that let us send. */
    assert_int_equal(h.peer.tx_pos, 24);
    say_corrupted(512 - 24 + 3, 0x04, true);
    expect_framing_fault(FAULT_MARKER, 0x2003);
    host_fini(&h);
}

/* A ULPDU_Length above 64768 is refused before the rest of the FPDU can arrive. */
static void wrong_length(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t length[2];

    (void)state;
    for (uint32_t wrong = MPA_ULPDU_MAX + 1; wrong <= 0xffff; wrong += 0xffff - MPA_ULPDU_MAX - 1) {
        begin(&attr);
        put16(length, (uint16_t)wrong);
        host_hear(&h, length, sizeof(length));
        expect_framing_fault(FAULT_LENGTH, 0x2003);
        host_fini(&h);
    }
}

/* --- more than one segment ----------------------------------------------------------------------------------- */

/* RDMAP-5.2-03: one Read Request more than agreed, while no answer can leave. */
static void too_many_reads(void **state)
{
    struct conn_attr attr = host_attr();
    struct seg_read read = {.sink_key = 1, .source_key = READ_ONLY, .length = 4};

    (void)state;
    begin(&attr);
    read.source_offset = start_of(READ_ONLY);
    h.takes = 0;
    for (uint32_t msn = 1; msn <= 5; msn++) {
        assert_int_equal(h.told & CONN_NEWS_DISCONNECTED, 0);
        peer_says(&h, a_read_request(msn, &read));
    }
    assert_int_equal(h.conn.life.state, CONN_TERMINATING);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_end(&h, FAULT_READS);
    expect_terminate(&h, 0x1202);
    expect_untouched();
    host_fini(&h);
}

/* A Send without a receive left (DDP-7.1-01), and a Send with a fault after its first segment: the first segment stays
 * placed, and the Send does not complete the receive. */
static void send_goes_wrong_later(void **state)
{
    struct conn_attr attr = host_attr();

    (void)state;
    begin(&attr);
    peer_says(&h, a_send(1, 0, octets, 8, SEG_LAST));
    peer_says(&h, a_send(2, 0, octets, 8, 0));
    peer_says(&h, a_send(2, 9, octets, 8, SEG_LAST));
    expect_end(&h, FAULT_MO);
    expect_wc(&h.side.recv_cq, RECV_ID, RDDP_WC_SUCCESS);
    expect_wc(&h.side.recv_cq, RECV_ID + 1, RDDP_WC_WR_FLUSH_ERR);
    expect_terminate(&h, 0x1204);
    assert_memory_equal(octets_of(LOCAL_ONLY), octets, 8);
    assert_memory_equal(octets_of(LOCAL_ONLY) + 8, before[1] + 8, REGION - 8);
    host_fini(&h);

    begin(&attr);
    peer_says(&h, a_send(1, 0, octets, 8, SEG_LAST));
    peer_says(&h, a_send(2, 0, octets, 8, SEG_LAST));
    peer_says(&h, a_send(3, 0, octets, 0, SEG_LAST));
    expect_end(&h, FAULT_NO_RECEIVE);
    expect_terminate(&h, 0x1202);
    host_fini(&h);
}

/* Wrong answers to our Read of 64 octets into TARGET (RDMAP-5.2-04): each is refused before an octet of it is placed,
 * although the peer may write to all of TARGET. */
static void answer_does_not_fit(void **state)
{
    static const struct {
        uint32_t key, at, length;
        unsigned flags;
    } rows[] = {
        {WRITE_ONLY, 0, 64, SEG_LAST}, {TARGET, 1, 63, SEG_LAST}, {TARGET, 0, 65, SEG_LAST},
        {TARGET, 0, 63, SEG_LAST},     {TARGET, 0, 64, 0},        {TARGET, 64, 1, SEG_LAST},
        {TARGET, 4095, 1, 0},
    };
    struct conn_attr attr = host_attr();
    struct rddp_sge sink;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(&attr);
        sink = piece_of(mr_find(&h.engine.mrs, TARGET), 0, 64);
        assert_int_equal(post_remote(&h.side, 1, RDDP_WR_RDMA_READ, 0, &sink, 1, 7, 0), 0);
        host_pump(&h);
        expect_seg(&h, SEG_READ_REQ);
        peer_says(&h, a_read_response(rows[i].key, sink.addr + rows[i].at, octets, rows[i].length, rows[i].flags));
        expect_end(&h, FAULT_UNASKED);
        expect_terminate(&h, 0x1100);
        expect_untouched();
        host_fini(&h);
    }
}

/* Reserved fields are ignored (DDP-4.1-04 RDMAP-4.1-02), and so is the key of an empty message (DDP-5.2-03). */
static void not_wrong(void **state)
{
    struct conn_attr attr = host_attr();
    const uint8_t write[14] = {0xfd, 0x70, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const uint8_t send[18] = {0x7d, 0x73, 0xff, 0xff, 0xff, 0xff, [13] = 1};
    struct seg_read read = {.sink_key = 7, .sink_offset = -1ULL, .source_key = UNKNOWN_KEY, .source_offset = -1ULL};
    struct seg answer;

    (void)state;
    begin(&attr);
    say_ulpdu(write, sizeof(write));
    say_ulpdu(send, sizeof(send));
    peer_says(&h, a_read_request(1, &read));
    assert_int_equal(h.conn.life.state, CONN_READY);
    answer = expect_seg(&h, SEG_READ_RESP);
    assert_int_equal(answer.key, 7);
    assert_true(answer.offset == -1ULL);
    assert_int_equal(answer.length, 0);
    assert_int_equal(expect_wc(&h.side.recv_cq, RECV_ID, RDDP_WC_SUCCESS).byte_len, 0);
    expect_untouched();
    host_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_is_answered),
        cmocka_unit_test(each_wrong_with_markers),
        cmocka_unit_test(wrong_crc),
        cmocka_unit_test(wrong_marker),
        cmocka_unit_test(wrong_length),
        cmocka_unit_test(too_many_reads),
        cmocka_unit_test(send_goes_wrong_later),
        cmocka_unit_test(not_wrong),
        cmocka_unit_test(answer_does_not_fit),
    };

    return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
