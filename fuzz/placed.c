/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* placed.c - records whose octets are plain or placed, under right and wrong RIDs: each message with its item is what
 * was in the stream, and no error comes but those that record.h names.
 *
 * Input: steps of an octet that says what the next octets are (0x80: placed, 0x40: of another RID; the rest is their
 * number), and these octets. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/placed.h"
#include "rpc/xdrbytes.h"
#include <rddp/stream.h>

enum { MESSAGE_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

/* What the message is without placing, and what it is with it. */
static struct record_rx plain;
static struct placed_rx placed;

static uint64_t rid_of(bool other)
{
    struct xdr_in in = {.at = plain.data, .left = 4};

    return rddp_rid_nfs((plain.length >= 4 ? xdr_get32(&in) : 0) + other, 0);
}

static void compare(void)
{
    struct stream_item item;
    size_t length, expected;
    uint8_t *message = placed_take(&placed, &length, &item), *whole = record_take(&plain, &expected), *joined;

    assert(message && stream_length(length, &item, item.length > 0) == expected);
    joined = malloc(expected + 1);
    assert(joined);
    stream_join(joined, message, length, &item, item.length > 0);
    /* The roundup of an item is zeros, whatever was sent. */
    assert(!memcmp(joined, whole, item.length ? item.position + item.length : expected));
    free(joined);
    free(message);
    free(whole);
}

/* Feeds one step. Returns false after an error. */
static bool feed(const uint8_t *p, size_t n, bool is_placed, bool other)
{
    while (n) {
        size_t eaten, same;
        int error = is_placed ? placed_eat(&placed, p, n, rid_of(other), &eaten) : record_eat(&placed.rx, p, n, &eaten);
        int expected = record_eat(&plain, p, n, &same);

        assert(error == expected || error < 0);
        if (error < 0 || expected < 0)
            return false;
        assert(eaten == same);
        if (error)
            compare();
        p += eaten;
        n -= eaten;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    uint8_t *copy = malloc(length + 1);
    bool good = copy;

    record_init(&plain, MESSAGE_MAX);
    placed = (struct placed_rx){.rx.max = MESSAGE_MAX};
    if (copy)
        memcpy(copy, input, length);
    for (size_t at = 0; good && at + 1 < length;) {
        uint8_t what = copy[at++];
        size_t n = (what & 0x3fU) + 1 < length - at ? (what & 0x3fU) + 1 : length - at;

        good = feed(copy + at, n, what & 0x80, what & 0x40);
        at += n;
    }
    record_fini(&plain);
    record_fini(&placed.rx);
    free(copy);
    return 0;
}
