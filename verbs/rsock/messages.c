/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - the protocol of a connection: messages that come, and halves of the buffer that are
 * published when they are free. */
#include <byteswap.h>
#include <errno.h>
#include <string.h>

#include "verbs/rsock/rsocket.h"

void rs_hello_fill(const struct rsocket *rs, struct rs_hello *hello)
{
    const struct rs_queues *q = &rs->queues;

    *hello = (struct rs_hello){
        .is_big_endian = rs_is_big_endian(),
        .credits = (uint16_t)rs->sizes.recv_queue,
        .iomaps = (uint16_t)rs->sizes.iomaps,
        .sgl = {.addr = (uintptr_t)q->sgl, .key = q->shared->rkey, .length = RS_SGL_ENTRIES},
        .buffer = {.addr = (uintptr_t)rs->in.buffer, .key = q->in->rkey, .length = rs->in.size / 2},
    };
}

void rs_start(struct rsocket *rs, const struct rs_hello *peer)
{
    struct rs_out *out = &rs->out;
    struct rs_in *in = &rs->in;

    rs->peer = *peer;
    in->awaited = in->free = in->publish_at = in->size / 2;
    in->announce_at = (uint16_t)(rs->sizes.recv_queue / 2);
    in->entry = out->entry = 1; /* the first entries came with the private data */
    out->slots = rs->sizes.send_queue;
    out->allowed = peer->credits;
    out->kept = (uint16_t)(peer->credits / 4 < RS_CREDITS_KEPT ? peer->credits / 4 : RS_CREDITS_KEPT);
    out->target[0] = peer->buffer;
    out->targets = 1;
    rs->state = RS_CONNECTED;
}

/* The peer fills one entry after the other, and each comes before the message that tells of it. Others may be under
 * way: of an entry that is written while it is read, the length comes last. */
static void take_target(struct rsocket *rs)
{
    volatile struct rs_sge *entry = &rs->queues.sgl[rs->out.entry];
    const uint32_t length = __atomic_load_n(&entry->length, __ATOMIC_ACQUIRE);
    struct rs_sge *to = &rs->out.target[rs->out.targets];

    if (rs->out.targets == RS_SGL_ENTRIES || !length)
        return;
    to->length = length;
    to->addr = entry->addr;
    to->key = entry->key;
    entry->length = 0;
    rs->out.targets++;
    rs->out.entry = (rs->out.entry + 1) % RS_SGL_ENTRIES;
}

static void on_control(struct rsocket *rs, uint32_t what)
{
    switch (what) {
    case RS_CONTROL_DISCONNECT:
        rs->peer_is_done = true;
        rs->state = RS_OVER;
        break;
    case RS_CONTROL_SHUTDOWN:
        rs->peer_is_done = true;
        if (rs->write_shut)
            rs->state = RS_OVER;
        break;
    case RS_CONTROL_KEEPALIVE: /* that it came is all */
    default:                   /* of a version to come */
        break;
    }
}

void rs_consume(struct rsocket *rs, uint32_t n)
{
    struct rs_in *in = &rs->in;

    in->read_at = (in->read_at + n) % in->size;
    in->ready -= n;
    in->free += n;
}

static void on_data(struct rsocket *rs, uint32_t length)
{
    struct rs_in *in = &rs->in;

    if (length > in->awaited || rs->peer_is_done) {
        rs_break(rs, EPROTO);
        return;
    }
    in->awaited -= length;
    in->ready += length;
    in->came++;
    if (rs->read_shut)
        rs_consume(rs, in->ready); /* the peer does not wait for what will not be read */
}

static void on_message(struct rsocket *rs, uint32_t message)
{
    uint32_t value;

    if (rs_is_turned(rs))
        message = bswap_32(message); /* it comes in the sender's order */
    value = message & RS_MESSAGE_VALUE;
    switch (message >> RS_MESSAGE_SHIFT) {
    case RS_DATA:
        on_data(rs, value);
        break;
    case RS_CREDIT:
        rs->out.allowed = (uint16_t)value;
        take_target(rs);
        break;
    case RS_IOMAP:
        rs_iomap_take(rs, value);
        break;
    case RS_CONTROL:
        on_control(rs, value);
        break;
    default:
        rs_break(rs, EPROTO);
    }
}

static void take_received(struct rsocket *rs, const struct ibv_wc *wc)
{
    uint32_t message;

    if (wc->status != IBV_WC_SUCCESS) {
        rs_break(rs, ECONNRESET);
        return;
    }
    if (wc->byte_len != sizeof(message)) {
        rs_break(rs, EPROTO);
        return;
    }
    memcpy(&message, &rs->in.messages[wc->wr_id], sizeof(message));
    if (rs->state == RS_CONNECTED)
        on_message(rs, message);
    if (rs_receive(rs, (unsigned)wc->wr_id))
        rs_break(rs, ECONNRESET);
}

static void take_completion(struct rsocket *rs, const struct ibv_wc *wc)
{
    if (!(wc->wr_id & RS_ID_SENT)) {
        take_received(rs, wc);
        return;
    }
    rs->out.slots += wc->wr_id & RS_ID_PLACES;
    rs->out.used -= (uint32_t)(wc->wr_id >> RS_ID_FREED_SHIFT);
    if (wc->status != IBV_WC_SUCCESS)
        rs_break(rs, ECONNRESET);
}

/* The entry that is written is one whose half has been filled and read: there are two of each. */
static void publish_half(struct rsocket *rs)
{
    const uint32_t half = rs->in.size / 2;
    struct rs_in *in = &rs->in;
    struct rs_sge entry = {.addr = (uintptr_t)in->buffer + in->publish_at, .key = rs->queues.in->rkey, .length = half};
    const struct rs_sge to = {.addr = rs->peer.sgl.addr + in->entry * sizeof(entry), .key = rs->peer.sgl.key};
    struct ibv_sge from = {.addr = (uintptr_t)&entry, .length = sizeof(entry)};

    rs_sge_turn(rs, &entry);
    if (rs_post_write(rs, &from, &to, rs_message(RS_CREDIT, (uint16_t)(in->came + rs->sizes.recv_queue)), 0))
        return;
    in->free -= half;
    in->awaited += half;
    in->publish_at = (in->publish_at + half) % in->size;
    in->entry = (in->entry + 1) % rs->peer.sgl.length;
}

/* Each message grants credits, and one goes at the latest when half of them are used. */
static void give_credits(struct rsocket *rs)
{
    struct rs_in *in = &rs->in;
    bool is_due = (int16_t)(in->came - in->announce_at) >= 0;

    if (rs->state != RS_CONNECTED || rs->out.slots < 2)
        return;
    if (in->free >= in->size / 2)
        publish_half(rs);
    else if (is_due)
        rs_post_message(rs, RS_CREDIT, (uint16_t)(in->came + rs->sizes.recv_queue));
    else
        return;
    in->announce_at = (uint16_t)(in->came + rs->sizes.recv_queue / 2);
}

void rs_progress(struct rsocket *rs)
{
    enum { AT_ONCE = 16 };
    struct ibv_wc wc[AT_ONCE];
    int n;

    do {
        n = ibv_poll_cq(rs->queues.cq, AT_ONCE, wc);
        for (int i = 0; i < n; i++)
            take_completion(rs, &wc[i]);
    } while (n == AT_ONCE);
    if (n < 0)
        rs_break(rs, EIO);
    give_credits(rs);
    rs_maps_announce(rs);
}
