/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receives.h - serves the endpoints on which a message waits for a receive. */
#ifndef RDDP_DRIVE_RECEIVES_H
#define RDDP_DRIVE_RECEIVES_H

struct loop;

/* If a receive was posted that one of the loop's endpoints may take (waiting_announce()): lets all that wait try again,
 * longest first. Those that get nothing keep their order, and come before those that did. By the driver, who holds no
 * endpoint. */
void receives_serve_if_asked(struct loop *loop);

#endif
