/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ending.c - the ways a run can end. */
#include "tests/sim/lib/ending.h"

#include <stdio.h>

#include "tests/sim/lib/report.h"

static uint64_t seen[32], seen_fault[FAULTS];

static struct stack *here(struct sim *s)
{
    return &s->stack[s->struck_side];
}

static struct stack *there(struct sim *s)
{
    return &s->stack[!s->struck_side];
}

/* A responder may have to stay silent without limit if the initiator sends nothing. */
static bool is_ready(const struct stack *s)
{
    return s->conn.life.state == CONN_READY && s->conn.life.established && !s->conn.start.silent;
}

static bool both_ready(const struct sim *s)
{
    return is_ready(&s->stack[0]) && is_ready(&s->stack[1]);
}

/* --- ends ---------------------------------------------------------------------------------------------------- */

static bool close_one(struct sim *s)
{
    conn_close(&here(s)->conn, s->now_us);
    return true;
}

/* The other side continues, so that everything posted here is answered. */
static bool close_drained(struct sim *s)
{
    struct party *p = &s->party[s->struck_side];

    if (both_ready(s))
        p->drained_before = p->next_wr;
    return close_one(s);
}

static bool close_both(struct sim *s)
{
    s->other_close_us = s->now_us + rng_size(&s->rng, 100000);
    return close_one(s);
}

static bool reset(struct sim *s)
{
    for (int i = 0; i < 2; i++) {
        s->link[i].deaf = true;
        conn_lost(&s->stack[i].conn, FAULT_LOST);
    }
    return true;
}

static bool get_stuck(struct sim *s)
{
    struct link *l = &s->link[s->struck_side];

    l->stuck_at = l->taken + rng_size(&s->rng, 20000);
    return true;
}

static bool detach(struct sim *s)
{
    stack_detach(here(s), s->now_us);
    while (party_poll(&s->party[s->struck_side]))
        ;
    stack_destroy_qp(here(s));
    return true;
}

/* Deregisters a region that is in use, if there is one. */
static bool deregister(struct sim *s)
{
    struct region *r = NULL;

    for (int i = 0; i < 8 && !(r && r->areas); i++)
        r = &here(s)->region[rng_below(&s->rng, STACK_REGIONS)];
    stack_deregister(here(s), r);
    region_freeze(r);
    return true;
}

static bool spoil(struct sim *s)
{
    struct link *l = &s->link[s->struck_side];

    if (!both_ready(s) || here(s)->conn.start.frame_length)
        return false;
    l->corrupted_at =
        l->sent + (here(s)->conn.life.out ? here(s)->conn.life.out->octets : 0) + rng_size(&s->rng, 20000);
    l->corrupted_by = (uint8_t)(1 << rng_below(&s->rng, 8));
    return true;
}

/* Stops polling, so that the small CQ overflows. */
static bool fill_cq(struct sim *s)
{
    struct cq *cq = rng_one_in(&s->rng, 2) ? &here(s)->send_cq : &here(s)->recv_cq;

    if (!both_ready(s))
        return false;
    cq->cqe = cq->head - cq->tail + rng_below(&s->rng, 3);
    return true;
}

static bool reject(struct sim *s)
{
    if (there(s)->conn.life.state != CONN_WAIT_ANSWER)
        return false;
    if (conn_reject(&there(s)->conn, "no", 2, s->now_us))
        report_failure("conn_reject() refuses");
    return true;
}

/* --- a wrong request ----------------------------------------------------------------------------------------- */

static bool post_wrong(struct sim *s, struct request *r, struct rddp_sge outlaw)
{
    if (!r)
        return false;
    r->wrong = true;
    r->outlaw = outlaw;
    r->flags = RDDP_SEND_SIGNALED;
    if (party_post(&s->party[s->struck_side], r))
        return true;
    request_free(r);
    return false;
}

/* Returns a key that does not exist at the other end. */
static uint32_t no_key(const struct sim *s)
{
    const struct mr_table *mrs = &s->stack[!s->struck_side].mrs;
    uint32_t key = 0x5eed;

    while (mr_find(mrs, key))
        key++;
    return key;
}

static struct request *wrong_request(struct sim *s, enum rddp_wr_opcode opcode)
{
    return both_ready(s) ? work_request(&s->party[s->struck_side], opcode, rng_between(&s->rng, 1, 3000)) : NULL;
}

static struct rddp_sge outlaw_at(const struct region *r, uint64_t offset)
{
    return (struct rddp_sge){.lkey = r->mr.key, .addr = r->mr.start + offset};
}

static bool write_key(struct sim *s)
{
    return post_wrong(s, wrong_request(s, RDDP_WR_RDMA_WRITE), (struct rddp_sge){.lkey = no_key(s)});
}

static bool write_right(struct sim *s)
{
    return post_wrong(s, wrong_request(s, RDDP_WR_RDMA_WRITE), outlaw_at(&there(s)->region[REGION_READ_ONLY], 0));
}

static bool write_bounds(struct sim *s)
{
    struct region *r = &there(s)->region[REGION_WRITE_ONLY];

    return post_wrong(s, wrong_request(s, RDDP_WR_RDMA_WRITE), outlaw_at(r, r->mr.length + rng_below(&s->rng, 5000)));
}

/* Posts a Read into a single octet of our own. */
static bool read_wrong(struct sim *s, struct rddp_sge outlaw)
{
    struct request *r = wrong_request(s, RDDP_WR_SEND);

    if (!r)
        return false;
    r->opcode = RDDP_WR_RDMA_READ;
    for (uint32_t i = 0; i < r->locals; i++)
        area_release(&r->local[i]);
    r->locals = 0;
    if (!area_claim(&r->local[0], &here(s)->region[REGION_LOCAL], 1, AREA_SOURCE, &s->rng)) {
        request_free(r);
        return false;
    }
    r->locals = r->length = 1;
    return post_wrong(s, r, outlaw);
}

static bool read_key(struct sim *s)
{
    return read_wrong(s, (struct rddp_sge){.lkey = no_key(s)});
}

static bool read_right(struct sim *s)
{
    return read_wrong(s, outlaw_at(&there(s)->region[REGION_WRITE_ONLY], 0));
}

static bool read_bounds(struct sim *s)
{
    struct region *r = &there(s)->region[REGION_READ_ONLY];

    return read_wrong(s, outlaw_at(r, r->mr.length));
}

/* First the available receives must be used up. */
static bool send_without_receive(struct sim *s)
{
    struct party *p = &s->party[s->struck_side];
    struct request *r = wrong_request(s, RDDP_WR_SEND);

    p->peer->no_receives = true;
    if (!r || !p->peer->promised)
        return post_wrong(s, r, (struct rddp_sge){.lkey = 1});
    request_free(r);
    r = work_request(p, RDDP_WR_SEND, 0);
    if (r && !party_post(p, r))
        request_free(r);
    return false;
}

static bool send_too_long(struct sim *s)
{
    const struct receive *in = s->party[!s->struck_side].promised;

    if (!both_ready(s) || !in || in->capacity > 100000)
        return false;
    return post_wrong(s, work_request(&s->party[s->struck_side], RDDP_WR_SEND, in->capacity + 1),
                      (struct rddp_sge){.lkey = 1});
}

static bool invalidate_key(struct sim *s)
{
    const struct receive *in = s->party[!s->struck_side].promised;
    struct request *r = NULL;

    if (both_ready(s) && in)
        r = work_request(&s->party[s->struck_side], RDDP_WR_SEND, rng_size(&s->rng, in->capacity));
    if (!r)
        return false;
    r->opcode = RDDP_WR_SEND_WITH_INV;
    r->invalid_key = no_key(s);
    return post_wrong(s, r, (struct rddp_sge){.lkey = 1});
}

static bool own_key(struct sim *s)
{
    struct request *r = wrong_request(s, RDDP_WR_RDMA_WRITE);

    if (!r)
        return false;
    r->wrong_here = true;
    return post_wrong(s, r, (struct rddp_sge){.lkey = 0x5eed, .length = r->length});
}

/* --- all ----------------------------------------------------------------------------------------------------- */

#define NO_FAULT FAULT_BIT(FAULT_NONE)
#define CUT (FAULT_BIT(FAULT_CUT) | NO_FAULT) /* a Read was not answered, or a message not completed */
#define LOST (FAULT_BIT(FAULT_LOST) | NO_FAULT)
#define STUCK (FAULT_BIT(FAULT_STALLED) | CUT)
#define GONE (FAULT_BIT(FAULT_KEY) | FAULT_BIT(FAULT_LOCAL_KEY) | FAULT_BIT(FAULT_INVALIDATE) | NO_FAULT)
#define CORRUPTED (FAULT_BIT(FAULT_CRC) | FAULT_BIT(FAULT_LENGTH) | FAULT_BIT(FAULT_OVERLAP) | STUCK)
#define SPOILT_SEGMENT \
    (FAULT_BIT(FAULT_SEG_VERSION) | FAULT_BIT(FAULT_SEG_LENGTH) | FAULT_BIT(FAULT_SEG_CLEN) | \
     FAULT_BIT(FAULT_SEG_ID) | FAULT_BIT(FAULT_SEG_CRC))
#define REJECTED FAULT_BIT(FAULT_REJECTED)
#define TOLD FAULT_BIT(FAULT_TERMINATED)

const struct ending endings[] = {
    {"in order", 30, close_drained, NO_FAULT, NO_FAULT, ANY_CODE, ENDS},
    {"one closes", 10, close_drained, NO_FAULT, CUT, ANY_CODE, ENDS},
    {"both close", 10, close_both, CUT, CUT, ANY_CODE, ENDS},
    {"a reset", 8, reset, LOST, LOST, ANY_CODE, ENDS},
    {"nothing arrives any more", 6, get_stuck, STUCK, STUCK, ANY_CODE, 0},
    {"a queue pair goes", 8, detach, NO_FAULT, CUT, ANY_CODE, ENDS},
    {"a region goes", 10, deregister, GONE, TOLD | NO_FAULT, ANY_CODE, 0},
    {"an octet is corrupted", 14, spoil, TOLD | STUCK, CORRUPTED, ANY_CODE, WANTS_CRC},
    {"completions have no room", 6, fill_cq, FAULT_BIT(FAULT_CQ_FULL) | NO_FAULT, TOLD | NO_FAULT, 0x0000, BLINDS},
    {"a reject", 3, reject, REJECTED, REJECTED, ANY_CODE, ENDS | REJECTS},
    {"a Write names no key", 3, write_key, TOLD, FAULT_BIT(FAULT_KEY), 0x1100, 0},
    {"a Write has no right", 3, write_right, TOLD, FAULT_BIT(FAULT_RIGHT), 0x1100, 0},
    {"a Write goes too far", 3, write_bounds, TOLD, FAULT_BIT(FAULT_BOUNDS), 0x1101, 0},
    {"a Read names no key", 3, read_key, TOLD, FAULT_BIT(FAULT_KEY), 0x0100, WANTS_READS},
    {"a Read has no right", 3, read_right, TOLD, FAULT_BIT(FAULT_RIGHT), 0x0102, WANTS_READS},
    {"a Read goes too far", 3, read_bounds, TOLD, FAULT_BIT(FAULT_BOUNDS), 0x0101, WANTS_READS},
    {"a Send finds no receive", 3, send_without_receive, TOLD, FAULT_BIT(FAULT_NO_RECEIVE), 0x1202, 0},
    {"a Send is too long", 3, send_too_long, TOLD, FAULT_BIT(FAULT_TOO_LONG), 0x1205, WANTS_SENDS},
    {"a Send invalidates no key", 3, invalidate_key, TOLD, FAULT_BIT(FAULT_INVALIDATE), 0x0109,
     WANTS_SENDS | INVALIDATES},
    {"a request names no memory of ours", 4, own_key, FAULT_BIT(FAULT_LOCAL_KEY), TOLD, 0x0000, 0},
};

const uint32_t ending_count = sizeof(endings) / sizeof(endings[0]);

const struct ending *ending_in_order(void)
{
    return &endings[0];
}

static void judge_side(const struct sim *s, int side)
{
    const struct conn *c = &s->stack[side].conn;
    uint64_t may = side == s->struck_side ? s->ending->here : s->ending->there;
    unsigned ends = s->stack[side].told & (CONN_NEWS_DISCONNECTED | CONN_NEWS_FAILED | CONN_NEWS_REJECTED);

    /* The peer is not told why, and each header field has a fault of its own. */
    if (!s->stack[side].attr.wire->explain) {
        may |= may & TOLD ? LOST | CUT : 0;
        may |= may & FAULT_BIT(FAULT_CRC) ? SPOILT_SEGMENT : 0;
    }
    /* Before both were ready, one side may see it as a broken start-up. */
    if (!s->was_established)
        may |= LOST | STUCK;
    /* A responder that closes with posted work which it may never send. */
    if (c->start.silent)
        may |= FAULT_BIT(FAULT_STALLED);
    if (!(may & FAULT_BIT(c->life.note.fault)))
        report_failure("side %d ends with: %s", side, fault_text(c->life.note.fault));
    if (c->life.note.fault == FAULT_TERMINATED && s->ending->code != ANY_CODE && c->life.peer_term != s->ending->code)
        report_failure("side %d was told %04x", side, c->life.peer_term);
    if (ends & (ends - 1) || (!ends && !(s->ending->flags & REJECTS)))
        report_failure("side %d is told of its end by %#x", side, ends);
    seen_fault[c->life.note.fault]++;
}

void ending_judge(const struct sim *s)
{
    judge_side(s, 0);
    judge_side(s, 1);
    seen[s->ending - endings]++;
}

void ending_tally(const struct wire *wire)
{
    int crc = wire->explain ? FAULT_CRC : FAULT_SEG_CRC;

    for (uint32_t i = 0; i < ending_count; i++) {
        printf("sim: %6llu %s\n", (unsigned long long)seen[i], endings[i].name);
        if (!seen[i] && !(wire->frames_at_once && endings[i].flags & (REJECTS | INVALIDATES)))
            report_failure("never seen: %s", endings[i].name);
    }
    for (int i = 0; i < FAULTS; i++)
        if (seen_fault[i])
            printf("sim: %6llu ended with %s\n", (unsigned long long)seen_fault[i], fault_name((enum fault)i));
    if (!seen_fault[crc] || !seen_fault[FAULT_CQ_FULL] || !seen_fault[FAULT_LOCAL_KEY])
        report_failure("a fault that can happen never did");
}
