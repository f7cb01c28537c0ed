/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h - two connected queue pairs over loopback, and a runner that repeats the tests over every way to connect
 * them. */
#ifndef RDDP_TESTS_SUITE_PAIR_H
#define RDDP_TESTS_SUITE_PAIR_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rddp/rddp.h>

enum {
    PAIR_BUFFER = 4 << 20, /* octets of each side's region */
    PAIR_GUARD = 4096,     /* octets in front of and behind it that must not change */
    PAIR_DEPTH = 64,
    PAIR_WAIT_MS = 30000, /* for what must come: a busy machine may take its time */
};

/* A way to connect: a new row runs every test over it. */
struct row {
    const char *name;
    enum rddp_wire wire;
    enum rddp_sctp_provider sctp;
    bool silent; /* the peer is not told why a connection ends, and no key can be invalidated remotely */
    bool crc, client_markers, server_markers, peer_to_peer, immediate, v6, aligned;
    bool packet;    /* each side over a device of its own, with the kernel's forwarding between them */
    bool hand_off;  /* both take over connections of the kernel's, over loopback */
    uint32_t lose;  /* with `packet`: lose this many of 100,000 packets, each way */
    uint32_t loops; /* of each context, instead of the default */
    uint32_t spin_us;
    bool threads; /* threads meet here as in no row before: ThreadSanitizer sees these rows alone */
    uint8_t mpa_revision;
    unsigned rtr;
};

struct side {
    struct rddp_context *context;
    struct rddp_device *device; /* may be NULL */
    struct rddp_event_channel *events;
    struct rddp_comp_channel *channel;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t *guarded; /* guard, region, guard */
    uint8_t *buffer;  /* the region: zero-based, all rights */
    char log[8192];   /* lines that the library logged */
    size_t logged;
    pthread_mutex_t log_lock; /* the library logs from its own threads */
};

struct pair {
    const struct row *row;
    struct side client, server;
    struct rddp_listener *listener;
    struct sockaddr_storage addr;
    struct rddp_qp_attr qp_attr; /* of both queue pairs; change it between pair_open() and pair_connect() */
};

/* Returns the row's wire attributes for one side. */
struct rddp_wire_attr pair_wire(const struct row *row, bool server);

/* pair_open() makes contexts, channels, regions and a listener; pair_connect() the queue pairs and the connection. */
void pair_open(struct pair *pair, const struct row *row);
void pair_connect(struct pair *pair);
void pair_join(struct pair *pair);  /* with the existing queue pairs */
void pair_close(struct pair *pair); /* checks the guards */

/* Has the library logged this text on this side? */
bool pair_said(struct side *side, const char *text);

/* Waits for the next event, which must be of this type, and acknowledges it. */
struct rddp_event pair_event(struct side *side, enum rddp_event_type type);

/* Polls for `n` completions; fails the test after PAIR_WAIT_MS. pair_poll() returns how many came by then: for a test
 * with threads that use memory of the pair, and have to end before the test fails. */
void pair_completions(struct side *side, struct rddp_wc *wc, int n);
int pair_poll(struct side *side, struct rddp_wc *wc, int n);
struct rddp_wc pair_completion(struct side *side);

/* Returns an sge for a piece of a side's region. */
struct rddp_sge pair_sge(const struct side *side, size_t offset, size_t length);

/* Posts one request whose remote memory is the other region at `remote`. */
int pair_post(struct side *from, const struct side *to, enum rddp_wr_opcode opcode, uint64_t id, size_t local,
              size_t length, size_t remote, unsigned flags);
void pair_receive(struct side *side, uint64_t id, size_t offset, size_t length);

/* Fill with seeded octets; check them. */
void pair_pattern(uint8_t *at, size_t n, unsigned seed);
bool pair_is_pattern(const uint8_t *at, size_t n, unsigned seed);

/* Runs `tests` over each row. If `connect`, each test is connected by pair_connect(); it is always closed afterwards.
 * The state is a struct pair **. */
struct pair_test {
    const char *name;
    void (*run)(void **state);
};
int pair_run(const char *group, const struct pair_test *tests, size_t n, bool connect);
#define PAIR_TEST(function) \
    { \
#function, function \
    }

#endif
