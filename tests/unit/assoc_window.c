/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_window.c - the sequence of an association's chunks: what waits behind a gap, how far ahead a chunk may be, and
 * when a signal has its turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "conn/assoc_window.h"
#include "tests/lib/rng.h"
#include "tests/lib/vectors.h"
#include "wire/sctpddp.h"

static struct window window;
static struct window_slot slots[WINDOW_CHUNKS];

static void begin(uint32_t origin)
{
    memset(slots, 0, sizeof(slots));
    window_init(&window, slots, WINDOW_CHUNKS, origin);
}

static enum fault find(uint32_t sequence)
{
    uint64_t pos;

    return window_find(&window, sequence, &pos);
}

static void place(uint32_t sequence, uint8_t flags)
{
    uint64_t pos;

    assert_int_equal(window_find(&window, sequence, &pos), FAULT_NONE);
    window_place(&window, pos, 0, true, flags);
}

/* The vector says which signals become due with which chunk. SCTP-2.2-24 SCTP-2.2-29 SCTP-2.2-23 */
static void signals_in_turn(void **state)
{
    json_t *file = vectors_load("sctp"), *entry;
    size_t i;

    (void)state;
    begin(0);
    vectors_each(file, "signal_example", i, entry) {
        const json_t *released = json_object_get(entry, "signals_released"), *signal;
        struct window_slot slot;
        size_t k = 0;

        place((uint32_t)vector_number(entry, "arrives_aws"), (uint8_t)vector_number(entry, "flags"));
        while (window_pop(&window, &slot)) {
            if (!slot.flags)
                continue;
            signal = json_array_get(released, k++);
            assert_int_equal(window.next - 1, json_integer_value(json_array_get(signal, 0)));
            assert_int_equal(slot.flags, json_integer_value(json_array_get(signal, 1)));
        }
        assert_int_equal(k, json_array_size(released));
        assert_int_equal((uint32_t)(window.next - 1), vector_number(entry, "cumulative_aws"));
    }
    json_decref(file);
}

/* The last AWS in the window, and the next one; about 2^31; and the same where 32 bits wrap. SCTP-2.2-25 */
static void how_far_ahead(void **state)
{
    static const uint32_t origins[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffff001, 0xffffffff};
    struct window_slot slot;

    (void)state;
    for (unsigned i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
        uint32_t o = origins[i];

        begin(o);
        for (uint32_t k = 0; k < 3; k++) {
            place(o + k, 0);
            assert_true(window_pop(&window, &slot));
        }
        assert_int_equal(find(o + 2), FAULT_CHUNK_AGAIN);
        assert_int_equal(find(o), FAULT_CHUNK_AGAIN);
        assert_int_equal(find(o - 1), FAULT_CHUNK_AGAIN);
        assert_int_equal(find(o + 3 + 0x80000001u), FAULT_CHUNK_AGAIN);
        assert_int_equal(find(o + 3 + 0x80000000u), FAULT_CHUNK_AHEAD);
        assert_int_equal(find(o + 3 + 0x7fffffffu), FAULT_CHUNK_AHEAD);
        assert_int_equal(find(o + 3 + WINDOW_CHUNKS), FAULT_CHUNK_AHEAD);
        assert_int_equal(find(o + 3 + WINDOW_CHUNKS - 1), FAULT_NONE);
        for (uint32_t k = 1; k < WINDOW_CHUNKS; k++)
            place(o + 3 + k, SCTPDDP_NOTIFY);
        assert_int_equal(window.ahead, WINDOW_CHUNKS - 1);
        assert_false(window_pop(&window, &slot));
        assert_int_equal(find(o + 3 + 17), FAULT_CHUNK_AGAIN);
        place(o + 3, 0);
        for (uint32_t k = 0; k < WINDOW_CHUNKS; k++) {
            assert_true(window_pop(&window, &slot));
            assert_int_equal(slot.flags, k ? SCTPDDP_NOTIFY : 0);
        }
        assert_false(window_pop(&window, &slot));
        assert_int_equal(window.ahead, 0);
        assert_int_equal(window.next, 3 + WINDOW_CHUNKS);
    }
}

/* The slots of a stranger are few; those that follow show the same, wherever the sequence is. */
static void widens(void **state)
{
    struct window_slot early[WINDOW_EARLY] = {{0}}, slot;
    uint32_t name = 0;

    (void)state;
    begin(0);
    window_init(&window, early, WINDOW_EARLY, 0);
    for (uint32_t k = 0; k < WINDOW_EARLY + 3; k++) {
        uint64_t pos;

        assert_int_equal(window_find(&window, k, &pos), FAULT_NONE);
        window_place(&window, pos, 0, false, 0);
        assert_true(window_pop(&window, &slot));
    }
    for (uint32_t k = 1; k < WINDOW_EARLY; k++) {
        assert_int_equal(find((uint32_t)window.next + k), FAULT_NONE);
        window_keep(&window, window.next + k, 100 + k);
    }
    assert_int_equal(find((uint32_t)window.next + WINDOW_EARLY), FAULT_CHUNK_AHEAD);
    window_widen(&window, slots);
    assert_int_equal(window.ahead, WINDOW_EARLY - 1);
    assert_int_equal(find((uint32_t)window.next + WINDOW_EARLY), FAULT_NONE);
    assert_int_equal(find((uint32_t)window.next + WINDOW_CHUNKS), FAULT_CHUNK_AHEAD);
    place((uint32_t)window.next, 0);
    for (uint32_t k = 1; k < WINDOW_EARLY; k++) {
        assert_true(window_pop(&window, &slot));
        assert_true(window_due(&window, &name));
        assert_int_equal(name, 100 + k);
        window_place(&window, window.next, 0, false, 0);
    }
}

static void kept(void **state)
{
    struct window_slot slot;
    uint32_t name = 0;
    uint64_t pos;

    (void)state;
    begin(5);
    assert_int_equal(window_find(&window, 6, &pos), FAULT_NONE);
    window_keep(&window, pos, 42);
    assert_int_equal(find(6), FAULT_CHUNK_AGAIN);
    assert_false(window_due(&window, &name));
    place(5, 0);
    assert_true(window_pop(&window, &slot));
    assert_true(window_due(&window, &name));
    assert_int_equal(name, 42);
    assert_false(window_pop(&window, &slot));
    window_place(&window, pos, 0, false, 0);
    assert_int_equal(window.ahead, 1);
    assert_true(window_pop(&window, &slot));
    assert_int_equal(window.ahead, 0);
}

/* Nothing is placed behind a release of its tag, whichever of the two arrives first. SCTP-2.2-21 */
static void releases(void **state)
{
    struct window_slot slot;

    (void)state;
    begin(0);
    window_place(&window, 2, 7, true, SCTPDDP_RELEASE);
    assert_int_equal(window.releases, 1);
    assert_int_equal(window_check_release(&window, 1, 7, false), FAULT_NONE);
    assert_int_equal(window_check_release(&window, 3, 7, false), FAULT_CHUNK_RELEASED);
    assert_int_equal(window_check_release(&window, 3, 8, false), FAULT_NONE);
    assert_int_equal(window_check_release(&window, 1, 7, true), FAULT_CHUNK_RELEASED);
    window_place(&window, 3, 8, true, 0);
    assert_int_equal(window_check_release(&window, 1, 8, true), FAULT_CHUNK_RELEASED);
    assert_int_equal(window_check_release(&window, 4, 8, true), FAULT_NONE);
    window_place(&window, 4, 9, false, 0); /* a message whose tag belongs to the application */
    assert_int_equal(window_check_release(&window, 1, 9, true), FAULT_NONE);
    window_place(&window, 0, 1, true, 0);
    window_place(&window, 1, 1, true, 0);
    while (window_pop(&window, &slot))
        ;
    assert_int_equal(window.releases, 0);
}

/* The rule as the document has it: a look at every chunk. */
static enum fault check_each(uint64_t pos, uint32_t tag, bool releases)
{
    for (uint64_t at = window.next; at < window.next + WINDOW_CHUNKS; at++) {
        const struct window_slot *slot = &slots[at % WINDOW_CHUNKS];

        if (slot->state == WINDOW_PLACED && slot->tagged && slot->value == tag &&
            (at < pos ? slot->flags & SCTPDDP_RELEASE : releases))
            return FAULT_CHUNK_RELEASED;
    }
    return FAULT_NONE;
}

/* Chunks come in any order, with few tags and many releases, again and again through the ring. */
static void releases_by_model(void **state)
{
    struct rng r = {1};
    struct window_slot slot;
    uint32_t refused = 0;

    (void)state;
    begin(0xffffff00u);
    for (uint32_t i = 0; i < 60000; i++) {
        uint64_t pos = window.next + rng_below(&r, rng_one_in(&r, 2) ? 20 : WINDOW_CHUNKS);
        uint32_t tag = rng_below(&r, 64) << rng_below(&r, 27);
        bool release = rng_one_in(&r, 4), tagged = !rng_one_in(&r, 8);

        if (slots[pos % WINDOW_CHUNKS].state != WINDOW_ABSENT)
            continue;
        assert_int_equal(window_check_release(&window, pos, tag, release), check_each(pos, tag, release));
        if (tagged && check_each(pos, tag, release))
            refused++;
        else
            window_place(&window, pos, tag, tagged, release ? SCTPDDP_RELEASE : 0);
        while (window_pop(&window, &slot))
            ;
    }
    assert_true(refused > 1000 && window.next > WINDOW_CHUNKS);
    while (window.ahead) {
        window_place(&window, window.next, 0, false, 0);
        while (window_pop(&window, &slot))
            ;
    }
    assert_true(window.releases == 0 && window.tags == 0);
}

static uint32_t depth_below(uint16_t link)
{
    uint32_t side[2];

    if (!link)
        return 0;
    for (int i = 0; i < 2; i++)
        side[i] = depth_below(slots[link - 1].child[i]);
    return 1 + (side[0] > side[1] ? side[0] : side[1]);
}

/* However many chunks wait, and whatever their tags are, 33 of them are looked at, at most. */
static void steps_of_a_check(void **state)
{
    uint32_t worst = 0;

    (void)state;
    for (uint32_t shift = 0; shift <= 31; shift++) {
        begin(0);
        for (uint32_t k = 1; k < WINDOW_CHUNKS; k++)
            window_place(&window, k, k < 32 ? 1u << k : k << shift | k >> (32 - shift) % 32, true, 0);
        worst = depth_below(window.tags) > worst ? depth_below(window.tags) : worst;
    }
    assert_in_range(worst, 12, 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_in_turn), cmocka_unit_test(how_far_ahead),     cmocka_unit_test(kept),
        cmocka_unit_test(releases),        cmocka_unit_test(releases_by_model), cmocka_unit_test(steps_of_a_check),
        cmocka_unit_test(widens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
