/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* term.h - the Terminate header: a fault to its code and copies of headers, and a peer's back to words (RFC 5040 4.8).
 */
#ifndef RDDP_WIRE_TERM_H
#define RDDP_WIRE_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "wire/wire.h"

/* What term_code() says of a fault of which the peer is told nothing. No code is like it. */
enum { TERM_SILENCE = 0xffff };

/* The code, 0xLTCC (layer, type, code), for a fault on a segment of `op`. `started`: an FPDU has come or gone. */
unsigned term_code(enum fault fault, enum seg_op op, bool started);

/* Writes the Terminate header for `code` into `room` (WIRE_TERM_MAX octets) and returns its octets. `about` is the
 * segment it is about or NULL; as much of its header is copied as RFC 5040 figure 10 wants and as there is. */
size_t term_encode(uint8_t *buffer, unsigned code, const struct seg *about);

/* Reads a peer's Terminate header, in the order of the RFC or in that of Linux siw, whose nibbles and bits are swapped.
 * `first`: it is in the first FPDU of its stream, where codes of the start-up are to be expected. */
void term_explain(const uint8_t *p, size_t n, bool first, struct wire_blame *blame);

#endif
