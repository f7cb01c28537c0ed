/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt_map.h - records which parts of an outgoing stream belong to transfers, and cuts segments accordingly. */
#ifndef RDDP_WIRE_TCPOPT_MAP_H
#define RDDP_WIRE_TCPOPT_MAP_H

#include "wire/tcpopt.h"

/* A part of the stream; it ends where the next section begins. */
struct tcpopt_section {
    uint64_t from, rid;
    bool message; /* the section starts with the first octet of a message */
    bool data;    /* the section is data of transfer `rid`; if false, the fields below are unused */
    bool unsolicited, has_total;
    uint32_t buffer_offset, total;
};

/* The sections of the unacknowledged stream, in a ring whose size is a power of two. */
struct tcpopt_map {
    struct tcpopt_section *ring;
    uint32_t capacity, head, count;
    uint64_t end; /* stream position behind the last section */
    bool fold;    /* octets after a piece of data may share its segment even if a message begins there */
};

/* Initialises an empty map. `slots` holds `sections` entries (a power of two), stays the caller's and must outlive the
 * map. */
void tcpopt_map_init(struct tcpopt_map *m, struct tcpopt_section *slots, uint32_t sections);
/* Appends `length` octets described by *s; the map sets `from`. Returns false if the ring is full. A transfer of no
 * octets (a failed READ, 5.1.2) is a section of length 0 before others. */
bool tcpopt_map_add(struct tcpopt_map *m, const struct tcpopt_section *s, uint64_t length);
/* Drops the sections before `position`, which must not be queried any more. */
void tcpopt_map_trim(struct tcpopt_map *m, uint64_t position);

/* Returns the length of the segment that starts at `position`. `ready` octets are waiting; the segment and its option
 * have `capacity` octets. A segment holds contiguous data of at most one transfer, and a message starts a new segment
 * where possible. */
uint32_t tcpopt_map_cut(const struct tcpopt_map *m, uint64_t position, uint32_t ready, uint32_t capacity);
/* Fills *o with the option for [position, position + length), a segment that tcpopt_map_cut() returned or part of one.
 * Returns false if that segment needs no option. */
bool tcpopt_map_describe(const struct tcpopt_map *m, uint64_t position, uint32_t length, struct tcpopt *o);

#endif
