/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.c - what an application might request next. */
#include "tests/sim/lib/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct region *random_region(struct stack *s, struct rng *rng, unsigned access)
{
    struct region *r = &s->region[rng_below(rng, STACK_REGIONS)];

    return (r->mr.access & access) == access && !r->hot && !r->doomed && !r->removed ? r : NULL;
}

/* Draws any size, and preferably those at which something changes: a marker, a segment, a borrowed payload. */
static uint32_t random_length(struct party *p, uint32_t most)
{
    const uint32_t emss = p->stack->conn.attr.emss;
    const uint32_t edges[] = {0,     1,     4,    486,       490,       508,      512, 16383,
                              16384, 16385, emss, emss - 24, emss - 20, 2 * emss, most};
    uint32_t length = rng_one_in(&p->rng, 4)
                          ? edges[rng_below(&p->rng, sizeof(edges) / sizeof(edges[0]))] + rng_below(&p->rng, 3)
                          : rng_size(&p->rng, most);

    return length < most ? length : most;
}

/* --- pieces of memory ---------------------------------------------------------------------------------------- */

static bool claim(struct party *p, struct stack *s, struct area *a, uint32_t length, enum area_use use, unsigned access)
{
    for (int i = 0; i < 4; i++) {
        struct region *r = random_region(s, &p->rng, access);

        if (r && area_claim(a, r, length, use, &p->rng))
            return true;
    }
    return false;
}

/* Claims `length` octets in up to `pieces` pieces, some of which may be empty. */
static bool claim_pieces(struct party *p, struct area *area, uint32_t *areas, uint32_t length, uint32_t pieces,
                         enum area_use use, unsigned access)
{
    uint32_t count = rng_between(&p->rng, length ? 1 : 0, pieces);

    for (*areas = 0; *areas < count; ++*areas) {
        uint32_t piece = *areas == count - 1 ? length : rng_size(&p->rng, length);

        if (!claim(p, p->stack, &area[*areas], piece, use, access))
            return false;
        length -= piece;
    }
    return true;
}

static bool gather(struct request *r)
{
    uint8_t *to = r->octets = malloc(r->length + 1);

    assert(to);
    for (uint32_t i = 0; i < r->locals; i++) {
        memcpy(to, area_shadow(&r->local[i]), r->local[i].length);
        to += r->local[i].length;
    }
    return true;
}

/* --- requests ------------------------------------------------------------------------------------------------ */

static struct request *new_request(enum rddp_wr_opcode opcode, uint32_t length)
{
    struct request *r = calloc(1, sizeof(*r));

    assert(r);
    r->opcode = opcode;
    r->length = length;
    return r;
}

static bool is_sequence(const struct party *p)
{
    return p->stack->attr.wire->numbering == SEG_NUMBERS_SEQUENCE;
}

/* Draws any length that CLEN can express; but a message that takes a receive has to find one. */
static void random_control(struct party *p, struct request *r)
{
    bool takes = is_send_opcode(r->opcode) || p->peer->stack->attr.qp.rdma_control;
    uint32_t words = rng_one_in(&p->rng, 3) ? rng_between(&p->rng, 254, 255) : rng_between(&p->rng, 1, 255);

    if (rng_one_in(&p->rng, 3) && (!takes || p->peer->promised))
        request_control(r, (uint16_t)(4 * words), &p->rng);
}

/* Immediate data, where they are possible: with a Write that finds a receive, and with a Send without payload. */
static void random_immediate(struct party *p, struct request *r)
{
    bool may = r->opcode == RDDP_WR_RDMA_WRITE || (r->opcode == RDDP_WR_SEND && !r->length);

    if (may && !is_sequence(p) && p->peer->promised && rng_one_in(&p->rng, 3))
        request_immediate(r, &p->rng);
}

static void random_flags(struct party *p, struct request *r)
{
    bool is_fixed = r->flags & RDDP_SEND_FENCE; /* what it carries has not arrived yet */
    bool has_payload = r->opcode != RDDP_WR_RDMA_READ && r->opcode != RDDP_WR_LOCAL_INV && !is_word_opcode(r->opcode);

    if (rng_below(&p->rng, 3))
        r->flags |= RDDP_SEND_SIGNALED;
    if (rng_one_in(&p->rng, 6))
        r->flags |= RDDP_SEND_FENCE;
    if (is_sequence(p) && r->opcode != RDDP_WR_LOCAL_INV)
        random_control(p, r);
    random_immediate(p, r);
    if ((is_send_opcode(r->opcode) || r->control || r->with_imm) && rng_one_in(&p->rng, 3))
        r->flags |= RDDP_SEND_SOLICITED;
    if (has_payload && !is_fixed && r->length <= p->stack->attr.qp.inline_max && rng_one_in(&p->rng, 2))
        r->flags |= RDDP_SEND_INLINE;
}

static uint32_t pieces_of(const struct party *p, uint32_t most)
{
    return p->stack->attr.qp.send_sge < most ? p->stack->attr.qp.send_sge : most;
}

struct request *work_request(struct party *p, enum rddp_wr_opcode opcode, uint32_t length)
{
    struct request *r = new_request(opcode, length);

    if (opcode != RDDP_WR_RDMA_READ && claim_pieces(p, r->local, &r->locals, length, 1, AREA_SOURCE, 0) && gather(r))
        return r;
    request_free(r);
    return NULL;
}

static bool fill_send(struct party *p, struct request *r, const struct work_attr *work)
{
    return claim_pieces(p, r->local, &r->locals, r->length, pieces_of(p, work->pieces), AREA_SOURCE, 0) && gather(r);
}

/* Draws the target of a Write. An empty Write may name anything. */
static bool fill_write(struct party *p, struct request *r, const struct work_attr *work)
{
    if (!fill_send(p, r, work))
        return false;
    if (!r->length && rng_one_in(&p->rng, 2))
        return true;
    if (!claim(p, p->peer->stack, &r->remote, r->length, AREA_TARGET, RDDP_ACCESS_REMOTE_WRITE))
        return false;
    r->remote.octets = r->octets;
    r->remote.filled = r->length;
    return true;
}

/* Writes to memory that others read and write at the same time. */
static bool fill_hot_write(struct party *p, struct request *r, const struct work_attr *work)
{
    if (!fill_send(p, r, work) ||
        !area_claim(&r->remote, &p->peer->stack->region[REGION_HOT], r->length, AREA_ANY, &p->rng))
        return false;
    free(r->octets);
    r->octets = NULL;
    return true;
}

/* Claims a Read's sink, for octets that are already known. */
static bool fill_sink(struct party *p, struct request *r, const uint8_t *octets)
{
    uint32_t pieces = r->length ? 1 : rng_below(&p->rng, 2);

    r->octets = octets ? malloc(r->length + 1) : NULL;
    if (octets)
        memcpy(r->octets, octets, r->length);
    if (pieces &&
        !claim(p, p->stack, &r->local[0], r->length, octets ? AREA_TARGET : AREA_ANY, RDDP_ACCESS_LOCAL_WRITE))
        return false;
    r->locals = pieces;
    r->local[0].octets = r->octets;
    r->local[0].filled = r->length;
    return true;
}

/* Returns the oldest pending Write whose target may be read back: a Read after it returns what it wrote
 * (RDMAP-5.5-02). */
static struct request *write_to_read(const struct party *p)
{
    struct request *written = p->oldest;

    while (written &&
           !(written->opcode == RDDP_WR_RDMA_WRITE && !written->landed && written->octets && written->length &&
             written->remote.region && written->remote.region->mr.access & RDDP_ACCESS_REMOTE_READ))
        written = written->next;
    return written;
}

static bool fill_read(struct party *p, struct request *r, const struct work_attr *work)
{
    struct request *written = rng_one_in(&p->rng, 4) ? write_to_read(p) : NULL;

    if (work->hot && rng_one_in(&p->rng, 3))
        return area_claim(&r->remote, &p->peer->stack->region[REGION_HOT], r->length, AREA_ANY, &p->rng) &&
               fill_sink(p, r, NULL);
    if (written) {
        r->length = written->length;
        area_share(&r->remote, &written->remote, AREA_SOURCE);
        return fill_sink(p, r, written->octets);
    }
    if (!r->length && rng_one_in(&p->rng, 2))
        return fill_sink(p, r, (const uint8_t *)"");
    return claim(p, p->peer->stack, &r->remote, r->length, AREA_SOURCE, RDDP_ACCESS_REMOTE_READ) &&
           fill_sink(p, r, area_shadow(&r->remote));
}

/* Sends on what a Read returns: after a fence it has arrived (RDDP_SEND_FENCE). */
static bool fill_fenced(struct party *p, struct request *r)
{
    struct request *read = p->oldest;

    while (read && !(read->opcode == RDDP_WR_RDMA_READ && !read->completed && read->octets && read->locals &&
                     read->length <= r->length))
        read = read->next;
    if (!read)
        return false;
    r->length = read->length;
    r->flags |= RDDP_SEND_FENCE;
    r->octets = malloc(r->length + 1);
    assert(r->octets);
    memcpy(r->octets, read->octets, r->length);
    area_share(&r->local[0], &read->local[0], AREA_SOURCE);
    r->locals = 1;
    return true;
}

static struct region *window_of(struct party *p, struct stack *s)
{
    struct region *r = &s->region[REGION_WINDOW_A + rng_below(&p->rng, 3)];

    return r->areas || r->doomed || r->removed ? NULL : r;
}

static bool fill_invalidate(struct party *p, struct request *r)
{
    r->invalidates = window_of(p, r->opcode == RDDP_WR_LOCAL_INV ? p->stack : p->peer->stack);
    if (!r->invalidates)
        return false;
    r->invalid_key = r->invalidates->mr.key;
    return true;
}

static bool fill_word(struct party *p, struct request *r)
{
    r->length = 8;
    if (!claim(p, p->stack, &r->local[0], r->length, AREA_TARGET, RDDP_ACCESS_LOCAL_WRITE))
        return false;
    r->locals = 1;
    return true;
}

static bool fill(struct party *p, struct request *r, const struct work_attr *work)
{
    switch (r->opcode) {
    case RDDP_WR_SEND:
        return (rng_one_in(&p->rng, 6) && fill_fenced(p, r)) || fill_send(p, r, work);
    case RDDP_WR_SEND_WITH_INV:
        return fill_invalidate(p, r) && fill_send(p, r, work);
    case RDDP_WR_RDMA_WRITE:
        return work->hot && rng_one_in(&p->rng, 4) ? fill_hot_write(p, r, work) : fill_write(p, r, work);
    case RDDP_WR_RDMA_READ:
        return fill_read(p, r, work);
    case RDDP_WR_ATOMIC_CMP_AND_SWP:
    case RDDP_WR_ATOMIC_FETCH_AND_ADD:
        return fill_word(p, r);
    default:
        r->length = 0;
        return fill_invalidate(p, r);
    }
}

static bool may_ask(const struct party *p, const struct work_attr *work, enum rddp_wr_opcode opcode)
{
    switch (opcode) {
    case RDDP_WR_RDMA_WRITE:
        return work->writes;
    case RDDP_WR_ATOMIC_CMP_AND_SWP:
    case RDDP_WR_ATOMIC_FETCH_AND_ADD:
        return work->reads && !is_sequence(p);
    case RDDP_WR_RDMA_READ:
        return work->reads;
    case RDDP_WR_LOCAL_INV:
        return work->invalidates;
    case RDDP_WR_SEND_WITH_INV:
        return work->sends && work->invalidates && p->peer->promised;
    default:
        return work->sends && p->peer->promised;
    }
}

static bool post_request(struct party *p, const struct work_attr *work)
{
    static const enum rddp_wr_opcode opcodes[] = {RDDP_WR_SEND,
                                                  RDDP_WR_SEND,
                                                  RDDP_WR_RDMA_WRITE,
                                                  RDDP_WR_RDMA_WRITE,
                                                  RDDP_WR_RDMA_READ,
                                                  RDDP_WR_RDMA_READ,
                                                  RDDP_WR_LOCAL_INV,
                                                  RDDP_WR_SEND_WITH_INV,
                                                  RDDP_WR_ATOMIC_CMP_AND_SWP,
                                                  RDDP_WR_ATOMIC_FETCH_AND_ADD};
    enum rddp_wr_opcode opcode = opcodes[rng_below(&p->rng, sizeof(opcodes) / sizeof(opcodes[0]))];
    uint32_t most = work->size_max;
    struct request *r;

    if (!may_ask(p, work, opcode))
        return false;
    if (is_send_opcode(opcode) && p->peer->promised->capacity < most)
        most = p->peer->promised->capacity;
    r = new_request(opcode, random_length(p, most));
    if (fill(p, r, work)) {
        random_flags(p, r);
        if (is_word_opcode(opcode))
            word_ask(p, r);
        if (party_post(p, r)) {
            if (is_word_opcode(opcode))
                p->word = r->after;
            if (r->invalidates)
                r->invalidates->doomed = true;
            return true;
        }
    }
    request_free(r);
    return false;
}

/* --- receives ------------------------------------------------------------------------------------------------ */

bool work_receive(struct party *p, uint32_t capacity, uint32_t pieces)
{
    uint32_t most = p->stack->attr.qp.recv_sge < pieces ? p->stack->attr.qp.recv_sge : pieces;
    struct receive *in = calloc(1, sizeof(*in));

    assert(in);
    in->capacity = capacity;
    if (is_sequence(p) && !rng_one_in(&p->rng, 4))
        receive_control(in, rng_one_in(&p->rng, 2) ? 1020 : rng_below(&p->rng, 1025));
    if (claim_pieces(p, in->area, &in->areas, capacity, most, AREA_TARGET, RDDP_ACCESS_LOCAL_WRITE) &&
        party_post_receive(p, in))
        return true;
    receive_free(in);
    return false;
}

void work_stir(struct party *p)
{
    struct region *r = &p->stack->region[REGION_HOT];
    uint32_t at = rng_below(&p->rng, (uint32_t)r->mr.length);

    rng_fill(&p->rng, r->mr.base + at, rng_size(&p->rng, (uint32_t)r->mr.length - at));
}

bool work_step(struct party *p, const struct work_attr *work)
{
    if (work->sends && !p->no_receives && rng_below(&p->rng, 8) < 3)
        return work_receive(p, random_length(p, work->size_max), work->pieces);
    return p->counts.requests < work->budget && post_request(p, work);
}
