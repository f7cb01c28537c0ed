/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* record.c - joins fragments to messages. The buffer for a fragment is allocated when its mark is complete, so that the
 * octets can be read to their place; the kernel backs it with memory only as they arrive. */
#include "nfs/record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/xdrbytes.h"

void record_init(struct record_rx *rx, size_t max)
{
    *rx = (struct record_rx){.max = max};
}

void record_fini(struct record_rx *rx)
{
    free(rx->data);
    *rx = (struct record_rx){.max = rx->max};
}

bool record_is_open(const struct record_rx *rx)
{
    return rx->marked || rx->fragments;
}

static bool is_whole(const struct record_rx *rx)
{
    return rx->fragments && rx->last && rx->left == 0 && rx->marked == 0;
}

/* Starts a fragment: its mark is complete. */
static int open_fragment(struct record_rx *rx)
{
    struct xdr_in in = {.at = rx->mark, .left = RECORD_MARK};
    uint32_t word = xdr_get32(&in), n = word & ~RECORD_LAST;

    rx->marked = 0;
    rx->last = word & RECORD_LAST;
    if (++rx->fragments > RECORD_FRAGMENTS || (n == 0 && !rx->last))
        return -EBADMSG;
    if (n > rx->max - rx->length - rx->skipped)
        return -EMSGSIZE;
    if (n > rx->capacity - rx->length || !rx->data) {
        size_t space = rx->length + n;
        uint8_t *data = realloc(rx->data, space ? space : 1);

        if (!data)
            return -ENOMEM;
        rx->data = data;
        rx->capacity = space;
    }
    rx->left = n;
    return is_whole(rx);
}

int record_eat(struct record_rx *rx, const uint8_t *from, size_t n, size_t *eaten)
{
    int error = 0;

    assert(!is_whole(rx));
    *eaten = 0;
    while (error == 0 && *eaten < n) {
        size_t part = n - *eaten;

        if (rx->left) {
            part = part < rx->left ? part : rx->left;
            memcpy(rx->data + rx->length, from + *eaten, part);
            error = record_put(rx, part);
        } else {
            part = part < RECORD_MARK - rx->marked ? part : RECORD_MARK - rx->marked;
            memcpy(rx->mark + rx->marked, from + *eaten, part);
            rx->marked += (unsigned)part;
            error = rx->marked == RECORD_MARK ? open_fragment(rx) : 0;
        }
        *eaten += part;
    }
    return error;
}

size_t record_space(struct record_rx *rx, uint8_t **at)
{
    *at = rx->left ? rx->data + rx->length : NULL;
    return rx->left;
}

int record_put(struct record_rx *rx, size_t n)
{
    assert(n <= rx->left);
    rx->length += n;
    rx->left -= (uint32_t)n;
    return is_whole(rx);
}

int record_skip(struct record_rx *rx, size_t n)
{
    assert(n <= rx->left);
    rx->skipped += n;
    rx->left -= (uint32_t)n;
    return is_whole(rx);
}

bool record_insert(struct record_rx *rx, size_t at, const void *from, size_t n)
{
    size_t space = rx->length + n + rx->left;

    assert(at <= rx->length && n <= rx->skipped);
    if (space > rx->capacity) {
        uint8_t *data = realloc(rx->data, space);

        if (!data)
            return false;
        rx->data = data;
        rx->capacity = space;
    }
    memmove(rx->data + at + n, rx->data + at, rx->length - at);
    memcpy(rx->data + at, from, n);
    rx->length += n;
    rx->skipped -= n;
    return true;
}

uint8_t *record_take(struct record_rx *rx, size_t *length)
{
    uint8_t *data = rx->data;

    assert(is_whole(rx) && data);
    *length = rx->length;
    *rx = (struct record_rx){.max = rx->max};
    return data;
}

void record_mark(uint8_t mark[RECORD_MARK], size_t length)
{
    struct xdr_out out = {.at = mark, .left = RECORD_MARK};

    assert(length < RECORD_LAST);
    xdr_put32(&out, RECORD_LAST | (uint32_t)length);
}
