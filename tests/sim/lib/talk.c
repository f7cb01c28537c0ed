/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* talk.c - what a peer says: messages that are usually right, in whole and in part, and some that are not. */
#include "tests/sim/lib/talk.h"

#include "base/bytes.h"
#include "base/container.h"
#include "base/crc32c.h"

struct talk talk;

/* One time in `n`; never if the peer is an honest one. */
bool talk_is_wrong(uint32_t n)
{
    bool is_it = rng_one_in(&talk.rng, n);

    return is_it && !talk.is_honest;
}

uint32_t talk_octets(void)
{
    static const uint32_t often[] = {0, 1, 31, 32, 33, 63, 64, 65, TALK_REGION_OCTETS, TALK_REGION_OCTETS + 1};

    return rng_one_in(&talk.rng, 2) ? often[rng_below(&talk.rng, countof(often))]
                                    : rng_below(&talk.rng, TALK_REGION_OCTETS + 8);
}

uint32_t talk_key(void)
{
    uint32_t key = talk.key[rng_below(&talk.rng, TALK_REGIONS)];

    return talk_is_wrong(16) ? key - TALK_NEXT_KEY : key;
}

/* What is left of the receive for the Send that is said next, hardly ever more. */
static uint32_t octets_of_send(void)
{
    uint32_t capacity = talk.send_msg <= talk.receives ? talk.capacity[talk.send_msg % TALK_RECEIVES] : talk_octets();
    uint32_t left = capacity > talk.send_offset ? capacity - talk.send_offset : 0;

    if (talk_is_wrong(48))
        return left + 1;
    return rng_one_in(&talk.rng, 3) ? left : rng_below(&talk.rng, left + 1);
}

static struct seg say_send(void)
{
    bool is_last = !rng_one_in(&talk.rng, 8);
    struct seg seg = a_send(talk.send_msg, talk.send_offset, talk.payload, octets_of_send(), is_last ? SEG_LAST : 0);

    if (rng_one_in(&talk.rng, 4))
        seg.flags |= SEG_SOLICITED;
    if (talk_is_wrong(12)) {
        seg.flags |= SEG_INVALIDATE;
        seg.invalidate = talk_key();
        if (seg.invalidate == talk.key[TALK_SOURCE])
            seg.invalidate = 0; /* one end has answered a Read before, another has not */
    }
    talk.send_offset = is_last ? 0 : talk.send_offset + seg.length;
    talk.send_msg += is_last;
    return seg;
}

static struct seg say_write(void)
{
    uint32_t at = rng_below(&talk.rng, TALK_REGION_OCTETS), n = talk_octets();

    if (!talk_is_wrong(48) && n > TALK_REGION_OCTETS - at)
        n = TALK_REGION_OCTETS - at;
    return a_write(talk_is_wrong(32) ? talk_key() : talk.key[rng_below(&talk.rng, 2)],
                   talk_is_wrong(64) ? UINT64_MAX - rng_below(&talk.rng, 40) : at, talk.payload, n,
                   rng_one_in(&talk.rng, 12) ? 0 : SEG_LAST);
}

static struct seg say_read_request(void)
{
    struct seg_read read = {.sink_key = 1, .source_key = talk.key[TALK_SOURCE], .length = rng_below(&talk.rng, 64)};

    return a_read_request(talk.read_msg++, &read);
}

/* The answer to the oldest Read, or a part of it, or to none at all. */
static struct seg say_answer(void)
{
    struct asked *asked = &talk.asked[talk.answer];
    uint32_t n;
    struct seg seg;

    if (talk.answer == talk.reads)
        return rng_one_in(&talk.rng, 64) ? a_read_response(talk.key[0], 0, talk.payload, 4, SEG_LAST) : say_write();
    n = rng_one_in(&talk.rng, 2) ? asked->length - asked->done : rng_below(&talk.rng, asked->length - asked->done + 1);
    seg = a_read_response(asked->key, asked->offset + asked->done, talk.payload, n,
                          n == asked->length - asked->done ? SEG_LAST : 0);
    asked->done += n;
    talk.answer += asked->done == asked->length;
    return seg;
}

static struct seg say_immediate(void)
{
    return (struct seg){.op = SEG_IMMEDIATE,
                        .flags = SEG_LAST,
                        .msg = talk.send_msg++,
                        .immediate = rng_next(&talk.rng) << 32 | rng_below(&talk.rng, 2)};
}

/* One field is not what it was. */
static void spoil(struct seg *seg)
{
    static const uint32_t by[] = {1, 2, UINT32_MAX, 1u << 31, 1 << 16};
    uint32_t d = by[rng_below(&talk.rng, countof(by))];

    switch (rng_below(&talk.rng, 5)) {
    case 0:
        seg->msg += d;
        break;
    case 1:
        seg->offset += d;
        break;
    case 2:
        seg->key += d;
        break;
    case 3:
        seg->flags ^= SEG_LAST;
        break;
    default:
        seg->length = rng_below(&talk.rng, TALK_UNIT / 2);
        break;
    }
}

/* Changes an octet; its CRC is right all the same, or wrong. */
static void garble(uint8_t *unit, size_t n)
{
    unit[rng_below(&talk.rng, (uint32_t)n)] ^= (uint8_t)(1 << rng_below(&talk.rng, 8));
    if (rng_one_in(&talk.rng, 2))
        put32le(unit + n - 4, crc32c(0, unit, n - 4));
}

void talk_unit(void)
{
    uint32_t what = rng_below(&talk.rng, 16);
    struct seg seg = what < 7 && talk.send_msg <= talk.receives + talk_is_wrong(16) ? say_send()
                     : what < 12                                                    ? say_write()
                     : what < 14                                                    ? say_answer()
                     : what < 15 || talk.send_msg > talk.receives                   ? say_read_request()
                                                                                    : say_immediate();
    struct span span;
    size_t n;

    if (talk_is_wrong(64))
        spoil(&seg);
    rng_fill(&talk.rng, talk.payload, seg.length);
    span = (struct span){talk.payload, seg.op == SEG_READ_REQ || seg.op == SEG_IMMEDIATE ? 0 : seg.length};
    n = wire_iwarp.frame(&talk.peer, &seg, &span, 1, talk.stream + talk.said);
    if (talk_is_wrong(96))
        garble(talk.stream + talk.said, n);
    talk.said += n;
}
