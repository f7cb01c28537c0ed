/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_order.c - fragments and ordered messages in every order of arrival, what contradicts, and how much is held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sctp/io/osctp_order.h"

enum { CHUNKS_MAX = 6, GIVEN_MAX = 8192, OCTETS = 5, PLENTY = 1 << 20 };

static struct osctp_message given[GIVEN_MAX];
static uint32_t count;

static void give(void *of, const struct osctp_message *m)
{
    assert_ptr_equal(of, given);
    assert_true(count < GIVEN_MAX);
    given[count++] = *m;
}

static void forget_given(void)
{
    while (count)
        free(given[--count].data);
}

static struct osctp_order begin(void)
{
    return (struct osctp_order){.give = give, .of = given};
}

/* B, E and U are the flags of the chunk. */
enum { B = 1, E = 2, U = 4 };

struct row {
    uint32_t tsn;
    unsigned flags;
    uint16_t stream, ssn;
};

/* The data of each chunk are OCTETS times its TSN's last octet; its PPID is its TSN. */
static enum osctp_verdict take(struct osctp_order *r, const struct row *row, uint32_t space)
{
    uint8_t octets[OCTETS];
    const struct osctp_data d = {
        .tsn = row->tsn,
        .ppid = row->tsn,
        .stream = row->stream,
        .ssn = row->ssn,
        .first = row->flags & B,
        .last = row->flags & E,
        .unordered = row->flags & U,
        .data = octets,
        .octets = OCTETS,
    };

    memset(octets, (int)(row->tsn & 0xff), sizeof(octets));
    return osctp_order_take(r, &d, space);
}

/* --- every order of arrival ---------------------------------------------------------------------------------- */

struct set {
    uint32_t chunks;
    struct row row[CHUNKS_MAX];
};

/* By TSN. They begin before the TSN wraps. */
static const struct set sets[] = {
    {1, {{1, B | E, 0, 0}}},
    {2, {{UINT32_MAX, B | U, 0, 0}, {0, E | U, 0, 0}}},
    {3, {{1, B | U, 0, 0}, {2, U, 0, 0}, {3, E | U, 0, 0}}},
    {4, {{1, B | E, 0, 0}, {2, B | E, 0, 1}, {3, B | E, 1, 0}, {4, B | E, 0, 2}}},
    {5, {{1, B, 0, 0}, {2, E, 0, 0}, {3, B, 0, 1}, {4, 0, 0, 1}, {5, E, 0, 1}}},
    {6, {{1, B, 0, 0}, {2, E, 0, 0}, {3, B | E | U, 0, 0}, {4, B | E, 0, 1}, {5, B, 15, 0}, {6, E, 15, 0}}},
    {6,
     {{UINT32_MAX - 2, B | U, 3, 9},
      {UINT32_MAX - 1, U, 3, 9},
      {UINT32_MAX, E | U, 3, 9},
      {0, B | U, 3, 9},
      {1, E | U, 3, 9},
      {2, B | E, 3, 0}}},
};

/* Every message once, with all its octets, and those of a stream in order. */
static void check_given(const struct set *set)
{
    uint16_t next[SCTP_STREAMS_MAX] = {0};
    uint32_t chunks = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct osctp_message *m = &given[i];
        uint32_t at = 0;

        while (set->row[at].tsn != m->tsn)
            assert_true(++at < set->chunks);
        assert_true(set->row[at].flags & B);
        assert_int_equal(m->ppid, m->tsn);
        assert_int_equal(m->tsns, m->octets / OCTETS);
        assert_int_equal(m->stream, set->row[at].stream);
        assert_int_equal(m->unordered, (set->row[at].flags & U) != 0);
        if (!m->unordered)
            assert_int_equal(set->row[at].ssn, next[m->stream]++);
        for (uint32_t k = 0; k < m->octets; k++)
            assert_int_equal(m->data[k], (uint8_t)(m->tsn + k / OCTETS));
        chunks += m->octets / OCTETS;
        at += m->octets / OCTETS - 1;
        assert_true(set->row[at].flags & E);
    }
    assert_int_equal(chunks, set->chunks);
}

static void arrive(const struct set *set, const uint32_t order[CHUNKS_MAX])
{
    struct osctp_order r = begin();
    uint32_t octets = 0;

    for (uint32_t i = 0; i < set->chunks; i++) {
        assert_int_equal(take(&r, &set->row[order[i]], PLENTY), OSCTP_TAKEN);
        octets = 0;
        for (uint32_t k = 0; k < count; k++)
            octets += given[k].octets;
        /* What was not given is held, and nothing else. */
        assert_int_equal(r.octets, (i + 1) * OCTETS - octets + r.count * OSCTP_ENTRY);
    }
    check_given(set);
    assert_int_equal(r.octets, 0);
    assert_int_equal(r.count, 0);
    osctp_order_fini(&r);
    forget_given();
}

/* Heap's algorithm. */
static void permute(const struct set *set, uint32_t order[CHUNKS_MAX], uint32_t n)
{
    if (n <= 1) {
        arrive(set, order);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t other = n % 2 ? 0 : i, moved;

        permute(set, order, n - 1);
        moved = order[other];
        order[other] = order[n - 1];
        order[n - 1] = moved;
    }
}

static void every_order(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        uint32_t order[CHUNKS_MAX] = {0, 1, 2, 3, 4, 5};

        permute(&sets[i], order, sets[i].chunks);
    }
}

/* The last first: the table grows, and all of it comes at once. SSNs and TSNs wrap. */
static void many(void **state)
{
    struct osctp_order r = begin();
    uint32_t n = GIVEN_MAX / 2;

    (void)state;
    for (uint32_t lap = 0; lap < 20; lap++) {
        for (uint32_t i = n; i--;) {
            const struct row row = {UINT32_MAX - 3000 + lap * n + i, B | E, 2, (uint16_t)(lap * n + i)};

            assert_int_equal(count, 0);
            assert_int_equal(take(&r, &row, PLENTY), OSCTP_TAKEN);
        }
        assert_int_equal(count, n);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(given[i].tsn, UINT32_MAX - 3000 + lap * n + i);
        forget_given();
    }
    osctp_order_fini(&r);
}

/* One message of many parts, which come from both ends. */
static void long_message(void **state)
{
    struct osctp_order r = begin();
    uint32_t n = 4000;

    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i % 2 ? n - 1 - i / 2 : i / 2;
        const struct row row = {at, U | (at == 0 ? B : 0u) | (at == n - 1 ? E : 0u), 0, 0};

        assert_int_equal(count, 0);
        assert_int_equal(take(&r, &row, PLENTY), OSCTP_TAKEN);
    }
    assert_int_equal(count, 1);
    assert_int_equal(given[0].octets, n * OCTETS);
    for (uint32_t k = 0; k < given[0].octets; k++)
        assert_int_equal(given[0].data[k], (uint8_t)(k / OCTETS));
    assert_int_equal(r.octets, 0);
    forget_given();
    osctp_order_fini(&r);
}

/* --- contradictions ------------------------------------------------------------------------------------------ */

/* The last chunk of each row contradicts the others. */
static void contradictions(void **state)
{
    static const struct set rows[] = {
        {1, {{1, B | E, SCTP_STREAMS_MAX, 0}}},
        {2, {{1, B | U, 0, 0}, {2, B | U, 0, 0}}},           /* begins inside a message */
        {2, {{1, B | U, 0, 0}, {2, B | E | U, 0, 0}}},       /* the same */
        {2, {{1, E | U, 0, 0}, {2, E | U, 0, 0}}},           /* goes on behind an end */
        {2, {{2, U, 0, 0}, {1, E | U, 0, 0}}},               /* ends in front of a middle */
        {2, {{2, B | U, 0, 0}, {1, U, 0, 0}}},               /* does not end in front of a beginning */
        {2, {{1, B | U, 0, 0}, {2, U, 1, 0}}},               /* another stream */
        {2, {{1, B | U, 0, 0}, {2, 0, 0, 0}}},               /* another order */
        {2, {{1, B, 0, 0}, {2, 0, 0, 1}}},                   /* another SSN */
        {2, {{2, E, 0, 0}, {1, B, 0, 1}}},                   /* the same, in front */
        {2, {{1, B | E, 0, 0}, {2, B | E, 0, 0}}},           /* an SSN that was given */
        {2, {{1, B | E, 0, 5}, {2, B | E, 0, 5}}},           /* an SSN that waits */
        {3, {{1, B | E, 0, 0}, {2, B, 0, 1}, {9, B, 0, 0}}}, /* a part with an SSN that was given */
        {1, {{1, B | E, 0, 0x8000}}},                        /* too far ahead */
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct osctp_order r = begin();
        uint32_t last = rows[i].chunks - 1, octets;

        for (uint32_t k = 0; k < last; k++)
            assert_int_equal(take(&r, &rows[i].row[k], PLENTY), OSCTP_TAKEN);
        octets = r.octets;
        assert_int_equal(take(&r, &rows[i].row[last], PLENTY), OSCTP_WRONG);
        assert_int_equal(r.octets, octets);
        osctp_order_fini(&r);
        forget_given();
    }
}

/* --- memory -------------------------------------------------------------------------------------------------- */

/* One octet below, at and above what three parts need; then what completes a message needs its own octets alone. */
static void bounded(void **state)
{
    enum { PARTS = 3, NEED = PARTS * (OCTETS + OSCTP_ENTRY) };

    (void)state;
    for (uint32_t space = NEED - 1; space <= NEED + 1; space++) {
        struct osctp_order r = begin();
        bool fits = space >= NEED;
        struct row row = {.flags = B | U};

        for (row.tsn = 0; row.tsn < PARTS - 1; row.tsn++, row.flags = U)
            assert_int_equal(take(&r, &row, space), OSCTP_TAKEN);
        assert_int_equal(take(&r, &row, space), fits ? OSCTP_TAKEN : OSCTP_NO_SPACE);
        assert_int_equal(r.octets, NEED - (fits ? 0 : OCTETS + OSCTP_ENTRY));
        if (fits) {
            row = (struct row){.tsn = PARTS, .flags = E | U};
            for (uint32_t least = NEED + OCTETS - 1; least <= NEED + OCTETS; least++)
                assert_int_equal(take(&r, &row, least), least < NEED + OCTETS ? OSCTP_NO_SPACE : OSCTP_TAKEN);
            assert_int_equal(count, 1);
            assert_int_equal(r.octets, 0);
        }
        osctp_order_fini(&r);
        forget_given();
    }
}

/* A message alone needs the same whether it is given or held. */
static void bounded_alone(void **state)
{
    enum { NEED = OCTETS + OSCTP_ENTRY };

    (void)state;
    for (uint16_t ssn = 0; ssn < 2; ssn++)
        for (uint32_t space = NEED - 1; space <= NEED + 1; space++) {
            struct osctp_order r = begin();
            const struct row row = {1, B | E, 0, ssn};

            assert_int_equal(take(&r, &row, space), space < NEED ? OSCTP_NO_SPACE : OSCTP_TAKEN);
            assert_int_equal(count, space >= NEED && !ssn);
            assert_int_equal(r.octets, space >= NEED && ssn ? NEED : 0);
            osctp_order_fini(&r);
            forget_given();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order),    cmocka_unit_test(many),    cmocka_unit_test(long_message),
        cmocka_unit_test(contradictions), cmocka_unit_test(bounded), cmocka_unit_test(bounded_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
