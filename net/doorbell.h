/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell.h - a lock that can be rung: who wants work done takes it if it is free, else its holder does the work. */
#ifndef RDDP_NET_DOORBELL_H
#define RDDP_NET_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is free and not rung. */
struct doorbell {
    _Atomic uint32_t word;
};

/* Rings. True: it was free, and the caller holds it now. False: its holder sees the bell before he lets go; the caller
 * must not touch again what the lock guards, for it may be gone. Never waits. */
bool doorbell_ring(struct doorbell *doorbell);

/* True: it was free, and the caller holds it now. Never waits. */
bool doorbell_try(struct doorbell *doorbell);

/* Waits until it is free, and takes it. */
void doorbell_hold(struct doorbell *doorbell);

/* Lets go, and returns true. False: it has been rung; the caller still holds it, does the work, and lets go again:
 *     while (!doorbell_let_go(&doorbell))
 *         work();
 * A bell that rings while somebody waits is left to him: he holds it next, and finds it rung when he lets go. */
bool doorbell_let_go(struct doorbell *doorbell);

/* Does somebody hold it? A look-up that was made under the lock before this call may still be going on only if so. */
bool doorbell_is_held(const struct doorbell *doorbell);

#endif
