/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.h - for tests of core/: memory between guard octets, queue pairs with their rooms, and segments by hand. */
#ifndef TESTS_LIB_ENGINE_H
#define TESTS_LIB_ENGINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/qp.h"

enum {
    ENGINE_AREAS = 24,
    ENGINE_SLOTS = 64,
    ENGINE_WC = 1024,

    LOCAL = RDDP_ACCESS_LOCAL_WRITE,
    ALL_ACCESS =
        RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC,
};

/* Registered memory. engine_fini() fails the test if an octet next to it was touched. */
struct area {
    struct mr mr;
    uint8_t *room;
    uint8_t *want; /* what engine_expect() compares it with */
};

/* What queue pairs share: a protection domain, a second one that is not theirs, and the regions. */
struct engine {
    struct pd pd, other_pd;
    struct mr_table mrs;
    struct mr_slot slot[ENGINE_SLOTS + 1];
    struct area area[ENGINE_AREAS];
    uint32_t areas;
};

void engine_init(struct engine *e);
void engine_fini(struct engine *e);

/* A region of `length` octets, all 0 at first; its keys begin at 0x1000 and go up by 0x101. */
struct mr *engine_region(struct engine *e, uint32_t length, unsigned access);

/* Every region is to stay as it is now, but where the test writes into want_of() too: then all must be so. */
void engine_remember(struct engine *e);
void engine_expect(const struct engine *e);
uint8_t *want_of(struct engine *e, const struct mr *mr);

/* Octets of a test: different at each offset, and for each seed. */
void pattern(uint8_t *p, uint32_t n, uint32_t seed);

/* `length` octets of a region from `at` on, as a request names them. */
struct rddp_sge piece_of(const struct mr *mr, uint32_t at, uint32_t length);

/* An endpoint. */
struct side {
    struct qp qp;
    struct cq send_cq, recv_cq;
    struct cq_entry send_ring[ENGINE_WC], recv_ring[ENGINE_WC];
    void *room;
};

/* 16 requests of 4 sges a queue, 64 octets inline, 4 Reads each way, a window of 8, number 7. */
struct qp_attr side_attr(struct engine *e);

/* The CQs are the side's own unless `attr` names others. Not yet connected. */
void side_init(struct side *s, const struct qp_attr *attr);
void side_fini(struct side *s);

/* Both at once with these attributes (NULL: side_attr()), connected from stream position 0. */
void side_open(struct side *s, struct engine *e, const struct qp_attr *attr);

int post_recv(struct side *s, uint64_t wr_id, const struct rddp_sge *sge, int sges);
int post(struct side *s, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, const struct rddp_sge *sge,
         int sges);

/* The same, with the peer's memory. */
int post_remote(struct side *s, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, const struct rddp_sge *sge,
                int sges, uint32_t rkey, uint64_t remote_addr);

/* Segments as a wire would decode them. */
struct seg a_send(uint32_t msn, uint32_t mo, const void *data, uint32_t length, unsigned flags);
struct seg a_write(uint64_t key, uint64_t offset, const void *data, uint32_t length, unsigned flags);
struct seg a_read_request(uint32_t msn, const struct seg_read *read);
struct seg a_read_response(uint64_t key, uint64_t offset, const void *data, uint32_t length, unsigned flags);

/* Arrives next in the stream, or at stream positions [begin, end). The fault is not yet made one of the queue pair's.
 */
enum fault arrive(struct side *s, struct seg seg);
enum fault arrive_at(struct side *s, struct seg seg, uint64_t begin, uint64_t end);

/* What a connection does about a fault. */
void give_up(struct side *s);

/* The next completion is this one / there is none. */
struct rddp_wc expect_wc(struct cq *cq, uint64_t wr_id, enum rddp_wc_status status);
void expect_quiet(struct cq *cq);

/* Emits a segment of at most `max` octets, which must be one, and lets it leave at once. */
struct emit leave(struct side *s, uint32_t max);

/* Carries all that both have to say, in order, in segments of at most `max` octets, until both are silent. */
void converse(struct side *a, struct side *b, uint32_t max);

/* A small generator (xorshift), for tests whose failures are to be seen again. */
uint32_t chance(uint32_t *seed);

#endif
