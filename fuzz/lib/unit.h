/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unit.h - what a wire has decoded is sent as if it were ours, and decoded once more. */
#ifndef FUZZ_LIB_UNIT_H
#define FUZZ_LIB_UNIT_H

#include "wire/wire.h"

/* `w` is how the peer's stream was read, `seg` what came of it. It is framed whole, and around its payload if the wire
 * can do that: the octets are the same both times, and the segment is when they are decoded. */
void unit_send_back(const struct wire *wire, const struct wire_state *w, const struct seg *seg);

#endif
