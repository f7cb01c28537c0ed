/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.h - MPA's framing: turns a ULPDU into an FPDU of a stream and back (mpa.txt 6 and 7, RFC 5044 4). */
#ifndef RDDP_WIRE_MPA_H
#define RDDP_WIRE_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum {
    MPA_LENGTH = 2, /* octets of the FPDU's header, the field ULPDU_Length */
    MPA_CRC = 4,
    MPA_MARKER = 4,
    MPA_INTERVAL = 512, /* octets from the start of one marker to the start of the next */
    MPA_TAIL_MAX = 3 + MPA_CRC,
    MPA_MULPDU_MIN = 128,
    MPA_ULPDU_MAX = 64768,
};

/* One direction of a connection, positioned at its next FPDU. Positions count octets from the start of framing, where
 * the first marker is. */
struct mpa_half {
    uint64_t pos;
    bool markers;
    bool crc;
};

/* Returns the position of the first marker at or after `pos`. */
uint64_t mpa_next_marker(uint64_t pos);

/* Returns the position of the ULPDU_Length that a marker at position `marker` with this FPDUPTR points to. */
uint64_t mpa_header_of(uint64_t marker, uint16_t fpduptr);

/* Returns the octets of an FPDU at half->pos that carries a ULPDU of `ulpdu` octets: header, pad, CRC and markers. */
size_t mpa_fpdu_octets(const struct mpa_half *half, uint32_t ulpdu);

/* Returns the largest ULPDU for TCP segments of `emss` octets (mpa.txt 7.3.1, RFC 5044 4.5), from 128 to 64768. */
uint32_t mpa_mulpdu(uint32_t emss, bool markers);

/* Decodes the FPDU at `p`, of which `n` octets have arrived.
 * > 0: the octets consumed. *ulpdu is verified and contiguous in `p`; markers were removed in place.
 * 0: more octets are needed. *need is the total needed as far as it is known; nothing was changed.
 * < 0: minus FAULT_LENGTH, FAULT_CRC or FAULT_MARKER. */
int mpa_decode(const struct mpa_half *half, uint8_t *p, size_t n, struct span *ulpdu, size_t *need);

/* Like mpa_decode(), but changes nothing and returns 0 if no FPDU can begin at half->pos. *ulpdu is the length of the
 * ULPDU; `head` receives its first octets without markers, at most `capacity` of them. */
int mpa_look(const struct mpa_half *half, const uint8_t *p, size_t n, uint8_t *head, size_t capacity, uint32_t *ulpdu);

/* Returns the offset, among the `n` octets at stream position half->pos, of the first FPDU that a marker among them
 * points to; `n` if there is none. half->pos need not be the start of an FPDU. */
size_t mpa_find(const struct mpa_half *half, const uint8_t *p, size_t n);

/* Writes the FPDU for the ULPDU in the pieces, at most MPA_ULPDU_MAX octets in all, to `out`. Returns its octets. */
size_t mpa_encode(const struct mpa_half *half, uint8_t *out, const struct span *piece, unsigned pieces);

/* The same without markers, with a CRC or 0 in its place, where the first `ready` octets of the ULPDU have been written
 * to out + MPA_LENGTH. */
size_t mpa_complete(bool crc, uint8_t *out, uint32_t ready, const struct span *piece, unsigned pieces);

/* Writes what follows a ULPDU without markers: the pad and the CRC. `ulpdu` is the length of the ULPDU and `crc` the
 * CRC of all octets from ULPDU_Length to its end. Returns the octets written, at most MPA_TAIL_MAX. */
size_t mpa_tail(const struct mpa_half *half, uint8_t *tail, uint32_t ulpdu, uint32_t crc);

#endif
