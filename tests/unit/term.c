/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* term.c - Terminates: the code of every fault, the vectors both ways, and the Terminates that Linux siw sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/vectors.h"
#include "wire/ddp.h"
#include "wire/term.h"

enum { BUFFER = 128, HEAD = DDP_UNTAGGED_HEAD };

static unsigned code_of(const json_t *fields)
{
    return (unsigned)(vector_number(fields, "layer") << 12 | vector_number(fields, "etype") << 8 |
                      vector_number(fields, "code"));
}

/* Reconstruct the segment that a Terminate is about from the copied headers. */
static struct seg copied(const uint8_t *term, size_t n)
{
    struct seg seg = {.op = SEG_OPS};

    if (n > 6) {
        seg.head = term + 6;
        seg.head_length = (uint32_t)n - 6;
        seg.length = get16(term + 4) - seg.head_length;
        seg.op = ddp_op(seg.head, seg.head_length);
    }
    return seg;
}

/* --- the vectors --------------------------------------------------------------------------------------------- */

/* RDMAP-5.4-01 RDMAP-7.1-01 DDP-7.1-01 DDP-7.1-02 DDP-7.1-03 DDP-7.2-01: the encoder writes code and copied headers
 * as in the vector, and the decoder reads the bit orders of the RFC and of siw. */
static void vectors_both_ways(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i, seen = 0;

    (void)state;
    vectors_each(file, "ddp_rdmap", i, entry) {
        json_t *fields = json_object_get(entry, "fields");
        uint8_t rfc[BUFFER], siw[BUFFER], buffer[WIRE_TERM_MAX];
        struct wire_blame blame;
        struct seg seg;
        size_t n;
        bool first;

        if (strncmp(vector_text(entry, "id"), "TERM-", 5))
            continue;
        n = vector_hex(entry, "hex", rfc, BUFFER);
        assert_int_equal(vector_hex(entry, "hex_as_linux_siw_little_endian", siw, BUFFER), n);
        seg = copied(rfc + HEAD, n - HEAD);
        assert_int_equal(term_encode(buffer, code_of(fields), seg.head ? &seg : NULL), n - HEAD);
        assert_memory_equal(buffer, rfc + HEAD, n - HEAD);

        first = vector_number(fields, "layer") == 2 && vector_number(fields, "code") >= 5;
        term_explain(rfc + HEAD, n - HEAD, first, &blame);
        assert_int_equal(blame.code, code_of(fields));
        assert_int_equal(blame.op, seg.op);
        /* Without headers, a DDP local catastrophic error in the bit order of siw reads as an RDMAP remote
         * protection error. Siw always adds headers to this error. */
        if (!strcmp(vector_text(entry, "id"), "TERM-V-ddp-cat"))
            continue;
        term_explain(siw + HEAD, n - HEAD, first, &blame);
        assert_int_equal(blame.code, code_of(fields));
        assert_int_equal(blame.op, seg.op);
        seen++;
    }
    assert_int_equal(seen, 24);
    json_decref(file);
}

/* Convert an observation such as "DDP tagged 0x00, M D" to a code. */
static unsigned observed_code(const char *as)
{
    static const struct {
        const char *words;
        unsigned code;
    } kinds[] = {
        {"DDP tagged ", 0x1100},
        {"DDP untagged ", 0x1200},
        {"DDP local catastrophic", 0x1000},
        {"RDMAP remote protection ", 0x0100},
        {"RDMAP remote operation ", 0x0200},
        {"LLP ", 0x2000},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t n = strlen(kinds[i].words);

        if (!strncmp(as, kinds[i].words, n))
            return kinds[i].code | (unsigned)strtoul(as + n, NULL, 0);
    }
    fail_msg("an unknown observation: %s", as);
    return 0;
}

/* The decoder understands the Terminates observed from Linux siw. The siw initiator sends a Terminate as its first
 * FPDU. */
static void siw_controls(void **state)
{
    json_t *file = vectors_load("siw_observed"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "terminates", i, entry) {
        bool first = strstr(vector_text(entry, "cause"), "(initiator)") != NULL;
        struct wire_blame blame;
        uint8_t buffer[BUFFER] = {0};

        assert_int_equal(vector_hex(entry, "control", buffer, BUFFER), 4);
        term_explain(buffer, 4, first, &blame);
        if (blame.code != observed_code(vector_text(entry, "as")))
            fail_msg("%s: read as %04x", vector_text(entry, "cause"), blame.code);
        assert_null(strstr(blame.text, "no document"));
    }
    json_decref(file);
}

static void siw_whole_messages(void **state)
{
    static const struct {
        unsigned code;
        enum seg_op op;
        bool access;
    } want[] = {{0x1100, SEG_WRITE, true}, {0x0100, SEG_READ_REQ, true}, {0x1202, SEG_SEND, false}};
    json_t *file = vectors_load("siw_observed"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "full_terminate_fpdus", i, entry) {
        uint8_t ulpdu[BUFFER];
        size_t n = vector_hex(entry, "ulpdu", ulpdu, BUFFER);
        struct wire_blame blame;
        struct seg seg;

        assert_int_equal(ddp_decode(&seg, ulpdu, n, 1), FAULT_NONE);
        assert_int_equal(seg.op, SEG_TERMINATE);
        term_explain(seg.data, seg.length, false, &blame);
        assert_int_equal(blame.code, want[i].code);
        assert_int_equal(blame.op, want[i].op);
        assert_int_equal(blame.access, want[i].access);
    }
    assert_int_equal(i, 3);
    json_decref(file);
}

/* --- faults -------------------------------------------------------------------------------------------------- */

/* Every fault with a code in RFC 5041 7.2, RFC 5040 figure 9, RFC 5044 8 or RFC 6581 8, written independently of the
 * table in the code, for a Write, a Send and a Read Request. Faults left out have code 0, local catastrophic. M44-13
 * M44-19 M65-07 M65-10 M65-11 MPA-9-02 MPA-9-04 MPA-9-05 */
static void every_fault(void **state)
{
    enum { NO = TERM_SILENCE };
    static const unsigned want[FAULTS][3] = {
        [FAULT_NONE] = {NO, NO, NO},
        [FAULT_KEY] = {0x1100, 0x0100, 0x0100},
        [FAULT_DOMAIN] = {0x1102, 0x0103, 0x0103},
        [FAULT_RIGHT] = {0x1100, 0x0102, 0x0102},
        [FAULT_BOUNDS] = {0x1101, 0x0101, 0x0101},
        [FAULT_WRAP] = {0x1103, 0x0104, 0x0104},
        [FAULT_ABSENT] = {0x1101, 0x0101, 0x0101},
        [FAULT_QUEUE] = {0x1201, 0x1201, 0x1201},
        [FAULT_NO_RECEIVE] = {0x1202, 0x1202, 0x1202},
        [FAULT_MSN] = {0x1203, 0x1203, 0x1203},
        [FAULT_MO] = {0x1204, 0x1204, 0x1204},
        [FAULT_TOO_LONG] = {0x1205, 0x1205, 0x1205},
        [FAULT_DDP_VERSION] = {0x1104, 0x1206, 0x1206},
        [FAULT_RDMAP_VERSION] = {0x0205, 0x0205, 0x0205},
        [FAULT_OPCODE] = {0x0206, 0x0206, 0x0206},
        [FAULT_SHORT] = {0x02ff, 0x02ff, 0x02ff},
        [FAULT_UNASKED] = {0x1100, 0x1202, 0x1100},
        [FAULT_READS] = {0x1202, 0x1202, 0x1202},
        [FAULT_INVALIDATE] = {0x0109, 0x0109, 0x0109},
        [FAULT_UNALIGNED] = {0x0207, 0x0207, 0x0207},
        [FAULT_CRC] = {0x2002, 0x2002, 0x2002},
        [FAULT_MARKER] = {0x2003, 0x2003, 0x2003},
        [FAULT_OVERLAP] = {0x2003, 0x2003, 0x2003},
        [FAULT_LENGTH] = {0x2003, 0x2003, 0x2003},
        [FAULT_SEG_VERSION] = {NO, NO, NO},
        [FAULT_SEG_LENGTH] = {NO, NO, NO},
        [FAULT_SEG_CLEN] = {NO, NO, NO},
        [FAULT_SEG_ID] = {NO, NO, NO},
        [FAULT_SEG_CRC] = {NO, NO, NO},
        [FAULT_SEG_NUMBER] = {NO, NO, NO},
        [FAULT_SEG_BEGIN] = {NO, NO, NO},
        [FAULT_SEG_TYPE] = {NO, NO, NO},
        [FAULT_SEG_OFFSET] = {NO, NO, NO},
        [FAULT_SEG_BUFFER] = {NO, NO, NO},
        [FAULT_SEG_PLACE] = {NO, NO, NO},
        [FAULT_SEG_TOTAL] = {NO, NO, NO},
        [FAULT_CHUNK_SHORT... FAULT_RESPONSE] = {NO, NO, NO},
        [FAULT_START_KEY] = {NO, NO, NO},
        [FAULT_START_REVISION] = {NO, NO, NO},
        [FAULT_START_LENGTH] = {NO, NO, NO},
        [FAULT_START_ENHANCED] = {NO, NO, NO},
        [FAULT_IRD] = {0x2006, 0x2006, 0x2006},
        [FAULT_RTR] = {0x2007, 0x2007, 0x2007},
        [FAULT_EARLY] = {NO, NO, NO},
        [FAULT_REJECTED] = {NO, NO, NO},
        [FAULT_LOST] = {NO, NO, NO},
        [FAULT_CUT] = {NO, NO, NO},
        [FAULT_STALLED] = {NO, NO, NO},
        [FAULT_TERMINATED] = {NO, NO, NO},
        [FAULT_OWNER] = {NO, NO, NO},
        [FAULT_FORKED] = {NO, NO, NO},
        [FAULT_CLOSED] = {NO, NO, NO},
        [FAULT_NOT_NOW] = {NO, NO, NO},
    };

    (void)state;
    for (unsigned fault = 0; fault < FAULTS; fault++) {
        assert_int_equal(term_code((enum fault)fault, SEG_WRITE, true), want[fault][0]);
        assert_int_equal(term_code((enum fault)fault, SEG_READ_RESP, true), want[fault][0]);
        assert_int_equal(term_code((enum fault)fault, SEG_SEND, true), want[fault][1]);
        assert_int_equal(term_code((enum fault)fault, SEG_TERMINATE, true), want[fault][1]);
        assert_int_equal(term_code((enum fault)fault, SEG_READ_REQ, true), want[fault][2]);
        assert_int_equal(term_code((enum fault)fault, SEG_ATOMIC_REQ, true), want[fault][2]);
        assert_int_equal(term_code((enum fault)fault, SEG_SEND, false),
                         fault == FAULT_MEMORY ? 0x2005 : want[fault][1]);
    }
}

/* The decoder understands each code that the encoder sends, start-up codes in the first FPDU. */
static void own_codes_have_words(void **state)
{
    (void)state;
    for (unsigned fault = 0; fault < FAULTS; fault++) {
        for (unsigned op = 0; op < SEG_OPS; op++) {
            unsigned code = term_code((enum fault)fault, (enum seg_op)op, true);
            uint8_t buffer[WIRE_TERM_MAX];
            struct wire_blame blame;

            if (code == TERM_SILENCE)
                continue;
            term_explain(buffer, term_encode(buffer, code, NULL), code >> 12 == 2, &blame);
            assert_int_equal(blame.code, code);
            assert_null(strstr(blame.text, "no document"));
        }
    }
}

/* --- copied headers ------------------------------------------------------------------------------------------ */

static const uint8_t tagged[20] = {0xc1, 0x40, 0xde, 0xad, 0, 1};
static const uint8_t request[46] = {0x41, 0x41, [9] = 1, [13] = 1, [45] = 0xaa};

static unsigned has(unsigned code, const uint8_t *head, uint32_t head_length, size_t octets)
{
    struct seg seg = {.head = head, .head_length = head_length, .length = 3};
    uint8_t buffer[WIRE_TERM_MAX];

    assert_int_equal(term_encode(buffer, code, &seg), octets);
    assert_int_equal(buffer[3], 0);
    if (octets > 4) {
        assert_int_equal(get16(buffer + 4), head_length + 3);
        assert_memory_equal(buffer + 6, head, octets - 6);
    }
    return buffer[2];
}

/* RFC 5040 figure 10 and 7.1 rules 1 to 3: the code selects the copied headers, and a header is copied whole or not
 * at all. RDMAP-7.1-01 */
static void headers_by_code(void **state)
{
    (void)state;
    assert_int_equal(has(0x1101, tagged, 14, 20), 0xc0);
    assert_int_equal(has(0x1101, tagged, 13, 4), 0);
    assert_int_equal(has(0x1203, request, 18, 24), 0xc0);
    assert_int_equal(has(0x1203, request, 17, 4), 0);
    assert_int_equal(has(0x1203, request, 46, 24), 0xc0);
    assert_int_equal(has(0x0101, request, 46, 52), 0xe0);
    assert_int_equal(has(0x0101, request, 18, 24), 0xc0);
    assert_int_equal(has(0x0206, request, 46, 24), 0xc0);
    assert_int_equal(has(0x0000, request, 46, 4), 0);
    assert_int_equal(has(0x1000, tagged, 14, 4), 0);
    assert_int_equal(has(0x2002, tagged, 14, 4), 0);
    assert_int_equal(has(0x1101, NULL, 0, 4), 0);
}

/* The meaning of each header bit when a peer sets only one bit of a pair. */
static void header_bits_apart(void **state)
{
    static const struct {
        uint8_t bits;
        enum seg_op op;
    } want[] = {{0x40, SEG_WRITE}, {0x80, SEG_OPS}, {0x20, SEG_OPS},
                {0x02, SEG_WRITE}, {0x01, SEG_OPS}, {0x04, SEG_OPS}};
    uint8_t buffer[6 + 14] = {0x11, 0x01, 0, 0, 0, 16, 0xc1, 0x40};
    struct wire_blame blame;

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        buffer[2] = want[i].bits;
        term_explain(buffer, sizeof(buffer), false, &blame);
        assert_int_equal(blame.op, want[i].op);
    }
    buffer[2] = 0xc0;
    term_explain(buffer, 7, false, &blame);
    assert_int_equal(blame.op, SEG_OPS);
}

/* --- reading ------------------------------------------------------------------------------------------------- */

/* Without header bits the code alone tells the bit order; if both orders are possible, the decoder depends on
 * whether the Terminate is the first FPDU. */
static void order_without_headers(void **state)
{
    static const struct {
        uint16_t octets;
        unsigned first, later;
    } want[] = {
        {0x2001, 0x2001, 0x2001}, {0x2004, 0x2004, 0x2004}, {0x0201, 0x2001, 0x2001}, {0x0204, 0x2004, 0x2004},
        {0x2005, 0x2005, 0x0205}, {0x2006, 0x2006, 0x0206}, {0x2007, 0x2007, 0x2007}, {0x0205, 0x2005, 0x0205},
        {0x0206, 0x2006, 0x0206}, {0x0207, 0x2007, 0x0207}, {0x0208, 0x0208, 0x0208}, {0x0209, 0x0209, 0x0209},
        {0x02ff, 0x02ff, 0x02ff}, {0x1104, 0x1104, 0x1104}, {0x1206, 0x1206, 0x1206}, {0x2106, 0x1206, 0x1206},
        {0x1000, 0x1000, 0x1000}, {0x1007, 0x1007, 0x1007}, {0x0100, 0x0100, 0x0100}, {0x0109, 0x0109, 0x0109},
        {0x0000, 0x0000, 0x0000}, {0x0042, 0x0042, 0x0042},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint8_t buffer[4] = {(uint8_t)(want[i].octets >> 8), (uint8_t)want[i].octets};
        struct wire_blame blame;

        term_explain(buffer, 4, true, &blame);
        assert_int_equal(blame.code, want[i].first);
        assert_null(strstr(blame.text, "no document"));
        term_explain(buffer, 4, false, &blame);
        assert_int_equal(blame.code, want[i].later);
        assert_null(strstr(blame.text, "no document"));
    }
}

/* Random Terminates get an explanation, and the decoder reads no octet behind them. */
static void anything_is_explained(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 50000; round++) {
        size_t n = round % 30;
        uint8_t *p = test_malloc(n + 1);
        struct wire_blame blame = {.text = NULL};

        for (size_t i = 0; i < n; i++)
            p[i] = (uint8_t)((seed = seed * 6364136223846793005 + 1442695040888963407) >> 56);
        p = test_realloc(p, n ? n : 1);
        term_explain(p, n, round & 1, &blame);
        assert_non_null(blame.text);
        assert_true(blame.op <= SEG_OPS);
        assert_true(n >= 4 || blame.code == 0);
        test_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways),     cmocka_unit_test(siw_controls),
        cmocka_unit_test(siw_whole_messages),    cmocka_unit_test(every_fault),
        cmocka_unit_test(own_codes_have_words),  cmocka_unit_test(headers_by_code),
        cmocka_unit_test(header_bits_apart),     cmocka_unit_test(order_without_headers),
        cmocka_unit_test(anything_is_explained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
