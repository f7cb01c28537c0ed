/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* marked.h - a stream of a net without a device: a test brings its segments, in any order and with any option, and what
 * the stream sends is lost. */
#ifndef RDDP_TESTS_MARKED_H
#define RDDP_TESTS_MARKED_H

#include "stream/inner.h"

enum { MARKED_WINDOW = 16384, MARKED_HEAD = 52 };

struct rddp_stream *marked_open(void);
/* An arriving segment: `length` octets of position `position` on, the transfer's octets first if `o` has any. `o` NULL:
 * it has no option. */
void marked_segment(struct rddp_stream *s, uint64_t position, const uint8_t *octets, uint32_t length,
                    const struct tcpopt *o);
/* The option that all `length` octets are at `offset` of the transfer `rid`. */
struct tcpopt marked_option(uint64_t rid, uint32_t offset, uint32_t length);
void marked_close(struct rddp_stream *s); /* and its net */

#endif
