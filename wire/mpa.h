/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.h - MPA's framing: a ULPDU to an FPDU of a stream and back (mpa.txt 6 and 7, RFC 5044 4). */
#ifndef RDDP_WIRE_MPA_H
#define RDDP_WIRE_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum {
    MPA_LENGTH = 2, /* octets of the FPDU's header, ULPDU_Length */
    MPA_CRC = 4,
    MPA_MARKER = 4,
    MPA_INTERVAL = 512, /* octets from the beginning of one marker to that of the next */
    MPA_TAIL_MAX = 3 + MPA_CRC,
    MPA_MULPDU_MIN = 128,
    MPA_ULPDU_MAX = 64768,
};

/* One direction of a connection at its next FPDU. Positions count from where framing began, and so from the first
 * marker. */
struct mpa_half {
    uint64_t pos;
    bool markers;
    bool crc;
};

/* Where the first marker at or behind `pos` begins. */
uint64_t mpa_next_marker(uint64_t pos);

/* Where the ULPDU_Length is to which a marker at `marker` points. */
uint64_t mpa_header_of(uint64_t marker, uint16_t fpduptr);

/* Octets of the FPDU around a ULPDU of `ulpdu` octets. */
size_t mpa_fpdu_octets(const struct mpa_half *half, uint32_t ulpdu);

/* The largest ULPDU for segments of `emss` octets (mpa.txt 7.3.1, RFC 5044 4.5), within its limits of 128 and 64768. */
uint32_t mpa_mulpdu(uint32_t emss, bool markers);

/* Takes the FPDU at `p`. > 0: octets eaten, and *ulpdu lies in one piece in `p`, verified; 0: more are needed, *need in
 * all as far as known, and nothing has changed; < 0: minus FAULT_LENGTH, FAULT_CRC or FAULT_MARKER. */
int mpa_decode(const struct mpa_half *half, uint8_t *p, size_t n, struct span *ulpdu, size_t *need);

/* The same, and nothing changes, nor does a position matter that cannot be an FPDU's. Of the ULPDU its length, and its
 * first octets without markers: `room` of them, or as many as there are. */
int mpa_look(const struct mpa_half *half, const uint8_t *p, size_t n, uint8_t *head, size_t capacity, uint32_t *ulpdu);

/* Where in the `n` octets that begin at half->pos, wherever that is, the first FPDU begins to which a marker among them
 * points; or n. */
size_t mpa_find(const struct mpa_half *half, const uint8_t *p, size_t n);

/* Writes the FPDU around the pieces of a ULPDU, at most MPA_ULPDU_MAX octets in all. Returns its octets. */
size_t mpa_encode(const struct mpa_half *half, uint8_t *out, const struct span *piece, unsigned pieces);

/* Writes what stands behind a ULPDU without markers: the pad, and the CRC that goes on from `crc`, the one of all
 * octets from ULPDU_Length on. Returns the octets, at most MPA_TAIL_MAX. */
size_t mpa_tail(const struct mpa_half *half, uint8_t *tail, uint32_t ulpdu, uint32_t crc);

#endif
