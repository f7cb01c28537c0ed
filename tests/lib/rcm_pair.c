/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_pair.c - two connection managers and their applications. */
#include "tests/lib/rcm_pair.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/container.h"
#include "tests/lib/rcm_world.h"

static struct rcm_path path_from(uint32_t at)
{
    struct rcm_path path = {
        .local = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .peer = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .peer_port = ROCE_PORT};

    path.local[15] = (uint8_t)(1 + at);
    path.peer[15] = (uint8_t)(1 + !at);
    return path;
}

void rcm_pair_note(struct rcm_pair *w, uint32_t at, const char *what)
{
    if (w->trail_length + 32 > TRAIL)
        w->trail_length = 0;
    w->trail_length += (uint32_t)snprintf(w->trail + w->trail_length, 32, " %u:%.24s", at, what);
}

static uint64_t random_of_machine(void *of)
{
    return rng_next(of);
}

static unsigned bit(enum rcm_event_kind kind)
{
    return 1u << kind;
}

void rcm_pair_restart(struct rcm_pair *w, uint32_t at, uint32_t qpn)
{
    struct machine *m = &w->machine[at];
    const struct rcm_attr attr = {.id_mask = UINT32_MAX, .random = random_of_machine, .of = &m->rng};

    rcm_init(&m->cm, &attr);
    memset(m->party, 0, sizeof(m->party));
    m->listener = (struct rcm_listener){.service = SERVICE_OF_ALL, .backlog = w->attr.backlog, .rdma_cm = true};
    assert_int_equal(rcm_listen(&m->cm, &m->listener), 0);
    m->qpn = qpn;
}

void rcm_pair_open(struct rcm_pair *w, const struct rcm_pair_attr *attr, uint64_t seed)
{
    struct rng rng = {seed};

    memset(w, 0, sizeof(*w));
    w->attr = *attr;
    w->now_us = 1000000;
    for (uint32_t i = 0; i < 2; i++) {
        w->machine[i].rng = rng_fork(&rng);
        rcm_pair_restart(w, i, 0x100 * (i + 1));
    }
}

static struct party *new_party(struct machine *m)
{
    for (uint32_t i = 0; i < PARTIES; i++)
        if (!m->party[i].used) {
            memset(&m->party[i], 0, sizeof(m->party[i]));
            m->party[i].used = true;
            m->party[i].reads = rng_below(&m->rng, 20);
            return &m->party[i];
        }
    return NULL;
}

static struct rcm_terms terms_of(const struct machine *m, const struct party *p)
{
    return (struct rcm_terms){.qpn = m->qpn,
                              .psn = 1,
                              .responder_resources = (uint8_t)p->reads,
                              .initiator_depth = (uint8_t)(p->reads / 2),
                              .mtu = 3,
                              .pkey = BTH_PKEY_DEFAULT};
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* Events that may follow those that a connection has had. One that ended without being established, or of which the
 * application was told that it is over, has no other but GONE. */
static void check_event(const struct party *p, enum rcm_event_kind kind)
{
    unsigned over =
        bit(RCM_EVENT_REJECTED) | bit(RCM_EVENT_UNREACHABLE) | bit(RCM_EVENT_GAVE_WAY) | bit(RCM_EVENT_DISCONNECTED);
    unsigned active = bit(RCM_EVENT_ANSWERED), passive = bit(RCM_EVENT_ESTABLISHED) | bit(RCM_EVENT_GAVE_WAY);

    assert_true(p->used);
    assert_false(p->seen & bit(RCM_EVENT_GONE));
    assert_true(kind == RCM_EVENT_DOUBTED || !(p->seen & bit(kind)));
    assert_true(kind == RCM_EVENT_GONE || !(p->seen & over));
    assert_false((p->conn.active ? passive : active) & bit(kind));
    if (kind == RCM_EVENT_DISCONNECTED)
        assert_true(p->up || p->left);
    if (kind == RCM_EVENT_REJECTED || kind == RCM_EVENT_UNREACHABLE || kind == RCM_EVENT_GAVE_WAY)
        assert_false(p->up);
    if (kind == RCM_EVENT_GONE)
        assert_true(p->left || (p->seen & over));
}

static void take_own(struct rcm_pair *w, uint32_t at, const struct rcm_event *e)
{
    struct party *p = container_of(e->conn, struct party, conn);

    check_event(p, e->kind);
    assert_false(w->settles && !p->waits && e->kind == RCM_EVENT_UNREACHABLE);
    p->seen |= bit(e->kind);
    if (e->kind == RCM_EVENT_ESTABLISHED) {
        p->up = true;
        w->machine[at].established++;
    } else if (e->kind == RCM_EVENT_DISCONNECTED) {
        p->up = false;
    } else if (e->kind == RCM_EVENT_GONE) {
        assert_int_equal(p->conn.state, RCM_CLOSED);
        p->used = p->up = false;
    } else if (e->kind == RCM_EVENT_ANSWERED) {
        assert_non_null(e->message);
        if (w->answered)
            w->answered(w, at, p);
    } else {
        w->machine[at].failed += e->kind != RCM_EVENT_DOUBTED;
    }
}

/* A request is not told of twice while it is known. */
static void take_request_of(struct rcm_pair *w, uint32_t at, const struct rcm_event *e)
{
    struct machine *m = &w->machine[at];
    struct party *p;

    for (uint32_t i = 0; i < PARTIES; i++)
        assert_false(m->party[i].used && !m->party[i].conn.active &&
                     m->party[i].conn.remote_id == e->message->local_id);
    p = new_party(m);
    if (!p) {
        assert_int_equal(rcm_refuse(&m->cm, RCM_NO_RESOURCES, NULL, 0), 0);
        return;
    }
    rcm_take(&m->cm, &p->conn);
    assert_true(m->listener.pending_count <= m->listener.backlog);
    if (w->asked)
        w->asked(w, at, p);
}

static struct flying *new_flying(struct rcm_pair *w)
{
    for (uint32_t i = 0; i < FLYING; i++)
        if (!w->flying[i].used)
            return &w->flying[i];
    return NULL;
}

/* What finds no place is lost. */
static void send_flying(struct rcm_pair *w, const struct flying *what)
{
    struct flying *f = new_flying(w), copy = *what;

    copy.used = true;
    copy.at_us = w->now_us;
    if (f && (!w->leaves || w->leaves(w, &copy)))
        *f = copy;
}

static void serve(struct rcm_pair *w, uint32_t at)
{
    struct machine *m = &w->machine[at];
    uint8_t packet[RCM_PACKET_OCTETS];
    struct rcm_event e;
    struct rcm_path path, expected = path_from(at);

    while (rcm_event(&m->cm, &e)) {
        if (e.kind == RCM_EVENT_REQUEST)
            take_request_of(w, at, &e);
        else
            take_own(w, at, &e);
    }
    while (rcm_output(&m->cm, &path, packet)) {
        struct flying f = {.to = !at};

        assert_memory_equal(path.peer, expected.peer, 16);
        memcpy(f.mad, packet + BTH_OCTETS + DETH_OCTETS, RCM_MAD_OCTETS);
        send_flying(w, &f);
    }
}

/* --- applications ------------------------------------------------------------------------------------------------- */

bool rcm_pair_call(struct rcm_pair *w, uint32_t at)
{
    struct machine *m = &w->machine[at];
    struct party *p = new_party(m);
    struct rcm_connect connect = {.path = path_from(at),
                                  .service = SERVICE_OF_ALL,
                                  .rdma_cm = true,
                                  .response_timeout = w->attr.response_timeout,
                                  .cm_retries = w->attr.cm_retries,
                                  .timewait_us = w->attr.timewait_us};

    if (!p)
        return false;
    rcm_pair_note(w, at, "call");
    connect.terms = terms_of(m, p);
    m->qpn++;
    assert_int_equal(rcm_connect(&m->cm, &p->conn, &connect, w->now_us), 0);
    serve(w, at);
    return true;
}

void rcm_pair_accept(struct rcm_pair *w, uint32_t at, struct party *p)
{
    struct machine *m = &w->machine[at];
    const struct rcm_accept accept = {.terms = terms_of(m, p), .timewait_us = w->attr.timewait_us};

    rcm_pair_note(w, at, "accept");
    m->qpn++;
    assert_int_equal(rcm_accept(&m->cm, &p->conn, &accept, w->now_us), 0);
    serve(w, at);
}

void rcm_pair_reject(struct rcm_pair *w, uint32_t at, struct party *p)
{
    rcm_pair_note(w, at, "reject");
    p->left = true;
    assert_int_equal(rcm_reject(&w->machine[at].cm, &p->conn, RCM_CONSUMER, "no", 2, w->now_us), 0);
    serve(w, at);
}

void rcm_pair_confirm(struct rcm_pair *w, uint32_t at, struct party *p)
{
    rcm_pair_note(w, at, "confirm");
    assert_int_equal(rcm_confirm(&w->machine[at].cm, &p->conn), 0);
    p->up = true;
    w->machine[at].established++;
    serve(w, at);
}

void rcm_pair_disconnect(struct rcm_pair *w, uint32_t at, struct party *p)
{
    rcm_pair_note(w, at, "disconnect");
    p->left = true;
    rcm_disconnect(&w->machine[at].cm, &p->conn, w->now_us);
    serve(w, at);
}

bool rcm_pair_send_data(struct rcm_pair *w, uint32_t at, struct party *p)
{
    const struct flying f = {.is_data = true, .to = !at, .qpn = p->conn.peer_qpn, .from_qpn = p->conn.qpn};

    if (!p->up)
        return false;
    send_flying(w, &f);
    return true;
}

static struct party *find_party(struct machine *m, uint32_t qpn, uint32_t peer_qpn)
{
    for (uint32_t i = 0; i < PARTIES; i++) {
        struct party *p = &m->party[i];
        enum rcm_state state = p->used ? p->conn.state : RCM_CLOSED;

        if ((state == RCM_REP_SENT || state == RCM_ESTABLISHED || state == RCM_DREQ_SENT) && p->conn.qpn == qpn &&
            p->conn.peer_qpn == peer_qpn)
            return p;
    }
    return NULL;
}

struct party *rcm_pair_partner(struct rcm_pair *w, uint32_t at, const struct party *p)
{
    return find_party(&w->machine[!at], p->conn.peer_qpn, p->conn.qpn);
}

/* --- the path, and time ------------------------------------------------------------------------------------------- */

static const char *name_of(const uint8_t *mad)
{
    static const char *const names[RCM_ATTRIBUTES] = {"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP"};

    return names[mad[17] - RCM_REQ];
}

void rcm_pair_deliver(struct rcm_pair *w, struct flying *f, bool again)
{
    struct machine *m = &w->machine[f->to];
    struct rcm_path path = path_from(f->to);
    struct flying got = *f;

    rcm_pair_note(w, f->to, got.is_data ? "data" : name_of(got.mad));
    f->used = again;
    if (got.is_data) {
        struct party *p = find_party(m, got.qpn, got.from_qpn);

        if (p)
            rcm_communicates(&m->cm, &p->conn);
    } else {
        rcm_input(&m->cm, &path, got.mad, sizeof(got.mad), w->now_us);
    }
    serve(w, got.to);
}

uint64_t rcm_pair_deadline(const struct rcm_pair *w)
{
    uint64_t a = rcm_deadline(&w->machine[0].cm), b = rcm_deadline(&w->machine[1].cm);

    return a < b ? a : b;
}

void rcm_pair_tick(struct rcm_pair *w)
{
    rcm_pair_note(w, 0, "tick");
    for (uint32_t i = 0; i < 2; i++) {
        rcm_tick(&w->machine[i].cm, w->now_us);
        serve(w, i);
    }
}

/* --- the end of a run --------------------------------------------------------------------------------------------- */

static bool deliver_all(struct rcm_pair *w)
{
    bool any = false;

    for (uint32_t i = 0; i < FLYING; i++)
        if (w->flying[i].used) {
            rcm_pair_deliver(w, &w->flying[i], false);
            any = true;
        }
    return any;
}

static void answer_what_waits(struct rcm_pair *w)
{
    for (uint32_t i = 0; i < 2 * PARTIES; i++) {
        struct party *p = &w->machine[i % 2].party[i / 2];

        if (p->used && p->conn.state == RCM_REQ_RECEIVED)
            rcm_pair_accept(w, i % 2, p);
        if (p->used && p->conn.state == RCM_REP_RECEIVED)
            rcm_pair_confirm(w, i % 2, p);
    }
}

/* Until nothing happens for a while. */
static void go_on(struct rcm_pair *w)
{
    uint64_t due_us;

    do {
        while (deliver_all(w))
            answer_what_waits(w);
        answer_what_waits(w);
        if (deliver_all(w))
            continue;
        due_us = rcm_pair_deadline(w);
        if (due_us == RCM_NEVER)
            return;
        w->now_us = due_us > w->now_us ? due_us : w->now_us;
        rcm_pair_tick(w);
    } while (true);
}

static void check_agreement(struct rcm_pair *w)
{
    for (uint32_t i = 0; i < 2 * PARTIES; i++) {
        const struct party *p = &w->machine[i % 2].party[i / 2], *other;

        assert_int_equal(p->used, p->up);
        if (!p->used)
            continue;
        assert_int_equal(p->conn.state, RCM_ESTABLISHED);
        other = rcm_pair_partner(w, i % 2, p);
        assert_true(other && other->up && other->conn.active != p->conn.active);
        assert_true(other->conn.local_id == p->conn.remote_id && other->conn.remote_id == p->conn.local_id);
        assert_true(other->conn.initiator_depth == p->conn.responder_resources);
    }
}

/* Those whose peer is gone find out: data are not acknowledged. */
static void leave_the_gone(struct rcm_pair *w)
{
    for (uint32_t i = 0; i < 2 * PARTIES; i++) {
        struct party *p = &w->machine[i % 2].party[i / 2];

        if (p->up && !rcm_pair_partner(w, i % 2, p))
            rcm_pair_disconnect(w, i % 2, p);
    }
}

void rcm_pair_settle(struct rcm_pair *w)
{
    w->asked = w->answered = NULL;
    w->leaves = NULL;
    w->settles = true;
    rcm_pair_note(w, 0, "settle");
    for (uint32_t i = 0; i < 2 * PARTIES; i++) {
        struct party *p = &w->machine[i % 2].party[i / 2];

        p->waits = (p->conn.state == RCM_REQ_SENT || p->conn.state == RCM_REP_SENT) &&
                   p->conn.wait.tries == p->conn.wait.retries;
    }
    go_on(w);
    leave_the_gone(w);
    go_on(w);
    check_agreement(w);
    for (uint32_t i = 0; i < 2 * PARTIES; i++)
        if (w->machine[i % 2].party[i / 2].used)
            rcm_pair_disconnect(w, i % 2, &w->machine[i % 2].party[i / 2]);
    go_on(w);
    for (uint32_t i = 0; i < 2 * PARTIES; i++)
        assert_false(w->machine[i % 2].party[i / 2].used);
    for (uint32_t i = 0; i < 2; i++)
        rcm_assert_empty(&w->machine[i].cm);
}
