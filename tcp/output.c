/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.c - writes the next packet: a reset, a SYN, lost or new octets, or a bare acknowledgement. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "tcp/inner.h"

/* Returns the window field of the header. The right edge never moves back. */
static uint16_t window_field(struct utcp *t)
{
    uint64_t edge = utcp_rx_edge(t), unit = 1ULL << t->rx.scale, field;

    /* Do not advance it by small amounts (RFC 9293 3.8.6.2.2). */
    if (edge - t->rx.edge < utcp_min(t->attr.window / 2, t->tx.mss))
        edge = t->rx.edge;
    field = (edge - t->rx.next) >> t->rx.scale;
    if (t->rx.next + (field << t->rx.scale) < t->rx.edge)
        field = (t->rx.edge - t->rx.next + unit - 1) >> t->rx.scale;
    field = utcp_min(field, UINT16_MAX);
    t->rx.edge = utcp_max(t->rx.edge, t->rx.next + (field << t->rx.scale));
    return (uint16_t)field;
}

static void put_stamps(struct utcp *t, struct utcp_head *h, uint64_t now_us)
{
    uint8_t *q = h->option + h->options;

    if (!t->stamps.on)
        return;
    t->stamps.last = utcp_stamp_now(t, now_us);
    put32(put32(put32(q, 0x0101080a), t->stamps.last), t->stamps.recent);
    h->options += UTCP_STAMPS_LENGTH;
}

/* Fills in the header fields that every segment of a synchronized state has. */
static struct utcp_head usual_head(struct utcp *t, uint64_t number, uint8_t flags, uint64_t now_us)
{
    struct utcp_head h = {
        .seq = t->attr.isn + (uint32_t)number,
        .ack = t->rx.irs + (uint32_t)t->rx.next,
        .flags = (uint8_t)(flags | UTCP_ACK | (t->marks.echo ? UTCP_ECE : 0)),
        .window = window_field(t),
    };

    put_stamps(t, &h, now_us);
    t->rx.acked = t->rx.next;
    t->due.unacked = 0;
    t->timer.ack_us = UTCP_NEVER;
    return h;
}

static void output_frame(struct utcp *t, struct utcp_packet *p, struct utcp_head *h)
{
    p->partial = t->attr.partial;
    h->hops = t->attr.hops;
    utcp_packet_write(p, &t->local, &t->remote, h);
    t->count.segments_out++;
}

static void write_reset(struct utcp *t, struct utcp_packet *p)
{
    struct utcp_head h = {.seq = t->due.reset_seq, .flags = UTCP_RST};

    if (t->state == UTCP_CLOSED) {
        h.flags |= UTCP_ACK;
        h.ack = t->rx.irs + (uint32_t)t->rx.next;
    }
    t->due.reset = false;
    output_frame(t, p, &h);
}

static void write_syn(struct utcp *t, struct utcp_packet *p, uint64_t now_us)
{
    bool answer = t->state == UTCP_SYN_RECEIVED;
    struct utcp_syn_options o = {
        .mss = utcp_mss_offer(&t->remote, t->attr.mtu),
        .scale = t->rx.scale,
        .use_scale = !t->attr.no_scale && (!answer || t->rx.scale || t->tx.scale),
        .sack = !t->attr.no_sack && (!answer || t->sack),
        .stamps = !t->attr.no_stamps && (!answer || t->stamps.on),
        .stamp = utcp_stamp_now(t, now_us),
        .echo = t->stamps.recent,
        .kind = !answer || t->option_on ? t->attr.option_kind : 0,
    };
    struct utcp_head h = {
        .seq = t->attr.isn,
        .flags = UTCP_SYN,
        .window = (uint16_t)utcp_min(t->attr.window, UINT16_MAX),
    };

    if (!answer && !t->attr.no_ecn && !t->timer.syns)
        h.flags |= UTCP_ECE | UTCP_CWR;
    if (answer) {
        h.flags |= UTCP_ACK;
        h.ack = t->rx.irs + 1;
    }
    utcp_syn_options_write(&h, &o);
    t->due.syn = false;
    t->tx.last_us = now_us;
    t->timer.rto_us = now_us + utcp_rtt_backed_off(&t->rtt, t->timer.syns++);
    output_frame(t, p, &h);
}

static void write_ack(struct utcp *t, struct utcp_packet *p, uint64_t number, uint64_t now_us)
{
    struct utcp_head h = usual_head(t, number, 0, now_us);
    uint32_t space = (UTCP_OPTIONS_MAX - h.options - 4) / 8, n = 0;
    struct utcp_block block[UTCP_SACKS];
    uint8_t *q = h.option + h.options;

    if (t->sack && t->rx.dsack.from != t->rx.dsack.to)
        block[n++] = t->rx.dsack;
    if (t->sack)
        n += utcp_ooo_blocks(&t->ooo, t->rx.irs, block + n, (space < UTCP_SACKS ? space : UTCP_SACKS) - n);
    if (n) {
        q = put32(q, 0x01010502 + 8 * n);
        for (uint32_t i = 0; i < n; i++)
            q = put32(put32(q, block[i].from), block[i].to);
        h.options += 4 + 8 * n;
    }
    t->rx.dsack = (struct utcp_block){0, 0};
    utcp_ooo_reported(&t->ooo);
    t->due.ack = false;
    output_frame(t, p, &h);
}

/* Writes octets [number, number + length) of the stream; the last may be the FIN. */
static void write_data(struct utcp *t, struct utcp_packet *p, uint64_t number, uint32_t length, bool fin,
                       uint64_t now_us)
{
    uint32_t payload = length - fin;
    bool fresh = payload && number >= t->tx.max;
    struct utcp_piece piece;
    struct utcp_head h;
    uint8_t flags = fin ? UTCP_FIN : 0;

    piece.spans = piece.option_length = 0;
    if (payload)
        t->user->fetch(t->of, number - 1, payload, &piece);
    if (payload && number + payload == t->tx.end)
        flags |= UTCP_PSH;
    if (fresh && t->marks.say) {
        flags |= UTCP_CWR;
        t->marks.say = false;
    }
    h = usual_head(t, number, flags, now_us);
    /* What is sent again is not marked but lost where there is congestion (RFC 3168 6.1.5). */
    h.ecn = fresh && t->marks.on ? UTCP_ECT : UTCP_NOT_ECT;
    assert(h.options + piece.option_length <= UTCP_OPTIONS_MAX);
    memcpy(h.option + h.options, piece.option, piece.option_length);
    h.options += piece.option_length;
    memcpy(p->span, piece.span, piece.spans * sizeof(piece.span[0]));
    p->spans = piece.spans;
    p->length = payload;
    /* Missing octets are reported in an acknowledgement of its own, because SACK blocks do not fit here. */
    if (!t->ooo.count && t->rx.dsack.from == t->rx.dsack.to)
        t->due.ack = false;
    t->count.octets_out += payload;
    if (!t->scoreboard.count)
        t->timer.stalled_us = now_us;
    t->tx.last_us = now_us;
    output_frame(t, p, &h);
}

static void write_again(struct utcp *t, struct utcp_packet *p, struct utcp_sent *s, uint64_t now_us)
{
    t->recovery.first = false;
    t->recovery.prr.out += s->length;
    t->count.sent_again++;
    write_data(t, p, s->from, s->length, s->flags & UTCP_SENT_FIN, now_us);
    utcp_scoreboard_mark_sent(&t->scoreboard, s, now_us);
    utcp_undo_sent(t, now_us);
    if (t->timer.rto_us == UTCP_NEVER)
        utcp_arm(t, now_us);
    else
        utcp_arm_probe(t, now_us);
}

/* Acknowledgements that do not open the window do not move this timer: however many come, it is time for a probe. */
static void arm_persist(struct utcp *t, uint64_t now_us)
{
    t->timer.persist_us = now_us + utcp_max(utcp_rtt_backed_off(&t->rtt, t->timer.persists), UTCP_PERSIST_MIN_US);
}

/* Returns the length of a new segment, FIN included; 0: there is nothing to send, or it must wait. */
static uint32_t cut_new(struct utcp *t, bool *fin, uint64_t now_us)
{
    uint64_t ready = t->tx.end > t->tx.next ? t->tx.end - t->tx.next : 0, right = t->tx.una + t->tx.window;
    uint64_t window = right > t->tx.next ? right - t->tx.next : 0;
    uint32_t length = 0;

    *fin = false;
    if (t->scoreboard.count == t->scoreboard.capacity || t->tx.next > t->tx.end || t->path.size)
        return 0;
    if (ready)
        length = t->user->cut(t->of, t->tx.next - 1, (uint32_t)utcp_min(ready, UINT32_MAX), t->tx.mss);
    assert(length <= ready && length <= t->tx.mss);
    *fin = t->tx.finish && length == ready;
    if (length + *fin == 0)
        return 0;
    if (length && length > window) {
        *fin = false;
        /* No small pieces (RFC 9293 3.8.6.2.1), unless the peer never had a larger window, or nothing else moves. */
        if (!window || (window < t->tx.window_max / 2 && !t->due.probe)) {
            if (!t->scoreboard.count && t->timer.persist_us == UTCP_NEVER && !t->due.probe)
                arm_persist(t, now_us);
            return 0;
        }
        length = (uint32_t)window;
    }
    return length + *fin;
}

static void write_new(struct utcp *t, struct utcp_packet *p, uint32_t length, bool fin, uint64_t now_us)
{
    bool before = t->tx.next < t->tx.max, probe = t->tlp.due;
    uint64_t number = t->tx.next;

    write_data(t, p, number, length, fin, now_us);
    utcp_scoreboard_add(&t->scoreboard, number, length,
                        (uint8_t)((before ? UTCP_SENT_RETRANS : 0) | (fin ? UTCP_SENT_FIN : 0)), now_us);
    t->tx.next += length;
    t->tx.max = utcp_max(t->tx.max, t->tx.next);
    t->timer.persist_us = UTCP_NEVER;
    t->recovery.prr.out += length;
    if (fin && t->state == UTCP_ESTABLISHED)
        t->state = UTCP_FIN_WAIT_1;
    else if (fin && t->state == UTCP_CLOSE_WAIT)
        t->state = UTCP_LAST_ACK;
    if (t->timer.rto_us == UTCP_NEVER)
        utcp_arm(t, now_us);
    else if (!probe)
        utcp_arm_probe(t, now_us);
}

/* The time-out has a minimum because a peer may delay acknowledgements. A peer acknowledges at once what it received
 * before, and every second full segment (RFC 5681 4.2): after such a probe the minimum is lower. */
static void shorten_rto(struct utcp *t, uint64_t now_us)
{
    t->timer.base_us = t->rtt.srtt_us + utcp_max(4 * t->rtt.variation_us, UTCP_PROBED_RTO_US);
    utcp_arm(t, now_us);
}

/* Sends one more segment to learn about the last ones (RFC 8985 7.3). */
static bool write_probe(struct utcp *t, struct utcp_packet *p, uint64_t now_us)
{
    struct utcp_sent *lost = utcp_scoreboard_lost(&t->scoreboard);
    uint32_t length;
    bool fin = false;

    if (!t->scoreboard.flight || t->tlp.end || !t->tlp.sampled || t->path.size) {
        t->tlp.due = false;
        return false;
    }
    length = lost ? 0 : cut_new(t, &fin, now_us);
    t->tlp.is_retrans = !length;
    if (length)
        write_new(t, p, length, fin, now_us);
    else
        write_again(t, p, lost ? lost : utcp_scoreboard_slot(&t->scoreboard, t->scoreboard.newest), now_us);
    t->tlp.end = t->tx.next;
    t->tlp.due = t->tlp.sampled = false;
    t->count.probes++;
    if (!t->timer.rtos && (t->tlp.is_retrans || length + UTCP_OPTION_SPACE >= t->tx.mss))
        shorten_rto(t, now_us);
    else
        utcp_arm(t, now_us);
    t->timer.probe_us = UTCP_NEVER;
    return true;
}

static bool output_fits(const struct utcp *t, uint32_t length)
{
    return t->scoreboard.flight + length <= t->cubic.cwnd || !t->scoreboard.flight;
}

static bool write_stream(struct utcp *t, struct utcp_packet *p, uint64_t now_us)
{
    struct utcp_sent *lost = utcp_scoreboard_lost(&t->scoreboard);
    uint32_t length;
    bool fin;

    if (t->tlp.due && write_probe(t, p, now_us))
        return true;
    if (lost) {
        if (!output_fits(t, lost->length) && !t->recovery.first)
            return false;
        write_again(t, p, lost, now_us);
        return true;
    }
    /* RFC 5681 4.1 */
    if (!t->scoreboard.count && t->tx.end > t->tx.next && now_us - t->tx.last_us > t->rtt.rto_us)
        utcp_cubic_idle(&t->cubic);
    length = utcp_path_cut(t, now_us);
    if (length) {
        write_new(t, p, length, false, now_us);
        utcp_path_sent(t, p->head_length + p->length, now_us);
        return true;
    }
    length = t->path.waits ? 0 : cut_new(t, &fin, now_us);
    if (!length)
        return false;
    if (!output_fits(t, length)) {
        t->recovery.limited = t->tx.next;
        return false;
    }
    write_new(t, p, length, fin, now_us);
    t->due.probe = false;
    return true;
}

bool utcp_urgent(const struct utcp *t)
{
    bool twice = t->rx.dsack.from != t->rx.dsack.to;
    bool few = t->ooo.count || t->due.prompt || t->rx.segment_max >= UTCP_LONG;

    return t->due.ack && (t->due.unacked >= (few ? UTCP_UNACKED_FEW : UTCP_UNACKED) ||
                          (t->sack && t->ooo.unreported + twice >= UTCP_SACKS - 1));
}

bool utcp_output(struct utcp *t, struct utcp_packet *p, uint64_t now_us)
{
    p->spans = p->length = 0;
    if (t->due.reset) {
        write_reset(t, p);
        return true;
    }
    if (t->state == UTCP_CLOSED)
        return false;
    if (t->due.syn) {
        write_syn(t, p, now_us);
        return true;
    }
    if (!utcp_synchronized(t))
        return false;
    if (t->due.ack && (t->ooo.count || t->rx.dsack.from != t->rx.dsack.to)) {
        write_ack(t, p, t->tx.max, now_us);
        return true;
    }
    if (write_stream(t, p, now_us))
        return true;
    if (t->due.keep || t->due.probe) {
        /* An old octet makes the peer answer. */
        write_ack(t, p, t->tx.una - 1, now_us);
        t->due.keep = t->due.probe = false;
        return true;
    }
    if (t->due.ack) {
        write_ack(t, p, t->tx.max, now_us);
        return true;
    }
    return false;
}
