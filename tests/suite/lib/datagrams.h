/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.h - two queue pairs of RoCE over loopback that send datagrams to each other. */
#ifndef RDDP_TESTS_SUITE_DATAGRAMS_H
#define RDDP_TESTS_SUITE_DATAGRAMS_H

#include "tests/suite/lib/by_hand.h"

enum { QKEY = 0x11111111, GRH = RDDP_GRH_OCTETS, AT = 1 << 20 /* of receives */, IMMEDIATE = 0x12345678 };

extern struct hands h;
extern struct rddp_ah *way[2]; /* from each end to the other */

/* Opens both ends in RTS, at this address. */
void datagrams_open(const char *address);
void datagrams_close(void);

/* Makes a signalled Send of end `from` to the other, to be changed and posted. It is valid until the next call. */
struct rddp_send_wr *datagram(unsigned from, uint32_t octets);

/* Posts a request of this end. datagram_send() also takes its completion. */
int datagram_post(unsigned from, struct rddp_send_wr *wr);
void datagram_send(unsigned from, struct rddp_send_wr *wr);

enum rddp_ib_state ib_state_of(unsigned end);

#endif
