/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reclaim.h - copies what endpoints still send from regions that were invalidated. */
#ifndef RDDP_ENDPOINT_RECLAIM_H
#define RDDP_ENDPOINT_RECLAIM_H

#include "endpoint/loop.h"

/* By the driver, who holds no endpoint: afterwards no endpoint of this loop has a span of a region that was out of
 * reach of new readers before, and whose earlier readers had left. */
void reclaim_spans(struct loop *loop);

/* The same if it was asked for by loops_ask_for_spans(). */
void reclaim_if_asked(struct loop *loop);

#endif
