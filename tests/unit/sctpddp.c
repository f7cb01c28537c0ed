/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp.c - the SCTP DDP/RDMA adaptation on the wire: vectors both ways, and which adaptation may send which mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/vectors.h"
#include "wire/sctpddp.h"

enum { BUFFER = 2048, DATA_HEAD = 16, WHOLE = 7 };

static enum sctpddp_adaptation by_name(const char *name)
{
    for (unsigned i = 0; i < SCTPDDP_ADAPTATIONS; i++)
        if (strcmp(sctpddp_adaptation_name((enum sctpddp_adaptation)i), name) == 0)
            return (enum sctpddp_adaptation)i;
    fail_msg("no such adaptation: %s", name);
    return SCTPDDP_PLAIN;
}

/* Return the length of the user data of a DATA chunk: its Length without header and padding. SCTP-1-01 SCTP-2.2-05 */
static size_t user_data(const uint8_t *p, size_t n)
{
    size_t length = get16(p + 2);

    assert_int_equal(p[0], 0);
    assert_true(length >= DATA_HEAD && length <= n && n - length < 4 && n % 4 == 0);
    for (size_t i = length; i < n; i++)
        assert_int_equal(p[i], 0);
    return length - DATA_HEAD;
}

static void check_chunk(const json_t *entry, enum sctpddp_adaptation sender)
{
    const json_t *fields = json_object_get(entry, "fields"), *ext = json_object_get(fields, "ext");
    uint8_t p[BUFFER], again[SCTPDDP_HEAD_MAX];
    size_t n = user_data(p, vector_hex(entry, "hex", p, BUFFER));
    const uint8_t *user = p + DATA_HEAD;
    struct sctpddp_chunk chunk;

    assert_int_equal(sctpddp_decode(sender, &chunk, user, n), FAULT_NONE);
    assert_int_equal(chunk.mode, vector_number(ext, "mode"));
    assert_int_equal(chunk.flags, vector_number(ext, "flags"));
    assert_int_equal(chunk.tag, vector_number(ext, "tag"));
    assert_int_equal(chunk.offset, vector_number(ext, "offset"));
    assert_int_equal(chunk.aws, vector_number_or(ext, "aws", 0));
    assert_int_equal(chunk.length, vector_number(ext, "data_length"));
    assert_ptr_equal(chunk.data, user + sctpddp_head(sender));
    assert_int_equal(sctpddp_judge(sender, &chunk, vector_number(fields, "flags_UBE") == WHOLE), FAULT_NONE);
    assert_true(sctpddp_may_send(sender, chunk.mode));
    assert_int_equal(sctpddp_encode(sender, &chunk, again), sctpddp_head(sender));
    assert_memory_equal(again, user, sctpddp_head(sender));
}

/* SCTP-2.1-01 SCTP-2.1-02 SCTP-4-01 SCTP-2.2-04 SCTP-2.2-05 SCTP-2.2-06 SCTP-2.2-08 SCTP-2.2-09 SCTP-2.2-15 SCTP-2.2-18
 * SCTP-2.2-22 SCTP-3.2.2-S4a SCTP-3.2.2-S4b SCTP-3.2.2-05 */
static void vectors_both_ways(void **state)
{
    json_t *file = vectors_load("sctp"), *entry;
    unsigned parameters = 0;
    size_t i;

    (void)state;
    vectors_each(file, "chunks", i, entry) {
        uint8_t p[BUFFER], again[SCTPDDP_PARAMETER];
        enum sctpddp_adaptation found;
        size_t n;

        if (json_object_get(entry, "association")) {
            check_chunk(entry, by_name(vector_text(entry, "association")));
            continue;
        }
        n = vector_hex(entry, "hex", p, BUFFER);
        assert_true(sctpddp_get_parameter(p, n, &found));
        assert_int_equal(found, vector_number(json_object_get(entry, "fields"), "indication"));
        assert_ptr_equal(sctpddp_put_parameter(again, found), again + n);
        assert_memory_equal(again, p, n);
        parameters++;
    }
    assert_int_equal(parameters, 4);
    json_decref(file);
}

/* The decoder accepts an adaptation indication only with a type, length and value of the document. SCTP-2.1-02 */
static void parameters(void **state)
{
    (void)state;
    for (uint32_t value = 0; value < 9; value++) {
        enum sctpddp_adaptation found = SCTPDDP_PLAIN;
        uint8_t p[SCTPDDP_PARAMETER];

        put32(sctpddp_put_parameter(p, SCTPDDP_DDP) - 4, value);
        assert_int_equal(sctpddp_get_parameter(p, sizeof(p), &found), value >= 1 && value <= 5);
        assert_int_equal(found, value <= 5 ? value : 0);
        assert_int_equal(sctpddp_adaptation_of(value), value <= 5 ? value : 0);
        if (value < 1 || value > 5)
            continue;
        assert_false(sctpddp_get_parameter(p, sizeof(p) - 1, &found));
        p[3] = 12;
        assert_false(sctpddp_get_parameter(p, sizeof(p), &found));
        p[3] = 8;
        p[1] = 5;
        assert_false(sctpddp_get_parameter(p, sizeof(p), &found));
    }
    assert_int_equal(sctpddp_adaptation_of(UINT32_MAX), SCTPDDP_PLAIN);
}

/* Messages from zero octets to one octet more than the header extension. SCTP-2.2-18 */
static void short_messages(void **state)
{
    json_t *file = vectors_load("sctp"), *entry;
    unsigned seen = 0;
    size_t i;

    (void)state;
    vectors_each(file, "malformed", i, entry) {
        enum sctpddp_adaptation sender = by_name(vector_text(entry, "association"));
        uint8_t p[BUFFER];
        size_t n = user_data(p, vector_hex(entry, "hex", p, BUFFER));
        struct sctpddp_chunk chunk;

        if (strstr(vector_text(entry, "expect"), "short")) {
            assert_int_equal(sctpddp_decode(sender, &chunk, p + DATA_HEAD, n), FAULT_CHUNK_SHORT);
            seen++;
        }
    }
    assert_int_equal(seen, 2);
    json_decref(file);
    for (unsigned sender = 0; sender < SCTPDDP_ADAPTATIONS; sender++) {
        uint32_t head = sctpddp_head((enum sctpddp_adaptation)sender);
        struct sctpddp_chunk chunk;
        uint8_t p[SCTPDDP_HEAD_MAX + 1] = {0};

        assert_int_equal(head, sender == 0 ? 0 : sender <= 2 ? 16 : 20);
        assert_int_equal(sctpddp_has_aws((enum sctpddp_adaptation)sender), sender > 2);
        for (uint32_t n = 0; n <= head + 1; n++)
            assert_int_equal(sctpddp_decode((enum sctpddp_adaptation)sender, &chunk, p, n),
                             n < head ? FAULT_CHUNK_SHORT : FAULT_NONE);
        assert_int_equal(chunk.length, 1);
    }
}

/* SCTP-2.1-07 SCTP-2.2-12 SCTP-2.2-13 SCTP-2.2-14 SCTP-2.2-16 SCTP-2.2-17 SCTP-3.2.1-R1 SCTP-3.2.1-R2 SCTP-3.2.1-R3
 * SCTP-3.2.1-R4 SCTP-3.2.1-R6 */
static void receive_matrix(void **state)
{
    static const enum fault rules[] = {FAULT_CHUNK_R1, FAULT_CHUNK_R2, FAULT_CHUNK_R3, FAULT_CHUNK_R4};
    json_t *file = vectors_load("sctp"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "receive_matrix", i, entry) {
        enum sctpddp_adaptation sender = by_name(vector_text(entry, "peer_indicated"));
        struct sctpddp_chunk chunk = {.mode = (uint32_t)vector_number(entry, "mode")};
        const char *action = vector_text(entry, "action"), *text = vector_text(entry, "rule");
        enum fault fault = sctpddp_judge(sender, &chunk, true);

        if (strcmp(action, "abort") != 0)
            assert_int_equal(fault, FAULT_NONE);
        else if (text[0] == 'R')
            assert_int_equal(fault, rules[text[1] - '1']);
        else
            assert_int_equal(fault, FAULT_CHUNK_MODE);
        /* The flags U, B and E may have any value in NO_PLACEMENT_MODE only. */
        if (fault == FAULT_NONE)
            assert_int_equal(sctpddp_judge(sender, &chunk, false), chunk.mode ? FAULT_CHUNK_FLAGS : FAULT_NONE);
    }
    assert_int_equal(i, 30);
    json_decref(file);
}

/* SCTP-3.2.2-S1 SCTP-3.2.2-S2 SCTP-2.2-13 SCTP-2.2-14 SCTP-2.2-16 SCTP-2.2-17 */
static void sender_matrix(void **state)
{
    static const char *const modes[] = {"NO_PLACEMENT_MODE", "DDP_MODE", "DDP_WITH_TAG_MODE", "RDMA_PLACEMENT_MODE"};
    json_t *file = vectors_load("sctp"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "sender_matrix", i, entry) {
        enum sctpddp_adaptation own = by_name(vector_text(entry, "sender_indicated"));
        uint32_t mode = 0;

        while (strcmp(modes[mode], vector_text(entry, "mode")) != 0)
            mode++;
        assert_int_equal(sctpddp_may_send(own, mode), vector_flag(entry, "may_send"));
        assert_false(sctpddp_may_send(own, 4));
        assert_false(sctpddp_may_send(own, 0xffffff));
    }
    assert_int_equal(i, 20);
    json_decref(file);
}

/* SCTP-2.2-25 */
static void serial_numbers(void **state)
{
    json_t *file = vectors_load("sctp"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "signal_serial", i, entry) {
        assert_int_equal(
            sctpddp_reached((uint32_t)vector_number(entry, "cumulative"), (uint32_t)vector_number(entry, "signal_on")),
            vector_flag(entry, "release"));
    }
    assert_int_equal(i, 8);
    json_decref(file);
    assert_true(sctpddp_reached(0x7fffffff, 0));
    assert_false(sctpddp_reached(0x80000000, 0));
}

/* The mode has 24 bits, and the octet beside it holds the flags. The decoder keeps reserved flags. */
static void mode_and_flags(void **state)
{
    struct sctpddp_chunk chunk = {.mode = 0xffffff, .flags = 0xff, .tag = 1, .offset = UINT64_MAX, .aws = 2}, back;
    uint8_t p[SCTPDDP_HEAD_MAX];

    (void)state;
    assert_int_equal(sctpddp_encode(SCTPDDP_RDMA_ONLY, &chunk, p), 20);
    assert_int_equal(sctpddp_decode(SCTPDDP_RDMA_ONLY, &back, p, 20), FAULT_NONE);
    assert_int_equal(back.mode, 0xffffff);
    assert_int_equal(back.flags, 0xff);
    assert_int_equal(sctpddp_judge(SCTPDDP_RDMA_ONLY, &back, true), FAULT_CHUNK_MODE);
    assert_int_equal(SCTPDDP_SIGNALS, SCTPDDP_ACK | SCTPDDP_NOTIFY | SCTPDDP_RELEASE);
    assert_int_equal(sctpddp_encode(SCTPDDP_PLAIN, &chunk, p), 0);
    assert_string_equal(sctpddp_adaptation_name((enum sctpddp_adaptation)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways), cmocka_unit_test(parameters),    cmocka_unit_test(short_messages),
        cmocka_unit_test(receive_matrix),    cmocka_unit_test(sender_matrix), cmocka_unit_test(serial_numbers),
        cmocka_unit_test(mode_and_flags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
