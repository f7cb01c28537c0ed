/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_pair.h - two machines whose connection managers talk to each other, their applications, and what is under way
 * between them. It checks that each connection has the events it must have, and none twice.
 *
 * A world has no pointers to outside of it: a copy of it, written back to the same place, is the same world again. */
#ifndef TESTS_LIB_RCM_PAIR_H
#define TESTS_LIB_RCM_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/rcm.h"
#include "tests/lib/rng.h"

enum { PARTIES = 12, FLYING = 48, TRAIL = 4096, SERVICE_OF_ALL = 0x1060001 };

/* A connection as its application sees it. */
struct party {
    struct rcm_conn conn;
    bool used;      /* since its call or request; until RCM_EVENT_GONE */
    bool up;        /* established, and not disconnected */
    bool waits;     /* its last question was sent before losses ended: it may have been lost */
    bool left;      /* the application rejected or disconnected it */
    unsigned seen;  /* events: a bit for each kind */
    uint32_t reads; /* what it asks for */
};

struct machine {
    struct rcm cm;
    struct rcm_listener listener;
    struct party party[PARTIES];
    struct rng rng;
    uint32_t qpn; /* of the next queue pair */
    uint32_t established, failed;
};

/* Something under way: a message, or a packet of an established connection. */
struct flying {
    bool used, is_data;
    uint8_t to;
    uint64_t at_us;
    uint32_t qpn, from_qpn; /* of data */
    uint8_t mad[RCM_MAD_OCTETS];
};

struct rcm_pair_attr {
    uint32_t backlog;
    uint8_t response_timeout, cm_retries;
    uint64_t timewait_us;
};

struct rcm_pair {
    struct rcm_pair_attr attr;
    struct machine machine[2];
    struct flying flying[FLYING];
    uint64_t now_us;
    char trail[TRAIL]; /* what was done, in words */
    uint32_t trail_length;
    bool settles; /* nothing is lost any more */
    /* What the applications do with a request, and with an answer: decided at once, or later by others. */
    void (*asked)(struct rcm_pair *w, uint32_t at, struct party *p);
    void (*answered)(struct rcm_pair *w, uint32_t at, struct party *p);
    /* Something leaves; false: it is lost. Sets when it arrives. NULL: it waits to be delivered. */
    bool (*leaves)(struct rcm_pair *w, struct flying *f);
};

void rcm_pair_open(struct rcm_pair *w, const struct rcm_pair_attr *attr, uint64_t seed);
/* The machine starts again, and knows of nothing. `qpn` is the number of its first queue pair. */
void rcm_pair_restart(struct rcm_pair *w, uint32_t at, uint32_t qpn);

/* Adds a step to the trail. The oldest are cut off. */
void rcm_pair_note(struct rcm_pair *w, uint32_t at, const char *what);

/* Actions of applications. The machine's events are taken, and its messages leave. Return false if they cannot. */
bool rcm_pair_call(struct rcm_pair *w, uint32_t at);
void rcm_pair_accept(struct rcm_pair *w, uint32_t at, struct party *p);
void rcm_pair_reject(struct rcm_pair *w, uint32_t at, struct party *p);
void rcm_pair_confirm(struct rcm_pair *w, uint32_t at, struct party *p);
void rcm_pair_disconnect(struct rcm_pair *w, uint32_t at, struct party *p);
bool rcm_pair_send_data(struct rcm_pair *w, uint32_t at, struct party *p);

/* Delivers what is under way, and keeps a copy of it under way if it is repeated. */
void rcm_pair_deliver(struct rcm_pair *w, struct flying *f, bool again);

/* When the next deadline of a machine is due, or RCM_NEVER; and what is due now. */
uint64_t rcm_pair_deadline(const struct rcm_pair *w);
void rcm_pair_tick(struct rcm_pair *w);

/* The other end of a connection: one that may still be established, or NULL. */
struct party *rcm_pair_partner(struct rcm_pair *w, uint32_t at, const struct party *p);

/* Goes on without losses until nothing more happens: requests are accepted, answers confirmed. Then both ends agree.
 * All is disconnected, and nothing is left. */
void rcm_pair_settle(struct rcm_pair *w);

#endif
