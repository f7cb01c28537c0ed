/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_state.c - what becomes of a connection, step by step, and what leaves for it. */
#include <assert.h>
#include <stddef.h>

#include "base/container.h"
#include "roce/rc_requester.h"
#include "roce/rcm_inner.h"

/* --- messages -------------------------------------------------------------------------------------------------- */

void rcm_send(struct rcm *cm, struct rcm_conn *conn)
{
    rcm_list_add(&cm->output, &conn->in_output);
}

bool rcm_answer(struct rcm *cm, const struct rcm_path *path, const struct rcm_message *m)
{
    struct rcm_answer answer = {.path = *path};

    if (!rcm_encode(m, answer.mad))
        return false;
    if (cm->answer_head - cm->answer_tail == RCM_ANSWERS)
        cm->answer_tail++;
    cm->answers[cm->answer_head++ % RCM_ANSWERS] = answer;
    return true;
}

bool rcm_deny(struct rcm *cm, uint16_t reason, const void *data, uint8_t octets)
{
    const struct rcm_message *request = &cm->received;
    const struct rcm_message m = {
        .attribute = request->attribute == RCM_SIDR_REQ ? RCM_SIDR_REP : RCM_REJ,
        .transaction = request->transaction,
        .local_id = request->remote_id,
        .remote_id = request->local_id,
        .service = request->service,
        .about = request->attribute == RCM_REP ? RCM_ABOUT_REP : RCM_ABOUT_REQ,
        .reason = reason,
        .status = reason == RCM_NO_SERVICE ? RCM_SIDR_NO_SERVICE : RCM_SIDR_REJECTED,
        .data = data,
        .octets = octets,
    };

    cm->counters.refused++;
    return rcm_answer(cm, &cm->received_path, &m);
}

bool rcm_may_ask(struct rcm *cm, const struct rcm_conn *conn)
{
    if (conn->active || conn->is_real)
        return true;
    if (!cm->unasked) {
        cm->counters.withheld++;
        return false;
    }
    cm->unasked--;
    return true;
}

/* Messages come again soon. But a peer of a listener may never have asked, until it is known or established: what is
 * sent to it without a question is as little as the time-out allows, and no more than rcm_may_ask() says. */
void rcm_ask(struct rcm *cm, struct rcm_conn *conn, enum rcm_state state, uint64_t now_us)
{
    struct rcm_wait *wait = &conn->wait;

    conn->state = state;
    wait->tries = 0;
    wait->prolonged = false;
    wait->interval_us = wait->response_us;
    if ((!conn->listener || conn->is_real) && wait->interval_us > RCM_RESEND_FIRST_US)
        wait->interval_us = RCM_RESEND_FIRST_US;
    rcm_timer_set(&cm->first, &conn->timer, now_us + wait->interval_us);
    if (state == RCM_REP_SENT || rcm_may_ask(cm, conn)) /* a REP answers */
        rcm_send(cm, conn);
}

bool rcm_output(struct rcm *cm, struct rcm_path *path, uint8_t *p)
{
    struct rcm_conn *conn;

    if (cm->answer_head != cm->answer_tail) {
        const struct rcm_answer *answer = &cm->answers[cm->answer_tail++ % RCM_ANSWERS];

        *path = answer->path;
        rcm_packet(p, answer->mad, cm->psn++);
        return true;
    }
    if (rcm_list_is_empty(&cm->output))
        return false;
    conn = container_of(cm->output.next, struct rcm_conn, in_output);
    rcm_list_remove(&conn->in_output);
    *path = conn->path;
    rcm_packet(p, conn->out, cm->psn++);
    return true;
}

/* --- states ---------------------------------------------------------------------------------------------------- */

void rcm_notify(struct rcm *cm, struct rcm_conn *conn, enum rcm_event_kind kind)
{
    conn->news |= 1u << kind;
    rcm_list_add(&cm->news, &conn->in_news);
}

static void leave_list(struct rcm *cm, struct rcm_conn *conn)
{
    rcm_list_remove(&conn->in_list);
    if (conn->listener) {
        conn->listener->pending_count--;
        conn->listener->known_count -= conn->path.is_known;
    }
    conn->listener = NULL;
    if (conn->state == RCM_TIMEWAIT)
        cm->resting_count--;
}

/* Takes it out of everything but the events. */
static void withdraw(struct rcm *cm, struct rcm_conn *conn)
{
    leave_list(cm, conn);
    rcm_timer_set(&cm->first, &conn->timer, RCM_NEVER);
    rcm_list_remove(&conn->by_local);
    rcm_list_remove(&conn->by_remote);
    rcm_list_remove(&conn->by_qpn);
    rcm_list_remove(&conn->in_output);
    conn->state = RCM_CLOSED;
}

void rcm_begin(struct rcm_conn *conn, const struct rcm_path *path, uint8_t response_timeout, uint8_t retries)
{
    uint8_t code = response_timeout;

    assert(conn->state == RCM_CLOSED && !conn->news);
    code = code < RCM_TIMEOUT_LEAST ? RCM_TIMEOUT_LEAST : code;
    code = code > RCM_TIMEOUT_MOST ? RCM_TIMEOUT_MOST : code;
    *conn = (struct rcm_conn){
        .of = conn->of,
        .path = *path,
        .wait = {.response_us = rc_timeout_us(code), .retries = retries},
        .timer = {.due_us = RCM_NEVER},
    };
}

void rcm_forget(struct rcm *cm, struct rcm_conn *conn)
{
    if (conn->state != RCM_CLOSED)
        withdraw(cm, conn);
    rcm_list_remove(&conn->in_news);
    conn->news = 0;
    if (cm->received_conn == conn)
        cm->received_conn = NULL;
}

void rcm_close(struct rcm *cm, struct rcm_conn *conn)
{
    withdraw(cm, conn);
    rcm_notify(cm, conn, RCM_EVENT_GONE);
}

void rcm_cancel(struct rcm *cm, struct rcm_conn *conn)
{
    const struct rcm_message m = {.attribute = RCM_REJ,
                                  .transaction = conn->transaction,
                                  .local_id = conn->local_id,
                                  .about = RCM_ABOUT_OTHER,
                                  .reason = RCM_TIMED_OUT};

    if (!conn->datagram)
        rcm_answer(cm, &conn->path, &m);
    rcm_close(cm, conn);
}

void rcm_rest(struct rcm *cm, struct rcm_conn *conn, uint64_t us, uint64_t now_us)
{
    leave_list(cm, conn);
    if (cm->resting_count == RCM_RESTING_MAX)
        rcm_close(cm, container_of(cm->resting.next, struct rcm_conn, in_list));
    conn->state = RCM_TIMEWAIT;
    rcm_list_remove(&conn->in_output);
    rcm_list_add(&cm->resting, &conn->in_list);
    cm->resting_count++;
    rcm_timer_set(&cm->first, &conn->timer, now_us + us);
}

void rcm_establish(struct rcm *cm, struct rcm_conn *conn)
{
    leave_list(cm, conn);
    if (!conn->active && !conn->is_real && cm->unasked < RCM_UNASKED_MAX)
        cm->unasked++;
    conn->is_real = true;
    conn->state = RCM_ESTABLISHED;
    rcm_timer_set(&cm->first, &conn->timer, RCM_NEVER);
    rcm_add_qpn(cm, conn);
}

/* The peer's side of it is over, or it does not answer any more. */
void rcm_part(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us)
{
    rcm_notify(cm, conn, RCM_EVENT_DISCONNECTED);
    rcm_rest(cm, conn, conn->timewait_us, now_us);
}

bool rcm_write(struct rcm_conn *conn, struct rcm_message *m)
{
    m->transaction = m->attribute == RCM_DREQ || m->attribute == RCM_DREP ? conn->leave_transaction : conn->transaction;
    m->local_id = conn->local_id;
    m->remote_id = conn->remote_id;
    return rcm_encode(m, conn->out);
}

/* --- time-outs -------------------------------------------------------------------------------------------------- */

/* The last resend was not answered either. */
static void rcm_give_up(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us)
{
    struct rcm_message m = {.attribute = RCM_REJ, .about = RCM_ABOUT_OTHER, .reason = RCM_TIMED_OUT};

    if (conn->state == RCM_DREQ_SENT) {
        rcm_part(cm, conn, now_us);
        return;
    }
    rcm_notify(cm, conn, RCM_EVENT_UNREACHABLE);
    if (conn->active) {
        rcm_cancel(cm, conn);
        return;
    }
    rcm_write(conn, &m);
    rcm_rest(cm, conn, 2 * conn->wait.response_us, now_us);
    if (rcm_may_ask(cm, conn))
        rcm_send(cm, conn);
}

static void wait_again(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us)
{
    struct rcm_wait *wait = &conn->wait;

    if (wait->interval_us < wait->response_us) {
        wait->interval_us = wait->interval_us > wait->response_us / 2 ? wait->response_us : 2 * wait->interval_us;
    } else if (wait->tries++ == wait->retries) {
        rcm_give_up(cm, conn, now_us);
        return;
    }
    rcm_timer_set(&cm->first, &conn->timer, now_us + wait->interval_us);
    if (!rcm_may_ask(cm, conn))
        return;
    cm->counters.resent++;
    rcm_send(cm, conn);
}

uint64_t rcm_deadline(const struct rcm *cm)
{
    return cm->first ? cm->first->due_us : RCM_NEVER;
}

void rcm_tick(struct rcm *cm, uint64_t now_us)
{
    cm->received_conn = NULL;
    while (rcm_deadline(cm) <= now_us) {
        struct rcm_conn *conn = container_of(cm->first, struct rcm_conn, timer);

        if (conn->state == RCM_TIMEWAIT)
            rcm_close(cm, conn);
        else
            wait_again(cm, conn, now_us);
    }
}
