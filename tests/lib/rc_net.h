/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_net.h - two connected queue pairs of RoCE, the packets between them, and a path that harms packets. */
#ifndef TESTS_LIB_RC_NET_H
#define TESTS_LIB_RC_NET_H

#include "conn/rc_pair.h"
#include "roce/icrc.h"
#include "tests/lib/engine.h"
#include "tests/lib/inflight.h"
#include "tests/lib/rng.h"

/* What happens to packets: chances of a million. */
struct rc_path {
    uint32_t lose, repeat, harm, hold_back;
    uint32_t delay_us, held_back_us;
};

struct rc_peer {
    struct side side;
    struct rc_pair pair;
    void *buffer;
    struct rc_path path; /* of what it sends */
    uint64_t packets;
};

struct rc_net {
    struct engine engine;
    struct rc_peer end[2];
    struct inflight inflight;
    struct rng rng;
    uint64_t now_us;
    uint32_t cells; /* packets that both ends together keep behind gaps; set before they connect */
    struct rc_pool pool;
    uint64_t dropped; /* packets whose ICRC was wrong */
    bool withholds;   /* now and then an acknowledgement waits for a request, as in a host whose application polls */
    struct icrc_space space;
    /* Sees each packet before it leaves; false: it is lost. NULL: none. */
    bool (*watch)(struct rc_net *net, uint32_t from, const struct bth *b);
    void *watcher;
};

/* Connects two queue pairs with these attributes. PSNs of end i are `psn[i]`. */
void rc_net_init(struct rc_net *net, uint64_t seed);
void rc_net_connect(struct rc_net *net, const struct qp_attr qp[2], const struct rc_pair_attr pair[2],
                    const uint32_t psn[2]);
void rc_net_fini(struct rc_net *net);

/* The attributes of a reliable connection with a path MTU of 256, a time-out of 20 ms, endless RNR retries. */
struct rc_pair_attr rc_net_attr(void);

/* Sends what may leave now. */
void rc_net_send(struct rc_net *net);

/* Goes on to the next packet or deadline, not beyond `until_us`. Returns false if there was none. */
bool rc_net_step(struct rc_net *net, uint64_t until_us);

/* Goes on until nothing is under way or due, at most for `us`. */
void rc_net_run(struct rc_net *net, uint64_t us);

#endif
