/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* term.h - the Terminate header: encodes a fault as code and copied headers, and explains a peer's (RFC 5040 4.8). */
#ifndef RDDP_WIRE_TERM_H
#define RDDP_WIRE_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "wire/wire.h"

/* term_code() returns this for a fault that is not reported to the peer. It differs from every code. */
enum { TERM_SILENCE = 0xffff };

/* Returns the code, 0xLTCC (layer, type, code), for `fault` on a segment of `op`. `started`: an FPDU was sent or
 * received. */
unsigned term_code(enum fault fault, enum seg_op op, bool started);

/* Writes the Terminate header for `code` to `buffer` (WIRE_TERM_MAX octets) and returns its octets. `about` is the
 * segment that the fault is about, or NULL. Copies as much of its header as RFC 5040 figure 10 asks for and as is
 * available. */
size_t term_encode(uint8_t *buffer, unsigned code, const struct seg *about);

/* Decodes a peer's Terminate header, in the bit order of the RFC or in that of Linux siw, which swaps nibbles and bits.
 * `first`: it came in the first FPDU of the stream, where start-up codes are expected. Always fills *blame. */
void term_explain(const uint8_t *p, size_t n, bool first, struct wire_blame *blame);

#endif
