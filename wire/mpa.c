/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.c - FPDUs with and without markers and CRC; trusts nothing but the length before the CRC is verified. */
#include "wire/mpa.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "core/fault.h"

/* Octets of the stream between two markers. */
enum { PIECE = MPA_INTERVAL - MPA_MARKER };

/* Pieces of at least this many octets are copied and summed in one pass. Smaller pieces are still cached when the CRC
 * of the whole FPDU is computed, and one call for all of them is faster. */
enum { FUSE_MIN = 1024 };

static uint32_t pad_octets(uint32_t ulpdu)
{
    return -(MPA_LENGTH + ulpdu) & 3;
}

uint64_t mpa_next_marker(uint64_t pos)
{
    return (pos + MPA_INTERVAL - 1) & ~(uint64_t)(MPA_INTERVAL - 1);
}

/* We count FPDUPTR from ULPDU_Length (RFC 5044 4.3). A reader of mpa.txt may count from a marker in front of the FPDU
 * instead; the pointer then points to a place where only a marker can be, and the header follows it. */
uint64_t mpa_header_of(uint64_t marker, uint16_t fpduptr)
{
    uint64_t header = marker - (fpduptr & 0xfffc);

    return header % MPA_INTERVAL ? header : header + MPA_MARKER;
}

/* A marker due immediately behind the CRC belongs to the next FPDU. */
size_t mpa_fpdu_octets(const struct mpa_half *half, uint32_t ulpdu)
{
    size_t n = MPA_LENGTH + ulpdu + pad_octets(ulpdu) + MPA_CRC;
    size_t before = (size_t)(mpa_next_marker(half->pos) - half->pos);

    if (!half->markers || n <= before)
        return n;
    return n + (n - before + PIECE - 1) / PIECE * MPA_MARKER;
}

uint32_t mpa_mulpdu(uint32_t emss, bool markers)
{
    uint32_t most = markers ? emss / MPA_INTERVAL + (emss % MPA_INTERVAL != 0) : 0;
    uint32_t overhead = MPA_LENGTH + MPA_CRC + MPA_MARKER * most + emss % 4;

    if (emss < overhead + MPA_MULPDU_MIN)
        return MPA_MULPDU_MIN;
    return emss - overhead < MPA_ULPDU_MAX ? emss - overhead : MPA_ULPDU_MAX;
}

/* --- receiving ----------------------------------------------------------------------------------------------- */

/* A complete FPDU: octets in front of ULPDU_Length (a marker), octets in all, and the value of ULPDU_Length. */
struct unit {
    size_t lead, octets;
    uint32_t length;
};

/* Do all markers of the FPDU at `p` point to its header? Their RESERVED bits are ignored. */
static bool markers_agree(const struct mpa_half *half, const struct unit *unit, const uint8_t *p)
{
    uint64_t header = half->pos + unit->lead;
    size_t at = (size_t)(mpa_next_marker(header) - half->pos);

    if (unit->lead && mpa_header_of(half->pos, get16(p + 2)) != header)
        return false;
    for (; at < unit->octets; at += MPA_INTERVAL)
        if (mpa_header_of(half->pos + at, get16(p + at + 2)) != header)
            return false;
    return true;
}

/* Removes the markers inside the FPDU. */
static void close_up(const struct mpa_half *half, const struct unit *unit, uint8_t *p)
{
    size_t at = (size_t)(mpa_next_marker(half->pos + unit->lead) - half->pos);
    uint8_t *to = p + at;

    for (; at < unit->octets; at += MPA_INTERVAL) {
        size_t n = unit->octets - at - MPA_MARKER < PIECE ? unit->octets - at - MPA_MARKER : PIECE;

        memmove(to, p + at + MPA_MARKER, n);
        to += n;
    }
}

/* Does the checks of mpa_decode() but for the markers, and changes nothing. */
static inline int mpa_check(const struct mpa_half *half, const uint8_t *p, size_t n, struct unit *unit, size_t *need)
{
    unit->lead = half->markers && half->pos % MPA_INTERVAL == 0 ? MPA_MARKER : 0;
    unit->length = n >= unit->lead + MPA_LENGTH ? get16(p + unit->lead) : 0;
    if (unit->length > MPA_ULPDU_MAX)
        return -FAULT_LENGTH;
    unit->octets = mpa_fpdu_octets(half, unit->length);
    if (n < unit->octets) {
        *need = unit->octets;
        return 0;
    }
    /* The CRC is the only little-endian field on the wire (figures 5 and 6 of mpa.txt; as in iSCSI). */
    if (half->crc && crc32c(0, p, unit->octets - MPA_CRC) != get32le(p + unit->octets - MPA_CRC))
        return -FAULT_CRC;
    return (int)unit->octets;
}

int mpa_decode(const struct mpa_half *half, uint8_t *p, size_t n, struct span *ulpdu, size_t *need)
{
    struct unit unit;
    int octets = mpa_check(half, p, n, &unit, need);

    assert(half->pos % 4 == 0);
    if (octets <= 0)
        return octets;
    if (half->markers && !markers_agree(half, &unit, p))
        return -FAULT_MARKER;
    if (half->markers)
        close_up(half, &unit, p);
    *ulpdu = (struct span){.at = p + unit.lead + MPA_LENGTH, .length = unit.length};
    return octets;
}

int mpa_look(const struct mpa_half *half, const uint8_t *p, size_t n, uint8_t *head, size_t capacity, uint32_t *ulpdu)
{
    struct unit unit;
    size_t need, at;
    int octets = half->pos % 4 ? 0 : mpa_check(half, p, n, &unit, &need);

    if (octets <= 0)
        return octets;
    if (half->markers && !markers_agree(half, &unit, p))
        return -FAULT_MARKER;
    *ulpdu = unit.length;
    at = unit.lead + MPA_LENGTH;
    for (size_t i = 0; i < capacity && i < unit.length; i++) {
        if (half->markers && (half->pos + at) % MPA_INTERVAL == 0)
            at += MPA_MARKER;
        head[i] = p[at++];
    }
    return octets;
}

size_t mpa_find(const struct mpa_half *half, const uint8_t *p, size_t n)
{
    size_t at = (size_t)(mpa_next_marker(half->pos) - half->pos);

    for (; half->markers && at < n && n - at >= MPA_MARKER; at += MPA_INTERVAL) {
        uint64_t marker = half->pos + at, begin = mpa_header_of(marker, get16(p + at + 2));

        /* A marker in front of its header is part of the FPDU. */
        if (begin % MPA_INTERVAL == MPA_MARKER)
            begin -= MPA_MARKER;
        if (begin >= half->pos && begin <= marker)
            return (size_t)(begin - half->pos);
    }
    return n;
}

/* --- sending ------------------------------------------------------------------------------------------------- */

/* An FPDU being written: the next octet goes to `next`, at stream position `pos`; `crc` covers the octets before
 * `summed`. */
struct writer {
    uint8_t *next, *summed;
    uint64_t pos, header;
    uint32_t crc;
};

static void put_marker(struct writer *w)
{
    if (w->pos % MPA_INTERVAL)
        return;
    /* The marker in front of the header has the pointer 0. */
    w->next = put16(put16(w->next, 0), w->pos < w->header ? 0 : (uint16_t)(w->pos - w->header));
    w->pos += MPA_MARKER;
}

static void put_interleaved(struct writer *w, const uint8_t *p, size_t n)
{
    while (n) {
        size_t space, now;

        put_marker(w);
        space = MPA_INTERVAL - (size_t)(w->pos % MPA_INTERVAL);
        now = n < space ? n : space;
        w->next = put_bytes(w->next, p, now);
        w->pos += now;
        p += now;
        n -= now;
    }
}

static void mpa_sum(struct writer *w)
{
    w->crc = crc32c(w->crc, w->summed, (size_t)(w->next - w->summed));
    w->summed = w->next;
}

static void mpa_put(bool crc, struct writer *w, const uint8_t *p, size_t n)
{
    if (crc && n >= FUSE_MIN) {
        mpa_sum(w);
        w->crc = crc32c_copy(w->crc, w->next, p, n);
        w->summed = w->next += n;
    } else {
        w->next = put_bytes(w->next, p, n);
    }
}

/* Returns the octets of a ULPDU: `ready` and those of the pieces. */
static uint32_t ulpdu_octets(uint32_t ready, const struct span *piece, unsigned pieces)
{
    for (unsigned i = 0; i < pieces; i++)
        ready += piece[i].length;
    assert(ready <= MPA_ULPDU_MAX);
    return ready;
}

size_t mpa_complete(bool crc, uint8_t *out, uint32_t ready, const struct span *piece, unsigned pieces)
{
    struct writer w = {.next = out + MPA_LENGTH + ready, .summed = out};
    uint32_t length = ulpdu_octets(ready, piece, pieces);

    put16(out, (uint16_t)length);
    for (unsigned i = 0; i < pieces; i++)
        mpa_put(crc, &w, piece[i].at, piece[i].length);
    put32le(w.next, 0); /* the CRC follows the pad and overwrites the rest */
    w.next += pad_octets(length);
    if (crc)
        mpa_sum(&w);
    return (size_t)(put32le(w.next, w.crc) - out);
}

size_t mpa_encode(const struct mpa_half *half, uint8_t *out, const struct span *piece, unsigned pieces)
{
    static const uint8_t zeros[3];
    size_t lead = half->pos % MPA_INTERVAL == 0 ? MPA_MARKER : 0;
    struct writer w = {.next = out, .summed = out, .pos = half->pos, .header = half->pos + lead};
    uint32_t length = ulpdu_octets(0, piece, pieces);
    uint8_t header[MPA_LENGTH];

    if (!half->markers)
        return mpa_complete(half->crc, out, 0, piece, pieces);
    put16(header, (uint16_t)length);
    put_interleaved(&w, header, sizeof(header));
    for (unsigned i = 0; i < pieces; i++)
        put_interleaved(&w, piece[i].at, piece[i].length);
    put_interleaved(&w, zeros, pad_octets(length));
    put_marker(&w);
    if (half->crc)
        mpa_sum(&w);
    return (size_t)(put32le(w.next, w.crc) - out);
}

size_t mpa_tail(const struct mpa_half *half, uint8_t *tail, uint32_t ulpdu, uint32_t crc)
{
    uint32_t pad = pad_octets(ulpdu);

    put32le(tail, 0);
    put32le(tail + pad, half->crc ? crc32c(crc, tail, pad) : 0);
    return pad + MPA_CRC;
}
