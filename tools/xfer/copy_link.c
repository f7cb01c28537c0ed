/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy_link.c - messages under credits: posts and receives them, and splits them into records. */
#include <assert.h>
#include <string.h>

#include "tools/xfer/copy_link.h"
#include "tools/xfer/rdma_ring.h"

/* Kinds of completions, in the upper half of wr_id. */
enum { WR_RECEIVE = 1, WR_SEND, WR_READ };

static uint64_t wr_id(unsigned kind, unsigned index)
{
    return (uint64_t)kind << 32 | index;
}

static uint8_t *receive_at(const struct xfer_link *link, unsigned i)
{
    return link->messages.at + (size_t)i * XFER_MESSAGE;
}

static uint8_t *send_at(const struct xfer_link *link, unsigned i)
{
    return link->messages.at + (size_t)(XFER_RECEIVES + i % LINK_SENDS) * XFER_MESSAGE;
}

static void link_lose(struct xfer_link *link, const char *why)
{
    if (link->state != LINK_UP)
        return;
    link->state = LINK_LOST;
    snprintf(link->trouble, sizeof(link->trouble), "%s", why);
}

bool xfer_link_blame(struct xfer_link *link, const char *what)
{
    if (link->state == LINK_UP) {
        link->state = LINK_BROKEN;
        snprintf(link->trouble, sizeof(link->trouble), "protocol error: %s", what);
    }
    return false;
}

int xfer_link_open(struct xfer_link *link, struct tool_endpoint *endpoint)
{
    *link = (struct xfer_link){.endpoint = endpoint, .credits = XFER_RECEIVES};
    link->rx_ns = link->tx_ns = clock_ns();
    link->out.queue[0].length = XFER_HEAD;
    return region_make(endpoint, (size_t)(XFER_RECEIVES + LINK_SENDS) * XFER_MESSAGE, RDDP_ACCESS_LOCAL_WRITE,
                       &link->messages);
}

void xfer_link_close(struct xfer_link *link)
{
    region_free(&link->ring);
    region_free(&link->messages);
}

/* Each message is a Send with up to two Writes; each receive leads to up to two Reads. */
void xfer_link_qp_attr(struct rddp_qp_attr *attr)
{
    rddp_qp_attr_init(attr);
    attr->max_send_wr = 3 * LINK_SENDS + 2 * XFER_RECEIVES;
    attr->max_recv_wr = XFER_RECEIVES;
    attr->max_send_sge = attr->max_recv_sge = 1;
}

static int post_receive(struct xfer_link *link, struct rddp_qp *qp, unsigned buffer)
{
    struct rddp_sge sge = region_sge(&link->messages, (size_t)buffer * XFER_MESSAGE, XFER_MESSAGE);
    struct rddp_recv_wr wr = {.wr_id = wr_id(WR_RECEIVE, buffer), .sg_list = &sge, .num_sge = 1}, *bad;
    return rddp_post_recv(qp, &wr, &bad);
}

int xfer_link_prepare(struct rddp_qp *qp, void *user)
{
    struct xfer_link *link = user;
    for (unsigned i = 0; i < XFER_RECEIVES; i++) {
        int error = post_receive(link, qp, i);
        if (error)
            return fail(EXIT_FAILED, "cannot post a receive: %s", error_text(error));
    }
    link->qp = qp;
    return 0;
}

/* --- out ----------------------------------------------------------------------------------------------------- */

static bool link_post(struct xfer_link *link, struct rddp_send_wr *wr)
{
    struct rddp_send_wr *bad;
    int error = rddp_post_send(link->qp, wr, &bad);
    if (error)
        link_lose(link, error_text(error));
    return !error;
}

/* The last credit is spent only on a message that grants credits, so that both sides can always go on. */
static bool link_may_send(const struct xfer_link *link)
{
    return link->credits > 1 || (link->credits == 1 && link->owed);
}

static void send_closed(struct xfer_link *link)
{
    while (link->state == LINK_UP && link->out.send != link->out.fill && link_may_send(link)) {
        unsigned i = link->out.send;
        const struct link_out *out = &link->out.queue[i % LINK_SENDS];
        struct xfer_head head = {.length = out->length,
                                 .credits = (uint16_t)link->owed,
                                 .released = link->taken,
                                 .from = out->from,
                                 .to = out->to};
        xfer_head_encode(send_at(link, i), &head);
        struct rddp_send_wr wr[3], *last = ring_writes(link, out->from, out->to, wr);
        struct rddp_sge sge = region_sge(&link->messages, (size_t)(send_at(link, i) - link->messages.at), out->length);
        *last = (struct rddp_send_wr){.wr_id = wr_id(WR_SEND, i),
                                      .sg_list = &sge,
                                      .num_sge = 1,
                                      .opcode = RDDP_WR_SEND,
                                      .send_flags = RDDP_SEND_SIGNALED};
        if (!link_post(link, wr))
            return;
        link->out.send++;
        link->credits--;
        link->owed = 0;
        link->reported = head.released;
        link->tx_ns = clock_ns();
    }
}

/* Closes the message that is being filled. It is sent at once if there is a credit. */
static void close_message(struct xfer_link *link)
{
    struct link_out *out = &link->out.queue[link->out.fill % LINK_SENDS];
    out->from = link->queued;
    out->to = link->queued = link->put;
    link->out.fill++;
    link->out.queue[link->out.fill % LINK_SENDS] = (struct link_out){.length = XFER_HEAD};
    send_closed(link);
}

static bool has_spare(const struct xfer_link *link)
{
    return link->out.fill - link->out.done < LINK_SENDS - 1;
}

bool xfer_link_can_put(struct xfer_link *link)
{
    if (link->state != LINK_UP)
        return false;
    if (link->out.queue[link->out.fill % LINK_SENDS].length + XFER_RECORD_MAX <= XFER_MESSAGE)
        return true;
    if (!has_spare(link))
        return false;
    close_message(link);
    return true;
}

void xfer_link_put(struct xfer_link *link, const struct xfer_record *record)
{
    if (!xfer_link_can_put(link)) {
        assert(link->state != LINK_UP);
        return;
    }
    struct link_out *out = &link->out.queue[link->out.fill % LINK_SENDS];
    out->length += (uint32_t)xfer_encode(send_at(link, link->out.fill) + out->length, record);
    if (link->put - link->queued >= XFER_DATA && has_spare(link))
        close_message(link);
}

/* Whether a message is due even without records: to return credits, to release part of the ring, or as keep-alive.
 * While busy, a larger part of the ring is collected first. */
static bool link_due(const struct xfer_link *link, bool busy)
{
    return link->owed >= XFER_RECEIVES / 2 || link->taken - link->reported > link->ring.size / (busy ? 4 : 8) ||
           clock_ns() - link->tx_ns > (uint64_t)XFER_KEEPALIVE_MS * 1000000;
}

void xfer_link_flush(struct xfer_link *link)
{
    if (link->state != LINK_UP)
        return;
    send_closed(link);
    bool filled = link->out.queue[link->out.fill % LINK_SENDS].length > XFER_HEAD;
    /* A message that is closed but not sent will carry everything that is due. */
    if (has_spare(link) && link->out.send == link->out.fill && (filled || link_due(link, false)))
        close_message(link);
}

/* --- in ------------------------------------------------------------------------------------------------------ */

/* Posts a receive again, which owes the peer a credit. */
static void link_give_back(struct xfer_link *link, unsigned buffer)
{
    int error = post_receive(link, link->qp, buffer);
    if (error)
        link_lose(link, error_text(error));
    link->owed++;
}

/* The head of a message takes effect on arrival, even if its records have to wait. */
static void xfer_link_receive(struct xfer_link *link, unsigned buffer, uint32_t length)
{
    struct link_in *in = &link->in[link->in_head % XFER_RECEIVES];
    *in = (struct link_in){.buffer = buffer};
    if (length < XFER_HEAD) {
        xfer_link_blame(link, "a message shorter than its head");
        return;
    }
    xfer_head_decode(receive_at(link, buffer), &in->head);
    if (in->head.length != length) {
        xfer_link_blame(link, "a message whose length field is wrong");
        return;
    }
    link->credits += in->head.credits;
    if (link->credits > XFER_RECEIVES) {
        xfer_link_blame(link, "more credits than receives");
        return;
    }
    if (in->head.released < link->released || in->head.released > link->queued) {
        xfer_link_blame(link, "it releases a part of the ring that it does not hold");
        return;
    }
    link->released = in->head.released;
    /* A message without records is done with. Otherwise keep-alives would use up the credits of a peer that waits for a
     * long time. */
    if (length == XFER_HEAD && in->head.from == in->head.to)
        link_give_back(link, buffer);
    else
        link->in_head++;
}

static void link_complete(struct xfer_link *link, const struct rddp_wc *wc)
{
    unsigned index = (unsigned)wc->wr_id;
    if (wc->status) {
        link_lose(link, wc_trouble(link->qp, wc));
        return;
    }
    switch (wc->wr_id >> 32) {
    case WR_SEND:
        link->sent = link->out.queue[index % LINK_SENDS].to;
        link->out.done++;
        return; /* nothing was received from the peer */
    case WR_RECEIVE:
        xfer_link_receive(link, index, wc->byte_len);
        break;
    case WR_READ:
        link->in[index % XFER_RECEIVES].reads--;
        break;
    }
    link->rx_ns = clock_ns();
}

static void fetch_all(struct xfer_link *link)
{
    while (link->state == LINK_UP && link->in_fetched != link->in_head) {
        unsigned i = link->in_fetched;
        struct link_in *in = &link->in[i % XFER_RECEIVES];
        struct rddp_send_wr wr[2];
        const char *wrong = NULL;
        if (!ring_admits(link, &in->head, &wrong)) {
            if (wrong)
                xfer_link_blame(link, wrong);
            return;
        }
        in->reads = ring_reads(link, in->head.from, in->head.to, wr_id(WR_READ, i), wr);
        if (in->reads && !link_post(link, wr))
            return;
        in->fetched = true;
        link->in_fetched++;
    }
}

bool xfer_link_poll(struct xfer_link *link)
{
    struct rddp_wc wc[16];
    int n = 0;
    if (link->state == LINK_UP)
        n = rddp_poll_cq(link->endpoint->cq, 16, wc);
    if (n < 0)
        link_lose(link, error_text(n));
    for (int i = 0; i < n && link->state == LINK_UP; i++)
        link_complete(link, &wc[i]);
    fetch_all(link);
    if (link_due(link, true))
        xfer_link_flush(link);
    else if (n > 0 && link->state == LINK_UP)
        send_closed(link);
    return n > 0;
}

/* All records of the oldest message are taken: posts its receive again. */
static void finish_message(struct xfer_link *link, struct link_in *in)
{
    if (link->taken != in->head.to && in->head.to) {
        xfer_link_blame(link, "a message whose records do not match its part of the ring");
        return;
    }
    link_give_back(link, in->buffer);
    link->in_tail++;
    link->in_at = 0;
}

bool xfer_link_next(struct xfer_link *link, struct xfer_record *record)
{
    while (link->state == LINK_UP && link->in_tail != link->in_head) {
        struct link_in *in = &link->in[link->in_tail % XFER_RECEIVES];
        if (!in->fetched || in->reads)
            return false;
        if (!link->in_at)
            link->in_at = XFER_HEAD;
        if (link->in_at == in->head.length) {
            finish_message(link, in);
            continue;
        }
        size_t n = xfer_decode(receive_at(link, in->buffer) + link->in_at, in->head.length - link->in_at, record);
        if (!n)
            return xfer_link_blame(link, "an invalid record");
        link->in_at += n;
        return true;
    }
    return false;
}

/* --- waiting ------------------------------------------------------------------------------------------------- */

void xfer_link_wait(struct xfer_link *link, int timeout_ms)
{
    struct rddp_event *event;
    xfer_link_flush(link);
    if (link->state != LINK_UP)
        return;
    endpoint_wait(link->endpoint, timeout_ms);
    /* Completions show the end of the connection too, so the events are only acknowledged. */
    while (endpoint_event(link->endpoint, &event))
        rddp_ack_event(event);
    if (clock_ns() - link->rx_ns > (uint64_t)XFER_SILENCE_MS * 1000000)
        link_lose(link, "nothing from the peer for a minute");
}
