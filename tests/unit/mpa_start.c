/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_start.c - Request and Reply frames: the vectors both ways, wrong ones early, and what two of them agree on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/vectors.h"
#include "wire/mpa_start.h"

enum { BUFFER = 1024 };

static bool is_reply(const uint8_t *p)
{
    return p[9] == 'p';
}

/* --- the vectors --------------------------------------------------------------------------------------------- */

static enum fault expected(const char *id)
{
    static const struct {
        const char *id;
        enum fault fault;
    } bad[] = {
        {"MPA-U-req-513", FAULT_START_LENGTH},
        {"MPA-U-rev3", FAULT_START_REVISION},
        {"MPA-U-v2-short", FAULT_START_ENHANCED},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (!strcmp(bad[i].id, id))
            return bad[i].fault;
    return FAULT_NONE;
}

static void check_fields(const json_t *fields, const struct mpa_frame *frame)
{
    uint8_t data[BUFFER];
    size_t n = vector_hex(fields, "private_data", data, BUFFER), skip = frame->enhanced ? 4 : 0;

    assert_int_equal(frame->markers, vector_number(fields, "M"));
    assert_int_equal(frame->crc, vector_number(fields, "C"));
    assert_int_equal(frame->reject, vector_number(fields, "R"));
    assert_int_equal(frame->enhanced, vector_number(fields, "S"));
    assert_int_equal(frame->revision, vector_number(fields, "rev"));
    assert_int_equal(frame->private_length, n - skip);
    assert_memory_equal(frame->private_data, data + skip, n - skip);
}

/* M44-10 M44-11 M44-12 M44-14 M44-21 M65-01 M65-02 M65-08 M65-09: each is read, and written again to the same octets.
 */
static void vectors_both_ways(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "startup", i, entry) {
        uint8_t octets[BUFFER], again[MPA_FRAME_MAX];
        size_t n = vector_hex(entry, "hex", octets, BUFFER), need = 0;
        enum fault fault = expected(vector_text(entry, "id"));
        struct mpa_frame frame;
        int eaten = mpa_frame_decode(&frame, is_reply(octets), octets, n, &need);

        assert_int_equal(eaten, fault ? -(int)fault : (int)n);
        if (eaten < 0)
            continue;
        assert_int_equal(need, n);
        assert_int_equal(frame.reply, is_reply(octets));
        check_fields(json_object_get(entry, "fields"), &frame);
        assert_int_equal(mpa_frame_encode(again, &frame), n);
        assert_memory_equal(again, octets, n);
    }
    json_decref(file);
}

static struct mpa_frame from_vector(json_t *file, const char *id, uint8_t *buffer)
{
    size_t n = vector_hex(vectors_find(file, "startup", id), "hex", buffer, BUFFER), need = 0;
    struct mpa_frame frame;

    assert_int_equal(mpa_frame_decode(&frame, is_reply(buffer), buffer, n, &need), n);
    return frame;
}

/* The octets of RFC 6581 9 by their meaning. M65-01 M65-08 M65-09 */
static void enhanced_fields(void **state)
{
    static const struct {
        const char *id;
        bool peer_to_peer;
        unsigned rtr;
        uint16_t ird, ord;
    } want[] = {
        {"MPA-U-v2-siw", false, 0, 1, 1},
        {"MPA-U-v2-p2p", true, MPA_RTR_WRITE | MPA_RTR_READ, 0x10, 0x10},
        {"MPA-U-v2-p2p-rep", true, MPA_RTR_WRITE, 0x10, 0x10},
        {"MPA-U-v2-all-ones", false, 0, MPA_NO_NEGOTIATION, MPA_NO_NEGOTIATION},
        {"MPA-U-v2-rpcrdma", false, 0, 1, 0},
    };
    json_t *file = vectors_load("mpa");
    uint8_t buffer[BUFFER];

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct mpa_frame frame = from_vector(file, want[i].id, buffer);

        assert_true(frame.enhanced);
        assert_int_equal(frame.peer_to_peer, want[i].peer_to_peer);
        assert_int_equal(frame.rtr, want[i].rtr);
        assert_int_equal(frame.ird, want[i].ird);
        assert_int_equal(frame.ord, want[i].ord);
    }
    json_decref(file);
}

static void check_observed(const char *flags, const char *enhanced, unsigned rtr)
{
    uint8_t buffer[BUFFER] = "MPA ID Rep Frame";
    ptrdiff_t head = hex_decode(flags, buffer + 16, 4), n = enhanced ? hex_decode(enhanced, buffer + 20, 4) : 0;
    struct mpa_frame frame;
    size_t need = 0;

    assert_int_equal(head, 4);
    n = 20 + get16(buffer + 18);
    assert_int_equal(mpa_frame_decode(&frame, true, buffer, (size_t)n, &need), n);
    assert_int_equal(frame.enhanced, enhanced != NULL);
    assert_int_equal(frame.rtr, rtr);
}

/* What Linux siw answered: reserved bits echoed, revision 0 and 2, the peer-to-peer bits. M44-11 M65-03 */
static void siw_replies(void **state)
{
    json_t *file = vectors_load("siw_observed"), *entry;
    size_t i, seen = 0;

    (void)state;
    vectors_each(file, "startup_as_responder", i, entry) {
        const char *flags = json_string_value(json_object_get(entry, "reply_flags_rev_pdlen"));
        const char *enhanced = json_string_value(json_object_get(entry, "reply_v2"));
        unsigned rtr = 0;

        if (!flags || !strcmp(flags, "70020000")) /* S without its octets: a rejection that no conforming end sends */
            continue;
        if (enhanced && !strcmp(enhanced, "80048004"))
            rtr = MPA_RTR_WRITE;
        if (enhanced && !strcmp(enhanced, "80044004"))
            rtr = MPA_RTR_READ;
        check_observed(flags, enhanced, rtr);
        seen++;
    }
    assert_int_equal(seen, 12);
    json_decref(file);
}

/* --- frames -------------------------------------------------------------------------------------------------- */

/* M44-03 M44-10 M44-12: however the stream is cut, the frame is taken when it is whole, and not one octet behind it. */
static void any_cut(void **state)
{
    json_t *file = vectors_load("mpa");
    uint8_t buffer[BUFFER] = {0};
    struct mpa_frame frame = from_vector(file, "MPA-U-v2-rpcrdma", buffer);
    size_t whole = 20 + 4 + frame.private_length;

    (void)state;
    for (size_t n = 0; n < whole + 16; n++) {
        uint8_t *p = test_malloc(n ? n : 1);
        size_t need = 0;
        int eaten;

        memcpy(p, buffer, n);
        eaten = mpa_frame_decode(&frame, false, p, n, &need);
        assert_int_equal(eaten, n < whole ? 0 : (int)whole);
        assert_int_equal(need, n < 20 ? 20 : whole);
        test_free(p);
    }
    json_decref(file);
}

/* M44-10 M44-13: a wrong octet of the key is enough; the rest is not awaited. A Reply is no Request and the other way
 * round. */
static void wrong_key_at_once(void **state)
{
    struct mpa_frame frame;
    size_t need = 0;

    (void)state;
    for (unsigned reply = 0; reply < 2; reply++) {
        uint8_t key[17];

        memcpy(key, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 17);
        for (size_t at = 0; at < 16; at++) {
            assert_int_equal(mpa_frame_decode(&frame, reply, key, at + 1, &need), 0);
            assert_int_equal(mpa_frame_decode(&frame, !reply, key, at + 1, &need), at < 9 ? 0 : -FAULT_START_KEY);
            key[at] ^= 1;
            assert_int_equal(mpa_frame_decode(&frame, reply, key, at + 1, &need), -FAULT_START_KEY);
            key[at] ^= 1;
        }
    }
    assert_int_equal(mpa_frame_decode(&frame, false, (const uint8_t *)"GET / HTTP/1.1", 1, &need), -FAULT_START_KEY);
}

/* M44-11: a revision is judged as soon as it is there. */
static void revisions(void **state)
{
    uint8_t buffer[20] = "MPA ID Req Frame";
    struct mpa_frame frame;
    size_t need = 0;

    (void)state;
    for (unsigned revision = 0; revision < 256; revision++) {
        buffer[17] = (uint8_t)revision;
        assert_int_equal(mpa_frame_decode(&frame, false, buffer, 18, &need), revision > 2 ? -FAULT_START_REVISION : 0);
        assert_int_equal(mpa_frame_decode(&frame, false, buffer, 20, &need), revision > 2 ? -FAULT_START_REVISION : 20);
    }
}

/* M44-12 M44-18: 512 octets of private data and not one more; known before any of it is there. */
static void private_data_limit(void **state)
{
    uint8_t data[MPA_PRIVATE_MAX], buffer[MPA_FRAME_MAX + 1];
    struct mpa_frame frame = {.revision = 1, .private_data = data, .private_length = MPA_PRIVATE_MAX}, got;
    size_t n, need = 0;

    (void)state;
    memset(data, 0xab, sizeof(data));
    n = mpa_frame_encode(buffer, &frame);
    assert_int_equal(n, MPA_FRAME_MAX);
    assert_int_equal(mpa_frame_decode(&got, false, buffer, n, &need), n);
    assert_int_equal(got.private_length, 512);
    assert_memory_equal(got.private_data, data, 512);
    put16(buffer + 18, 513);
    assert_int_equal(mpa_frame_decode(&got, false, buffer, 20, &need), -FAULT_START_LENGTH);
    put16(buffer + 18, 0xffff);
    assert_int_equal(mpa_frame_decode(&got, false, buffer, 20, &need), -FAULT_START_LENGTH);

    frame.enhanced = true;
    frame.revision = 2;
    frame.private_length = MPA_PRIVATE_MAX - MPA_ENHANCED;
    n = mpa_frame_encode(buffer, &frame);
    assert_int_equal(n, MPA_FRAME_MAX);
    assert_int_equal(mpa_frame_decode(&got, false, buffer, n, &need), n);
    assert_int_equal(got.private_length, 508);
}

/* Reserved bits are not looked at; S is one of them before revision 2, and R in a Request (RFC 5044 7.1.1). M65-01 */
static void reserved_bits(void **state)
{
    uint8_t buffer[20] = "MPA ID Req Frame";
    struct mpa_frame frame;
    size_t need = 0;

    (void)state;
    buffer[16] = 0x3f;
    buffer[17] = 1;
    assert_int_equal(mpa_frame_decode(&frame, false, buffer, 20, &need), 20);
    assert_false(frame.enhanced);
    assert_false(frame.reject);
    assert_false(frame.markers);
    assert_false(frame.crc);
    mpa_frame_encode(buffer, &frame);
    assert_int_equal(buffer[16], 0);
    memcpy(buffer, "MPA ID Rep Frame", 16);
    buffer[16] = 0x20;
    assert_int_equal(mpa_frame_decode(&frame, true, buffer, 20, &need), 20);
    assert_true(frame.reject);
    buffer[16] = 0x10;
    buffer[17] = 2;
    assert_int_equal(mpa_frame_decode(&frame, true, buffer, 20, &need), -FAULT_START_ENHANCED);
}

/* M65-09: without the flag A the flags B, C and D are neither sent nor evaluated. */
static void no_rtr_without_peer_to_peer(void **state)
{
    struct mpa_frame frame = {.revision = 2, .enhanced = true, .rtr = 7, .ird = 5, .ord = 6}, got;
    uint8_t buffer[MPA_FRAME_MAX];
    size_t n = mpa_frame_encode(buffer, &frame), need = 0;

    (void)state;
    assert_int_equal(get32(buffer + 20), 0x00050006);
    put32(buffer + 20, 0x4005c006);
    assert_int_equal(mpa_frame_decode(&got, false, buffer, n, &need), n);
    assert_int_equal(got.rtr, 0);
    assert_int_equal(got.ird, 5);
    assert_int_equal(got.ord, 6);
    frame.peer_to_peer = true;
    for (frame.rtr = 0; frame.rtr < 8; frame.rtr++) {
        static const uint32_t octets[] = {0x80050006, 0xc0050006, 0x80058006, 0xc0058006,
                                          0x80054006, 0xc0054006, 0x8005c006, 0xc005c006};

        n = mpa_frame_encode(buffer, &frame);
        assert_int_equal(get32(buffer + 20), octets[frame.rtr]);
        assert_int_equal(mpa_frame_decode(&got, false, buffer, n, &need), n);
        assert_int_equal(got.rtr, frame.rtr);
    }
}

/* --- what is agreed ------------------------------------------------------------------------------------------ */

/* M65-05 M65-07 M65-08: each side's IRD and ORD, asked and own, and what is in force at both ends. */
static void depths(void **state)
{
    enum { FREE = MPA_NO_NEGOTIATION };
    static const struct {
        uint16_t asked_ird, asked_ord, space_ird, space_ord; /* of the initiator's frame; of the responder */
        uint16_t reply_ird, reply_ord, ord_here, ord_there;  /* here: the responder */
    } rows[] = {
        {16, 8, 4, 4, 4, 4, 4, 4},          {4, 4, 16, 8, 16, 4, 4, 4},
        {0, 0, 16, 16, 16, 0, 0, 0},        {1, 128, 128, 0, 128, 0, 0, 128},
        {128, 128, 0, 128, 0, 128, 128, 0}, {FREE, 8, 4, 16, 4, FREE, 16, 4},
        {8, FREE, 4, 16, FREE, 8, 8, 0},    {FREE, FREE, 4, 16, FREE, FREE, 16, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mpa_frame request = {
            .revision = 2, .enhanced = true, .ird = rows[i].asked_ird, .ord = rows[i].asked_ord};
        struct mpa_frame reply = {.reply = true, .revision = 2};
        uint16_t ird = 0, ord = 0;

        mpa_agree_responder(&request, rows[i].space_ird, rows[i].space_ord, 7, &reply, &ird, &ord);
        assert_true(reply.enhanced);
        assert_false(reply.peer_to_peer);
        assert_int_equal(reply.rtr, 0);
        assert_int_equal(reply.ird, rows[i].reply_ird);
        assert_int_equal(reply.ord, rows[i].reply_ord);
        assert_int_equal(ird, rows[i].space_ird);
        assert_int_equal(ord, rows[i].ord_here);
        if (rows[i].asked_ird == FREE || rows[i].asked_ord == FREE)
            continue;
        assert_int_equal(mpa_agree_initiator(&reply, request.ird, request.ord, &ird, &ord), FAULT_NONE);
        assert_int_equal(ird, request.ird);
        assert_int_equal(ord, rows[i].ord_there);
        assert_true(ord <= rows[i].space_ird && rows[i].ord_here <= ird);
    }
}

/* M65-07 M65-08 at n-1, n, n+1, and where the reply does not negotiate. */
static void initiator_limits(void **state)
{
    struct mpa_frame reply = {.reply = true, .revision = 2, .enhanced = true, .ird = 3, .ord = 7};
    uint16_t ird = 0, ord = 0;

    (void)state;
    assert_int_equal(mpa_agree_initiator(&reply, 8, 5, &ird, &ord), FAULT_NONE);
    assert_int_equal(mpa_agree_initiator(&reply, 7, 5, &ird, &ord), FAULT_NONE);
    assert_int_equal(ird, 7);
    assert_int_equal(ord, 3);
    assert_int_equal(mpa_agree_initiator(&reply, 6, 5, &ird, &ord), FAULT_IRD);
    reply.ird = reply.ord = MPA_NO_NEGOTIATION;
    assert_int_equal(mpa_agree_initiator(&reply, 6, 5, &ird, &ord), FAULT_NONE);
    assert_int_equal(ird, 6);
    assert_int_equal(ord, 5);
    reply = (struct mpa_frame){.reply = true, .revision = 1, .ord = 200};
    assert_int_equal(mpa_agree_initiator(&reply, 6, 5, &ird, &ord), FAULT_NONE);
    assert_int_equal(ird, 6);
    assert_int_equal(ord, 5);
}

/* M65-03: an initiator that did not ask for negotiation is not answered with one. */
static void plain_request(void **state)
{
    struct mpa_frame request = {.revision = 1}, reply = {.reply = true, .revision = 1};
    uint16_t ird = 0, ord = 0;

    (void)state;
    mpa_agree_responder(&request, 4, 6, 7, &reply, &ird, &ord);
    assert_false(reply.enhanced);
    assert_false(reply.peer_to_peer);
    assert_int_equal(ird, 4);
    assert_int_equal(ord, 6);
}

/* M65-09 M65-10: every choice of ready-to-receive messages of both sides. */
static void rtr_choice(void **state)
{
    (void)state;
    for (unsigned own = 0; own < 8; own++) {
        for (unsigned peer = 0; peer < 8; peer++) {
            struct mpa_frame request = {.revision = 2, .enhanced = true, .peer_to_peer = true, .rtr = peer};
            struct mpa_frame reply = {.reply = true, .revision = 2};
            unsigned chosen = mpa_choose_rtr(own, peer), common = own & peer;
            uint16_t ird, ord;

            assert_int_equal(chosen & ~common, 0);
            assert_int_equal(chosen & (chosen - 1), 0);
            assert_int_equal(chosen != 0, common != 0);
            if (common & MPA_RTR_WRITE)
                assert_int_equal(chosen, MPA_RTR_WRITE);
            else if (common & MPA_RTR_SEND)
                assert_int_equal(chosen, MPA_RTR_SEND);
            mpa_agree_responder(&request, 1, 1, own, &reply, &ird, &ord);
            assert_true(reply.peer_to_peer);
            assert_int_equal(reply.rtr, common ? chosen : own);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways),
        cmocka_unit_test(enhanced_fields),
        cmocka_unit_test(siw_replies),
        cmocka_unit_test(any_cut),
        cmocka_unit_test(wrong_key_at_once),
        cmocka_unit_test(revisions),
        cmocka_unit_test(private_data_limit),
        cmocka_unit_test(reserved_bits),
        cmocka_unit_test(no_rtr_without_peer_to_peer),
        cmocka_unit_test(depths),
        cmocka_unit_test(initiator_limits),
        cmocka_unit_test(plain_request),
        cmocka_unit_test(rtr_choice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
