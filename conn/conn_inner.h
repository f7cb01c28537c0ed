/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_inner.h - what conn.c and start.c share; nobody else includes it. */
#ifndef RDDP_CONN_CONN_INNER_H
#define RDDP_CONN_CONN_INNER_H

#include "conn/conn.h"

/* Start-up octets: eaten, 0 for more, or minus a fault after which the connection is over. */
int start_rx(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us);

/* The unit at `p` whose payload is read elsewhere: octets eaten, which are those around it, or 0 for more. */
int gap_close(struct conn *c, struct seg *seg, const uint8_t *p, size_t n);

#endif
