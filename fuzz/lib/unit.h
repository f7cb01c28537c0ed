/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unit.h - encodes a decoded segment as if it were ours, and decodes it again. */
#ifndef FUZZ_LIB_UNIT_H
#define FUZZ_LIB_UNIT_H

#include "wire/wire.h"

/* `w` is the state in which the peer's stream was decoded to `seg`. The segment is framed whole, and also around its
 * payload if the wire can do that. Both must give the same octets, and decoding them the same segment. */
void unit_send_back(const struct wire *wire, const struct wire_state *agreed, const struct seg *seg);

#endif
