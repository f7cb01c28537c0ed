/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transfer.h - moves octets between a link and the connection on it.
 *
 * Every call needs the endpoint's doorbell. transfer_receive() and transfer_eat_again() also need the loop lock,
 * because all connections of a loop share its stage. */
#ifndef RDDP_ENDPOINT_TRANSFER_H
#define RDDP_ENDPOINT_TRANSFER_H

#include <errno.h>

#include "endpoint/endpoint.h"

/* Read from one link, or sent to it, before the others get their turn: a MiB, its headers and the reply behind it. */
enum { TURN_OCTETS = (1 << 20) + (1 << 16) };

/* Why a connection is lost whose link ended with this errno. */
static inline enum fault transfer_fault_of(int error)
{
    return error == -ETIMEDOUT ? FAULT_STALLED : FAULT_LOST;
}

/* Does the connection want more octets? */
bool transfer_wants(const struct endpoint *endpoint);

/* Reads for one turn. False if nothing came. */
bool transfer_receive(struct endpoint *endpoint);

/* Offers the connection again the octets that it could not take, from the stage or from `carry`. */
void transfer_eat_again(struct endpoint *endpoint);

/* Octets that were read for the connection and that it has not taken: how many, and moved to `to`. For the driver. */
uint32_t transfer_staged(const struct endpoint *endpoint);
void transfer_unstage(struct endpoint *endpoint, uint8_t *to);

/* Lends the connection an `out` if it has none, lets it fill that, and sends once. False if the link takes no more, or
 * there is nothing to send. */
bool transfer_send(struct endpoint *endpoint, uint64_t now_us);

/* The same for what was posted, without a clock, if nothing else happens on the connection. True: all has left, and
 * *now_us is the time. False: a turn goes on from here. */
bool transfer_post(struct endpoint *endpoint, uint64_t *now_us);

/* Reads what is left of a link that takes no more (endpoint->refused), and ends the connection. For the driver. */
void transfer_end_refused(struct endpoint *endpoint);

/* Takes `out` back into the pool of the loop, and drops what is in it. */
void transfer_take_out_back(struct endpoint *endpoint);

/* Asks the link for its segment size, unless it did so within the last EMSS_AGE_US. */
void transfer_look_up_emss(struct endpoint *endpoint, uint64_t now_us);

#endif
