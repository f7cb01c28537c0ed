/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.h - fixtures for tests of core/: memory between guard octets, queue pairs with their memory, and hand-made
 * segments. */
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

/* Registered memory. engine_fini() fails the test if an octet beside it was changed. */
struct area {
    struct mr mr;
    uint8_t *buffer;
    uint8_t *want; /* what engine_expect() compares it with */
};

/* The objects that queue pairs share: a protection domain, a second one that they do not use, and the regions. */
struct engine {
    struct pd pd, other_pd;
    struct mr_table mrs;
    struct mr_slot slot[ENGINE_SLOTS + 1];
    struct area area[ENGINE_AREAS];
    uint32_t areas;
};

void engine_init(struct engine *e);
void engine_fini(struct engine *e);

/* Makes a region of `length` octets, initially 0. Keys begin at 0x1000 and increase by 0x101. */
struct mr *engine_region(struct engine *e, uint32_t length, unsigned access);

/* engine_remember() records all regions. engine_expect() checks that they are unchanged, except for what the test also
 * wrote to want_of(). */
void engine_remember(struct engine *e);
void engine_expect(const struct engine *e);
uint8_t *want_of(struct engine *e, const struct mr *mr);

/* Fills with octets that differ by offset and seed. */
void pattern(uint8_t *p, uint32_t n, uint32_t seed);

/* Returns an sge for `length` octets of a region from `at` on. */
struct rddp_sge piece_of(const struct mr *mr, uint32_t at, uint32_t length);

/* An endpoint. */
struct side {
    struct qp qp;
    struct cq send_cq, recv_cq;
    struct cq_entry send_ring[ENGINE_WC], recv_ring[ENGINE_WC];
    void *buffer;
};

/* 16 requests of 4 sges per queue, 64 octets inline, 4 Reads each way, a window of 8, number 7. */
struct qp_attr side_attr(struct engine *e);

/* The CQs are the side's own unless `attr` names others. The queue pair is not connected. */
void side_init(struct side *s, const struct qp_attr *attr);
void side_fini(struct side *s);

/* side_init() with these attributes (NULL: side_attr()), connected at stream position 0. */
void side_open(struct side *s, struct engine *e, const struct qp_attr *attr);

int post_recv(struct side *s, uint64_t wr_id, const struct rddp_sge *sge, int sges);
int post(struct side *s, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, const struct rddp_sge *sge,
         int sges);

/* The same for requests that name the peer's memory. */
int post_remote(struct side *s, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, const struct rddp_sge *sge,
                int sges, uint32_t rkey, uint64_t remote_addr);

/* Make segments as a wire would decode them. */
struct seg a_send(uint32_t msn, uint32_t mo, const void *data, uint32_t length, unsigned flags);
struct seg a_write(uint64_t key, uint64_t offset, const void *data, uint32_t length, unsigned flags);
struct seg a_read_request(uint32_t msn, const struct seg_read *read);
struct seg a_read_response(uint64_t key, uint64_t offset, const void *data, uint32_t length, unsigned flags);

/* The segment arrives next in the stream, or at stream positions [begin, end). Returns the fault; the queue pair is not
 * failed yet. */
enum fault arrive(struct side *s, struct seg seg);
enum fault arrive_at(struct side *s, struct seg seg, uint64_t begin, uint64_t end);

/* Fails the queue pair, as a connection does after a fault. */
void give_up(struct side *s);

/* expect_wc(): the next completion is this one. expect_quiet(): there is none. */
struct rddp_wc expect_wc(struct cq *cq, uint64_t wr_id, enum rddp_wc_status status);
void expect_quiet(struct cq *cq);

/* Emits a segment of at most `max` octets, of which there must be one, and sends it at once. */
struct emit leave(struct side *s, uint32_t max);

/* Carries the segments of both sides, in order and of at most `max` octets, until both have none. */
void converse(struct side *a, struct side *b, uint32_t max);

/* xorshift, for reproducible tests. */
uint32_t chance(uint32_t *seed);

#endif
