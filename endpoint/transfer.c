/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transfer.c - moves octets between a link and the connection on it. */
#include <errno.h>
#include <string.h>

#include "endpoint/objects.h"
#include "endpoint/transfer.h"

enum {
    TO_PLACE_LEAST = 8192, /* the least payload that is read straight to its place */
    APART_READS = 4,       /* after such a payload this many reads expect another one ... */
    APART_OCTETS = 1024,   /* ... and read at most this many octets behind it into the stage */
    EMSS_AGE_US = 100000,  /* the link's segment size is looked up this often */
};

/* --- receiving: every link reads into the one stage ---------------------------------------------------------- */

/* Another connection needs the stage: moves what its owner has left there into the owner's `carry`. The caller is the
 * driver; the owner's doorbell is not needed, since only a driver touches `carry`. */
static void transfer_evict(struct loop *loop)
{
    struct stage *stage = &loop->stage;
    struct endpoint *owner = stage->owner;

    if (owner && stage->octets) {
        owner->carry.at = pool_get(&loop->carries);
        if (owner->carry.at) {
            memcpy(owner->carry.at, stage->buffer + stage->from, stage->octets);
            owner->carry.octets = stage->octets;
        } else {
            owner->carry.is_lost = true; /* its own turn, which is next, ends the connection */
            reactor_set_timer(&loop->reactor, &owner->timer, reactor_now_us());
        }
    }
    stage->owner = NULL;
    stage->from = stage->octets = 0;
}

static void occupy(struct endpoint *endpoint)
{
    struct stage *stage = &endpoint->loop->stage;

    if (stage->owner != endpoint) {
        transfer_evict(endpoint->loop);
        stage->owner = endpoint;
        if (endpoint->carry.at) {
            memcpy(stage->buffer, endpoint->carry.at, endpoint->carry.octets);
            stage->octets = endpoint->carry.octets;
            pool_put(&endpoint->loop->carries, endpoint->carry.at);
            endpoint->carry.at = NULL;
        }
    }
    if (stage->from + stage->octets > WIRE_UNIT_MAX) {
        memmove(stage->buffer, stage->buffer + stage->from, stage->octets);
        stage->from = 0;
    }
}

/* Offers the connection what the stage holds for it; it takes what it can. */
static void transfer_eat(struct endpoint *endpoint)
{
    struct stage *stage = &endpoint->loop->stage;
    struct conn *conn = &endpoint->conn;
    uint8_t *from = stage->buffer + stage->from;
    size_t eaten = conn_rx_straight(conn, from, stage->octets);

    if (!conn->is_straight)
        eaten += conn_rx(conn, from + eaten, stage->octets - eaten, reactor_now_us());
    stage->from += (uint32_t)eaten;
    stage->octets -= (uint32_t)eaten;
    if (!stage->octets)
        stage->from = 0;
}

/* The place that a payload was read to has gone, and with it the connection: what has come of the unit is dropped. */
static ssize_t drop_unit(struct endpoint *endpoint, bool *full)
{
    ssize_t n = endpoint->loop->stage.octets;

    transfer_eat(endpoint);
    *full = false;
    return n;
}

/* Reads once, a large payload straight to its place. Returns the octets, or as tcp_recv(); *full: there may be more. */
static ssize_t receive_to_stage(struct endpoint *endpoint, bool *full)
{
    struct stage *stage = &endpoint->loop->stage;
    struct conn *conn = &endpoint->conn;
    struct conn_place place = {.octets = 0};
    uint32_t space = STAGE_OCTETS, placed = 0;
    uint8_t *end;
    ssize_t n;

    occupy(endpoint);
    if (stage->octets && endpoint->link->kind->reads_to_places) {
        if (conn_read_to_place(conn, stage->buffer + stage->from, &stage->octets, TO_PLACE_LEAST, &place,
                               reactor_now_us()))
            endpoint->apart = APART_READS;
        else if (conn->life.state >= CONN_TERMINATING)
            return drop_unit(endpoint, full);
    }
    if (endpoint->apart) {
        endpoint->apart -= !place.octets;
        space = place.behind + APART_OCTETS;
    }
    end = stage->buffer + stage->from + stage->octets;
    n = link_receive(endpoint->link, place.octets ? &(struct link_buffers){place.at, place.octets, end, space}
                                                  : &(struct link_buffers){.at = end, .octets = space});
    if (n <= 0)
        return n;
    *full = n == place.octets + space;
    if (place.octets) {
        placed = n < place.octets ? (uint32_t)n : place.octets;
        conn_filled(conn, placed);
    }
    stage->octets += (uint32_t)n - placed;
    transfer_eat(endpoint);
    return n;
}

void transfer_eat_again(struct endpoint *endpoint)
{
    if (!endpoint->link->kind->in_order) {
        (void)link_present(endpoint->link);
        return;
    }
    occupy(endpoint);
    transfer_eat(endpoint);
}

uint32_t transfer_staged(const struct endpoint *endpoint)
{
    const struct stage *stage = &endpoint->loop->stage;

    return stage->owner == endpoint ? stage->octets : endpoint->carry.at ? endpoint->carry.octets : 0;
}

void transfer_unstage(struct endpoint *endpoint, uint8_t *to)
{
    struct stage *stage = &endpoint->loop->stage;

    occupy(endpoint);
    memcpy(to, stage->buffer + stage->from, stage->octets);
    stage->owner = NULL;
    stage->from = stage->octets = 0;
}

/* Once a successor is due, it does the reading. */
bool transfer_wants(const struct endpoint *endpoint)
{
    return !endpoint->carry.is_lost && !endpoint_succeeds(endpoint) && conn_wants_rx(&endpoint->conn);
}

bool transfer_receive(struct endpoint *endpoint)
{
    bool full = true, is_straight = true;
    struct conn *conn = &endpoint->conn;
    size_t octets = 0;

    conn->is_straight = false;
    if (!endpoint->link->kind->in_order)
        return link_present(endpoint->link);
    while (full && octets < TURN_OCTETS && transfer_wants(endpoint)) {
        ssize_t n = receive_to_stage(endpoint, &full);

        if (n == -EAGAIN)
            break;
        is_straight &= n > 0 && conn->is_straight;
        if (n < 0)
            conn_lost(conn, transfer_fault_of((int)n));
        else if (n == 0)
            conn_rx_end(conn, endpoint->loop->stage.octets, reactor_now_us());
        else
            loop_note_receipt(endpoint->loop, endpoint);
        octets += n > 0 ? (size_t)n : 1;
        if (n <= 0)
            break;
    }
    conn->is_straight = is_straight;
    return octets;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

static bool lend_out(struct endpoint *endpoint)
{
    struct conn *conn = &endpoint->conn;
    struct out *out;

    if (conn->life.out)
        return true;
    out = pool_get(&endpoint->loop->outs);
    if (!out)
        return false;
    out_init(out, (uint8_t *)out + OUT_BUFFER_AT);
    conn->life.out = out;
    return true;
}

void transfer_take_out_back(struct endpoint *endpoint)
{
    if (!endpoint->conn.life.out)
        return;
    out_drop(endpoint->conn.life.out);
    pool_put(&endpoint->loop->outs, endpoint->conn.life.out);
    endpoint->conn.life.out = NULL;
}

void transfer_look_up_emss(struct endpoint *endpoint, uint64_t now_us)
{
    bool is_cheap = !endpoint->link->kind->in_order; /* and any packet may have changed the size */

    if (!is_cheap && endpoint->emss_us && now_us - endpoint->emss_us < EMSS_AGE_US)
        return;
    endpoint->emss_us = now_us;
    endpoint->conn.attr.emss = link_segment_size(endpoint->link);
}

static ssize_t send_units(struct link *link, const struct out *out)
{
    struct out_cursor at = {.units = 0};
    struct out_unit unit;
    ssize_t n, sent = 0;

    while (out_next_unit(out, &at, &unit)) {
        n = link_send(link, unit.span, unit.spans);
        if (n < 0)
            return sent ? sent : n;
        sent += n;
        if ((size_t)n < unit.octets)
            break;
    }
    return sent;
}

static ssize_t transfer_send_out(struct link *link, const struct out *out)
{
    return link->kind->keeps_units ? send_units(link, out) : link_send(link, out->span + out->first, out->spans);
}

/* A link that the peer has reset may still hold what he had sent before: only the driver reads, and he does so first.
 */
static void fail_to_send(struct endpoint *endpoint, int error)
{
    if (endpoint->link->kind->in_order && (error == -ECONNRESET || error == -EPIPE))
        endpoint->refused = transfer_fault_of(error);
    else
        conn_lost(&endpoint->conn, transfer_fault_of(error));
}

void transfer_end_refused(struct endpoint *endpoint)
{
    while (transfer_wants(endpoint) && transfer_receive(endpoint))
        ;
    conn_lost(&endpoint->conn, endpoint->refused);
}

/* Sends `out` once. Returns the octets that left; 0: the link takes no more, or has ended. */
static size_t transfer_send_once(struct endpoint *endpoint)
{
    struct out *out = endpoint->conn.life.out;
    ssize_t n = transfer_send_out(endpoint->link, out);

    if (n == -EFAULT && out_is_volatile(out)) {
        out_own(out);
        n = transfer_send_out(endpoint->link, out);
    }
    endpoint->blocked = n == -EAGAIN;
    if (n < 0 && n != -EAGAIN)
        fail_to_send(endpoint, (int)n);
    return n > 0 ? (size_t)n : 0;
}

bool transfer_send(struct endpoint *endpoint, uint64_t now_us)
{
    struct conn *conn = &endpoint->conn;
    size_t n;

    if (!lend_out(endpoint)) {
        conn_lost(conn, FAULT_MEMORY);
        return false;
    }
    conn_fill(conn, now_us);
    n = conn->life.out->octets ? transfer_send_once(endpoint) : 0;
    if (!n)
        return false;
    conn_sent(conn, n, now_us);
    atomic_store_explicit(&endpoint->sent_us, reactor_now_us(), memory_order_relaxed);
    return true;
}

/* Has no turn anything to do but to send, and is the one that was begun not over? */
static bool sends_straight(const struct endpoint *endpoint)
{
    const struct conn *conn = &endpoint->conn;

    return endpoint->is_up && endpoint->emss_us && !endpoint->blocked && !endpoint->refused && !endpoint->successor &&
           endpoint->link->kind->in_order && conn_sends_straight(conn) &&
           conn->agreed.tx_pos - endpoint->turn.begun < TURN_OCTETS;
}

bool transfer_post(struct endpoint *endpoint, uint64_t *now_us)
{
    struct conn *conn = &endpoint->conn;
    size_t n;

    if (!sends_straight(endpoint) || !lend_out(endpoint))
        return false;
    conn_fill_segments(conn);
    n = conn->life.out->octets ? transfer_send_once(endpoint) : 0;
    if (!n)
        return false;
    *now_us = reactor_now_us();
    conn_sent(conn, n, *now_us);
    atomic_store_explicit(&endpoint->sent_us, *now_us, memory_order_relaxed);
    if (conn->life.out->octets || !qp_has_cut_all(conn->life.qp))
        return false;
    transfer_take_out_back(endpoint);
    return sends_straight(endpoint) && *now_us - endpoint->emss_us < EMSS_AGE_US;
}
