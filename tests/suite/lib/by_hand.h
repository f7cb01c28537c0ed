/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* by_hand.h - two queue pairs of RoCE in two contexts, connected by hand over loopback. */
#ifndef RDDP_TESTS_SUITE_BY_HAND_H
#define RDDP_TESTS_SUITE_BY_HAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rddp/rddp.h>

enum { HAND_BUFFER = 2 << 20, HAND_DEPTH = 64, HAND_WAIT_MS = 30000, HAND_READS = 4 };

struct hand {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t *buffer; /* the region, with all rights */
    uint32_t psn;    /* of its first request */
};

struct hands {
    struct hand end[2];
    struct rddp_qp_attr qp; /* of both; change it between hands_open() and hands_make() */
    struct rddp_ib_attr ib; /* the same; addresses, numbers and PSNs are filled in by hands_connect() */
    struct sockaddr_storage address;
};

/* hands_open_manual(): with contexts that do their work in rddp_poll_cq() and rddp_progress() alone. */
void hands_open_manual(struct hands *h, enum rddp_qp_type type, const char *address);

/* The same with contexts as these attributes say. */
void hands_open_with(struct hands *h, enum rddp_qp_type type, const char *address,
                     const struct rddp_context_attr *attr);

/* hands_open() makes all but queue pairs, hands_make() those, and hands_connect() leads both to RTS. */
void hands_open(struct hands *h, enum rddp_qp_type type, const char *address);
void hands_make(struct hands *h);
void hands_connect(struct hands *h);
void hands_close(struct hands *h);

/* Leads one end to RTS, with a peer that it takes to have this number. */
void hand_connect(struct hands *h, unsigned end, uint32_t peer_qpn);

/* The address of this text, with a port; and the port of a listener. */
struct sockaddr_storage hand_address(const char *text, uint16_t port);
uint16_t hand_port(const struct rddp_listener *listener);

/* Takes the next completion of this end. */
struct rddp_wc hand_completion(struct hand *hand);

void hand_receive(struct hand *hand, uint64_t id, size_t at, uint32_t length);

/* Posts a signalled request from `at` of `from` to `remote` of `to`, with an immediate of 0x12345678. */
void hand_post(struct hand *from, const struct hand *to, enum rddp_wr_opcode opcode, size_t at, uint32_t length,
               size_t remote);

/* Skips the test, with the reason, where a child of fork() cannot make threads: under ThreadSanitizer. */
void hands_skip_without_threads_in_children(void);

/* Fill with octets that depend on `seed`, and check them. */
void hand_fill(uint8_t *p, size_t octets, uint32_t seed);
void hand_check(const uint8_t *p, size_t octets, uint32_t seed);

#endif
