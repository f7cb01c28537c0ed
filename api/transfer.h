/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transfer.h - octets are moved between a link and the connection on it. For the holder of the endpoint; receiving for
 * the driver, whose stage it needs. */
#ifndef RDDP_API_TRANSFER_H
#define RDDP_API_TRANSFER_H

#include "api/endpoint.h"

enum { TURN_OCTETS = 1 << 20 /* read from one link, or sent to it, before the others get their turn */ };

/* Is there a use for more octets? */
bool transfer_wants(const struct endpoint *endpoint);

/* Reads for one turn. False if nothing came. */
bool transfer_receive(struct endpoint *endpoint);

/* The connection has another look at what it could not take, wherever that lies by now. */
void transfer_eat_again(struct endpoint *endpoint);

/* Fills and sends once. False if the link takes no more, or there is nothing. */
bool transfer_send(struct endpoint *endpoint, uint64_t now_us);
void transfer_take_out_back(struct endpoint *endpoint);

/* The link's segment size, if it was not looked up lately. */
void transfer_look_up_emss(struct endpoint *endpoint, uint64_t now_us);

#endif
