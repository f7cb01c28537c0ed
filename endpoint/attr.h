/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.h - checks wire attributes, and converts them for the engine. */
#ifndef RDDP_ENDPOINT_ATTR_H
#define RDDP_ENDPOINT_ATTR_H

#include "endpoint/objects.h"

/* wire_named() returns the wire of valid attributes; NULL for SCTP, which is not a stream. wire_is_sane(): are the
 * attributes valid? */
const struct wire *wire_named(enum rddp_wire name);

bool wire_is_sane(const struct rddp_wire_attr *wire);

/* Does it travel on a stream of octets? */
bool wire_is_stream(const struct rddp_wire_attr *wire);

/* Can this wire express `attr`? Without start-up frames it cannot carry private data. */
bool wire_says(const struct wire *wire, const struct rddp_conn_attr *attr);

/* Converts the attributes for the engine, except IRD and ORD. */
struct conn_attr wire_conn_attr(const struct rddp_wire_attr *wire);
/* Returns the smaller of the two. */
uint16_t at_most(uint16_t asked, uint32_t capacity);

#endif
