/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt_map.h - which parts of an outgoing stream belong to transfers, and how it is cut into segments for that. */
#ifndef RDDP_WIRE_TCPOPT_MAP_H
#define RDDP_WIRE_TCPOPT_MAP_H

#include "wire/tcpopt.h"

/* Part of the stream, up to where the next section begins. */
struct tcpopt_section {
    uint64_t from, rid;
    bool message; /* begins with the first octet of a message */
    bool data;    /* of the transfer `rid`; else the rest says nothing */
    bool unsolicited, has_total;
    uint32_t buffer_offset, total;
};

/* The sections of what is not acknowledged, in a ring of a power of two. */
struct tcpopt_map {
    struct tcpopt_section *ring;
    uint32_t capacity, head, count;
    uint64_t end; /* of the last section */
    bool fold;    /* what follows a piece of data may ride behind it, though a message begins there */
};

void tcpopt_map_init(struct tcpopt_map *m, struct tcpopt_section *room, uint32_t sections);
/* `length` more octets of this kind follow; s->from is set here. False: there is no room. A transfer of no octets
 * (failed READ, 5.1.2) is a section of length 0 in front of others. */
bool tcpopt_map_add(struct tcpopt_map *m, const struct tcpopt_section *s, uint64_t length);
/* Nothing before `position` will be asked for again. */
void tcpopt_map_trim(struct tcpopt_map *m, uint64_t position);

/* How long the segment from `position` is to be, of `ready` octets that wait, in `room` octets with its option: data of
 * one transfer that lies in one piece, and a message begins a segment where it can. */
uint32_t tcpopt_map_cut(const struct tcpopt_map *m, uint64_t position, uint32_t ready, uint32_t capacity);
/* The option of [position, position + length), which is such a segment or part of one. False: it has none. */
bool tcpopt_map_describe(const struct tcpopt_map *m, uint64_t position, uint32_t length, struct tcpopt *o);

#endif
