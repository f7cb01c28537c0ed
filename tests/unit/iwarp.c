/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.c - the wire as a whole: segments to FPDUs and back, and the Terminate that follows a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/lib/rng.h"
#include "tests/lib/vectors.h"
#include "wire/mpa.h"
#include "wire/wire.h"

enum { PAYLOAD_MAX = MPA_ULPDU_MAX - 14 };

static uint8_t payload[PAYLOAD_MAX], unit[2 * WIRE_UNIT_MAX], other[2 * WIRE_UNIT_MAX];

static void check_same(const struct seg *got, const struct seg *want, const uint8_t *data)
{
    assert_int_equal(got->op, want->op);
    assert_int_equal(got->flags, want->flags);
    assert_int_equal(got->msg, want->msg);
    assert_int_equal(got->key, want->key);
    assert_int_equal(got->offset, want->offset);
    assert_int_equal(got->invalidate, want->invalidate);
    assert_int_equal(got->immediate, want->immediate);
    assert_memory_equal(&got->atomic, &want->atomic, sizeof(got->atomic)); /* and `read`, which is in the same place */
    assert_int_equal(got->length, want->length);
    assert_memory_equal(got->data, data, want->length);
}

/* Any segment that can be sent. */
static struct seg random_segment(struct rng *rng, uint32_t length)
{
    uint64_t r = rng_next(rng);
    struct seg seg = {.op = (enum seg_op)(r % SEG_TERMINATE), .flags = r >> 8 & SEG_LAST, .length = length};

    if (seg_is_tagged(&seg)) {
        seg.key = rng_next(rng) >> 32;
        seg.offset = rng_next(rng);
        return seg;
    }
    seg.msg = (uint32_t)rng_next(rng);
    if (seg.op == SEG_READ_REQ) {
        seg.flags = SEG_LAST;
        seg.length = 0;
        seg.read = (struct seg_read){rng_next(rng) >> 32, rng_next(rng), rng_next(rng) >> 32, rng_next(rng),
                                     (uint32_t)rng_next(rng)};
        return seg;
    }
    if (seg.op == SEG_ATOMIC_REQ || seg.op == SEG_ATOMIC_RESP) {
        seg.flags = SEG_LAST;
        seg.length = 0;
        seg.atomic.id = (uint32_t)rng_next(rng);
        seg.atomic.data = rng_next(rng);
        if (seg.op == SEG_ATOMIC_RESP)
            return seg;
        seg.atomic.op = r >> 16 & 1 ? SEG_FETCH_ADD : SEG_CMP_SWAP;
        seg.atomic.key = rng_next(rng) >> 32;
        seg.atomic.offset = rng_next(rng);
        seg.atomic.mask = rng_next(rng);
        seg.atomic.compare = rng_next(rng);
        seg.atomic.compare_mask = rng_next(rng);
        return seg;
    }
    if (seg.op == SEG_IMMEDIATE) {
        seg.flags = SEG_LAST | (r >> 16 & SEG_SOLICITED);
        seg.length = 0;
        seg.immediate = rng_next(rng);
        return seg;
    }
    seg.offset = rng_next(rng) >> 32;
    seg.flags |= r >> 16 & (SEG_SOLICITED | SEG_INVALIDATE);
    if (seg.flags & SEG_INVALIDATE)
        seg.invalidate = rng_next(rng) >> 32;
    return seg;
}

/* A payload in as many pieces as chance wants, some of them empty. */
static unsigned random_spans(struct rng *rng, uint32_t length, struct span *span)
{
    unsigned spans = rng_between(rng, 1, WIRE_SPANS_MAX);
    uint32_t at = 0;

    for (unsigned i = 0; i < spans; i++) {
        uint32_t n = i + 1 == spans ? length - at : rng_below(rng, length - at + 1);

        span[i] = (struct span){.at = payload + at, .length = n};
        at += n;
    }
    return spans;
}

static struct wire_state random_state(struct rng *rng)
{
    uint64_t r = rng_next(rng);
    struct wire_state agreed = {.crc = r & 1, .tx_markers = r & 2, .version = r >> 2 & 1};

    agreed.rx_markers = agreed.tx_markers;
    agreed.tx_pos = (r & 8 ? 1ULL << 32 : 4096) - 512 + (r >> 8) % 256 * 4;
    agreed.rx_pos = agreed.tx_pos;
    return agreed;
}

/* MPA-2-02 MPA-3.2-02 MPA-6-01 MPA-7.1-05 MPA-7.1-10 DDP-3-01 DDP-4.2-01 DDP-4.3-01: what is framed comes out as it
 * went in, for each kind of segment, size, state and phase, positions around 2^32 among them. */
static void round_trip(void **state)
{
    struct rng rng = {5040};

    (void)state;
    for (unsigned round = 0; round < 30000; round++) {
        uint32_t limit = round % 200 ? 3000 : PAYLOAD_MAX - 4;
        struct seg seg = random_segment(&rng, rng_below(&rng, limit)), got;
        struct wire_state agreed = random_state(&rng);
        struct span span[WIRE_SPANS_MAX];
        unsigned spans = random_spans(&rng, seg.length, span);
        uint64_t begin = agreed.tx_pos;
        size_t n, need = 0;

        memset(unit, 0xee, 64);
        n = wire_iwarp.frame(&agreed, &seg, span, spans, unit);
        assert_true(n <= WIRE_UNIT_MAX);
        assert_int_equal(agreed.tx_pos, begin + n);
        assert_int_equal(n % 4, 0);
        assert_int_equal(wire_iwarp.decode(&agreed, &got, unit, n - 1, &need), 0);
        assert_int_equal(need, n);
        assert_int_equal(agreed.rx_pos, begin);
        assert_int_equal(wire_iwarp.decode(&agreed, &got, unit, n, &need), n);
        check_same(&got, &seg, payload);
        assert_int_equal(got.begin, begin);
        assert_int_equal(got.end, begin + n);
        assert_int_equal(agreed.rx_pos, agreed.tx_pos);
    }
}

/* wrap() writes the same octets as frame() around a payload that stays where it is. */
static void wrap_is_frame(void **state)
{
    struct rng rng = {5041};

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct seg seg = random_segment(&rng, rng_below(&rng, round % 100 ? 3000 : PAYLOAD_MAX - 4));
        struct wire_state agreed = random_state(&rng), again;
        struct span span[WIRE_SPANS_MAX];
        unsigned spans = random_spans(&rng, seg.length, span);
        uint8_t tail[WIRE_TAIL_MAX];
        size_t n, head_length, tail_length;

        agreed.tx_markers = false;
        again = agreed;
        assert_false(wire_iwarp.interleaves(&agreed));
        n = wire_iwarp.frame(&agreed, &seg, span, spans, unit);
        wire_iwarp.wrap(&again, &seg, span, spans, other, &head_length, tail, &tail_length);
        assert_true(head_length <= WIRE_HEAD_MAX && tail_length <= WIRE_TAIL_MAX);
        assert_int_equal(head_length + seg.length + tail_length, n);
        assert_memory_equal(unit, other, head_length);
        assert_memory_equal(unit + head_length, payload, seg.length);
        assert_memory_equal(unit + n - tail_length, tail, tail_length);
        assert_int_equal(again.tx_pos, agreed.tx_pos);
    }
}

/* Figures 5 and 6 of mpa.txt as the segments they are: version 0, a Send of 24 zero octets, 18 + 464 in front of the
 * second. MPA-7.2-09 MPA-7.2-10 MPA-8.1-03 RFC 5044 figure 6: the same with version 1. */
static void figures(void **state)
{
    json_t *file = vectors_load("mpa");
    static const uint8_t zeros[464];
    struct wire_state agreed = {.crc = true, .tx_markers = true};
    struct seg seg = {.op = SEG_SEND, .flags = SEG_LAST, .msg = 1, .length = 24};
    struct span span = {.at = zeros, .length = 24};
    uint8_t want[1024];
    size_t n;

    (void)state;
    n = vector_hex(vectors_find(file, "fpdus", "MPA-V-fig5"), "hex", want, sizeof(want));
    assert_int_equal(wire_iwarp.frame(&agreed, &seg, &span, 1, unit), n);
    assert_memory_equal(unit, want, n);

    agreed.tx_pos = 0;
    seg.length = span.length = 464;
    n = vector_hex(vectors_find(file, "fpdus", "MPA-V-fig6-first"), "hex", want, sizeof(want));
    assert_int_equal(wire_iwarp.frame(&agreed, &seg, &span, 1, unit), n);
    assert_memory_equal(unit, want, n);
    assert_int_equal(agreed.tx_pos, 0x1ec);

    seg.msg = 2;
    seg.length = span.length = 24;
    n = vector_hex(vectors_find(file, "fpdus", "MPA-V-fig6"), "hex", want, sizeof(want));
    assert_int_equal(wire_iwarp.frame(&agreed, &seg, &span, 1, unit), n);
    assert_memory_equal(unit, want, n);

    agreed.tx_pos = 0x1ec;
    agreed.version = 1;
    n = vector_hex(vectors_find(file, "fpdus", "MPA-V-rfc5044-fig6"), "hex", want, sizeof(want));
    assert_int_equal(wire_iwarp.frame(&agreed, &seg, &span, 1, unit), n);
    assert_memory_equal(unit, want, n);
    json_decref(file);
}

/* MPA-5.2-02 MPA-5.2-03 MPA-7.3.1-04 DDP-5.2-01: MULPDU without the header, and no unit of that payload is above EMSS.
 */
static void payload_max(void **state)
{
    static const uint32_t emss[] = {64, 140, 536, 1448, 8948, 65483};

    (void)state;
    for (unsigned i = 0; i < 6 * 2; i++) {
        struct wire_state agreed = {.crc = true, .tx_markers = i & 1, .version = 1};
        uint32_t mulpdu = mpa_mulpdu(emss[i / 2], agreed.tx_markers);
        struct seg seg = {.op = SEG_WRITE, .flags = SEG_LAST};

        assert_int_equal(wire_iwarp.payload_max(&agreed, true, emss[i / 2]), mulpdu - 14);
        assert_int_equal(wire_iwarp.payload_max(&agreed, false, emss[i / 2]), mulpdu - 18);
        assert_int_equal(wire_iwarp.interleaves(&agreed), i & 1);
        seg.length = mulpdu - 14;
        if (emss[i / 2] >= 140)
            assert_true(wire_iwarp.frame(&agreed, &seg, &(struct span){payload, seg.length}, 1, unit) <= emss[i / 2]);
    }
}

/* --- faults and Terminates ----------------------------------------------------------------------------------- */

/* A ULPDU of the vectors in an FPDU, decoded; `fault` is what must come of it. */
static struct seg decode_vector(const char *id, struct wire_state *agreed, enum fault fault)
{
    json_t *file = vectors_load("mpa");
    struct mpa_half half = {.pos = agreed->rx_pos, .markers = agreed->rx_markers, .crc = agreed->crc};
    uint8_t ulpdu[2048];
    struct seg seg;
    size_t n = vector_hex(vectors_find(file, "ddp_rdmap", id), "hex", ulpdu, sizeof(ulpdu)), need = 0;

    n = mpa_encode(&half, unit, &(struct span){ulpdu, (uint32_t)n}, 1);
    assert_int_equal(wire_iwarp.decode(agreed, &seg, unit, n, &need), fault ? -(int)fault : (int)n);
    json_decref(file);
    return seg;
}

/* An opcode that no document knows, in a ULPDU of 26 octets. */
static struct seg decode_wrong_opcode(struct wire_state *agreed)
{
    const uint8_t ulpdu[26] = {0x41, 0x4c, [13] = 5};
    struct mpa_half half = {.pos = agreed->rx_pos, .markers = agreed->rx_markers, .crc = agreed->crc};
    size_t n = mpa_encode(&half, unit, &(struct span){ulpdu, sizeof(ulpdu)}, 1), need = 0;
    struct seg seg;

    assert_int_equal(wire_iwarp.decode(agreed, &seg, unit, n, &need), -(int)FAULT_OPCODE);
    return seg;
}

/* MPA-7.1-16 MPA-7.4-01 MPA-9-09: after a fault the position stays and nothing of what was behind the CRC is believed.
 */
static void faults_of_framing(void **state)
{
    struct wire_state agreed = {.crc = true, .tx_markers = true, .rx_markers = true, .version = 1};
    struct seg seg = {.op = SEG_WRITE, .flags = SEG_LAST, .key = 7, .length = 1000}, got;
    size_t n = wire_iwarp.frame(&agreed, &seg, &(struct span){payload, 1000}, 1, unit), need = 0;

    (void)state;
    unit[100] ^= 1;
    got.op = SEG_SEND;
    assert_int_equal(wire_iwarp.decode(&agreed, &got, unit, n, &need), -FAULT_CRC);
    assert_int_equal(agreed.rx_pos, 0);
    assert_null(got.head);
    assert_int_equal(got.length, 0);
    unit[100] ^= 1;
    unit[512 + 3] ^= 4;
    put32le(unit + n - 4, crc32c(0, unit, n - 4));
    assert_int_equal(wire_iwarp.decode(&agreed, &got, unit, n, &need), -FAULT_MARKER);
    put16(unit + 4, 64769);
    assert_int_equal(wire_iwarp.decode(&agreed, &got, unit, n, &need), -FAULT_LENGTH);
    assert_int_equal(agreed.rx_pos, 0);
}

/* A zero-length ULPDU is good framing, and no DDP segment. */
static void empty_ulpdu(void **state)
{
    struct wire_state agreed = {.crc = true, .version = 1};
    struct mpa_half half = {.crc = true};
    struct span nothing = {payload, 0};
    struct seg seg;
    size_t n = mpa_encode(&half, unit, &nothing, 1), need = 0;

    (void)state;
    assert_int_equal(n, 8);
    assert_int_equal(wire_iwarp.decode(&agreed, &seg, unit, n, &need), -FAULT_SHORT);
    assert_int_equal(agreed.rx_pos, 0);
    assert_int_equal(seg.end, 8);
}

/* RDMAP-5.4-01 RDMAP-7.1-01 M44-19: the Terminate of a fault that the decoder itself found, as the FPDU that leaves. */
static void terminate_of_a_fault(void **state)
{
    static const uint8_t want[] = {0x41, 0x47, 0, 0, 0, 0, 0,    0,    0,    2, 0, 0,
                                   0,    1,    0, 0, 0, 0, 0x02, 0x06, 0xc0, 0, 0, 26};
    struct wire_state agreed = {.crc = true, .version = 1};
    struct seg seg = decode_wrong_opcode(&agreed), term;
    struct fault_note note = {.fault = FAULT_OPCODE, .op = seg.op, .msg = seg.msg};
    uint8_t buffer[WIRE_TERM_MAX];
    size_t n;

    (void)state;
    assert_true(wire_iwarp.terminate(&agreed, &note, &seg, &term, buffer));
    assert_int_equal(term.op, SEG_TERMINATE);
    n = wire_iwarp.frame(&agreed, &term, &(struct span){term.data, term.length}, 1, other);
    assert_int_equal(get16(other), 18 + 4 + 2 + 18);
    assert_memory_equal(other + 2, want, sizeof(want));
    assert_memory_equal(other + 2 + sizeof(want), seg.head, 18);
    assert_int_equal(n, agreed.tx_pos);
}

/* If the fault concerns another message than the segment that revealed it, the segment's header is not copied. */
static void terminate_of_another(void **state)
{
    struct wire_state agreed = {.crc = true, .version = 1};
    struct seg seg = decode_vector("DDP-V-send", &agreed, FAULT_NONE), term;
    struct fault_note note = {.fault = FAULT_TOO_LONG, .op = SEG_SEND, .msg = seg.msg};
    uint8_t buffer[WIRE_TERM_MAX];

    (void)state;
    assert_true(wire_iwarp.terminate(&agreed, &note, &seg, &term, buffer));
    assert_int_equal(get32(buffer), 0x1205c000);
    note.msg++;
    assert_true(wire_iwarp.terminate(&agreed, &note, &seg, &term, buffer));
    assert_int_equal(get32(buffer), 0x12050000);
    assert_int_equal(term.length, 4);
    note.msg--;
    note.op = SEG_WRITE;
    assert_true(wire_iwarp.terminate(&agreed, &note, &seg, &term, buffer));
    assert_int_equal(term.length, 4);
    note.fault = FAULT_TERMINATED;
    assert_false(wire_iwarp.terminate(&agreed, &note, &seg, &term, buffer));
}

/* RDMAP-7.1-01 rule 3: the header of a Read Request is copied even if its segment is gone or replaced by another. */
static void terminate_of_a_read(void **state)
{
    struct wire_state agreed = {.crc = true, .version = 1};
    struct seg seg = decode_vector("DDP-V-rreq", &agreed, FAULT_NONE), term;
    struct fault_note note = {.fault = FAULT_KEY, .op = SEG_READ_REQ, .msg = seg.msg, .read = seg.read};
    struct seg later = seg;
    const struct seg *about[] = {&seg, NULL, &later};
    uint8_t buffer[WIRE_TERM_MAX];

    (void)state;
    later.msg++;
    for (unsigned i = 0; i < 3; i++) {
        memset(buffer, 0xee, sizeof(buffer));
        assert_true(wire_iwarp.terminate(&agreed, &note, about[i], &term, buffer));
        assert_int_equal(term.length, 4 + 2 + 18 + 28);
        assert_int_equal(get32(buffer), 0x0100e000);
        assert_int_equal(get16(buffer + 4), 46);
        assert_memory_equal(buffer + 6, seg.head, 46);
    }
}

/* M65-11: a failure while connecting has a code of its own. */
static void terminate_while_connecting(void **state)
{
    struct wire_state agreed = {.crc = true, .version = 1};
    struct fault_note note = {.fault = FAULT_MEMORY};
    struct seg term;
    uint8_t buffer[WIRE_TERM_MAX];

    (void)state;
    assert_true(wire_iwarp.terminate(&agreed, &note, NULL, &term, buffer));
    assert_int_equal(get32(buffer), 0x20050000);
    agreed.tx_pos = 44;
    assert_true(wire_iwarp.terminate(&agreed, &note, NULL, &term, buffer));
    assert_int_equal(get32(buffer), 0x00000000);
}

/* The same octets mean one thing in the first FPDU, where a start-up may have failed, and another later. */
static void explain(void **state)
{
    struct wire_state agreed = {.crc = true, .version = 1};
    struct seg seg = decode_vector("TERM-V-llp-6", &agreed, FAULT_NONE);
    struct wire_blame blame;

    (void)state;
    wire_iwarp.explain(&seg, &blame);
    assert_int_equal(blame.code, 0x2006);
    assert_int_equal(blame.op, SEG_OPS);
    seg.begin = 28;
    wire_iwarp.explain(&seg, &blame);
    assert_int_equal(blame.code, 0x0206);

    seg = decode_vector("TERM-V-rdmap-p-2", &agreed, FAULT_NONE);
    wire_iwarp.explain(&seg, &blame);
    assert_int_equal(blame.code, 0x0102);
    assert_int_equal(blame.op, SEG_READ_REQ);
    assert_true(blame.access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(wrap_is_frame),
        cmocka_unit_test(figures),
        cmocka_unit_test(payload_max),
        cmocka_unit_test(faults_of_framing),
        cmocka_unit_test(empty_ulpdu),
        cmocka_unit_test(terminate_of_a_fault),
        cmocka_unit_test(terminate_of_another),
        cmocka_unit_test(terminate_of_a_read),
        cmocka_unit_test(terminate_while_connecting),
        cmocka_unit_test(explain),
    };
    struct rng rng = {1};

    rng_fill(&rng, payload, sizeof(payload));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
