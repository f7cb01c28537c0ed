/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.c - packets to connections, handshakes in a fixed number of small slots, resets for strays. */
#include "tcp/host.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/siphash.h"
#include "tcp/cookie.h"
#include "tcp/inner.h"

enum { RESETS_US = 1000000, /* see UTCP_RESETS */ HALF_AGAIN_US = 1000000, HASH_PAIR = 1, HASH_ISN, HASH_STAMP };

void utcp_host_init(struct utcp_host *h, const struct utcp_host_attr *attr, const struct utcp_host_buffers *buffers,
                    const struct utcp_host_user *user, void *of)
{
    assert((buffers->buckets & (buffers->buckets - 1)) == 0 && (buffers->halves & (buffers->halves - 1)) == 0);
    assert(buffers->halves >= UTCP_HALF_WAYS);
    *h = (struct utcp_host){
        .user = user,
        .of = of,
        .attr = *attr,
        .bucket = buffers->bucket,
        .buckets = buffers->buckets,
        .half = buffers->half,
        .halves = buffers->halves,
        .half_us = UTCP_NEVER,
    };
}

static uint64_t pair_hash(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote,
                          uint8_t purpose)
{
    uint8_t octets[37], *q = octets;

    q = put16(put_bytes(q, local->ip, 16), local->port);
    q = put16(put_bytes(q, remote->ip, 16), remote->port);
    q = put8(q, purpose);
    return siphash(h->attr.key, octets, (size_t)(q - octets));
}

uint32_t utcp_host_isn(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote,
                       uint64_t now_us)
{
    return (uint32_t)pair_hash(h, local, remote, HASH_ISN) + (uint32_t)(now_us / 4);
}

uint32_t utcp_host_stamp_offset(const struct utcp_host *h, const struct utcp_name *local,
                                const struct utcp_name *remote)
{
    return (uint32_t)pair_hash(h, local, remote, HASH_STAMP);
}

static struct utcp **host_bucket_of(const struct utcp_host *h, const struct utcp_name *local,
                                    const struct utcp_name *remote)
{
    return &h->bucket[pair_hash(h, local, remote, HASH_PAIR) & (h->buckets - 1)];
}

static bool is_between(const struct utcp *t, const struct utcp_name *local, const struct utcp_name *remote)
{
    return utcp_same_name(&t->local, local) && utcp_same_name(&t->remote, remote);
}

struct utcp *utcp_host_find(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote)
{
    struct utcp *t = h->recent && is_between(h->recent, local, remote) ? h->recent : *host_bucket_of(h, local, remote);

    while (t && !is_between(t, local, remote))
        t = t->next;
    return t;
}

void utcp_host_add(struct utcp_host *h, struct utcp *t)
{
    struct utcp **bucket = host_bucket_of(h, &t->local, &t->remote);

    t->next = *bucket;
    *bucket = t;
    h->recent = 0; /* it may be an old connection between the same addresses, which is found behind this one */
}

void utcp_host_remove(struct utcp_host *h, struct utcp *t)
{
    struct utcp **at = host_bucket_of(h, &t->local, &t->remote);

    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    t->next = 0;
    if (h->recent == t)
        h->recent = 0;
}

static struct utcp_half *ways_of(const struct utcp_host *h, const struct utcp_name *local,
                                 const struct utcp_name *remote)
{
    return &h->half[pair_hash(h, local, remote, HASH_PAIR) & (h->halves - 1) & ~(UTCP_HALF_WAYS - 1U)];
}

static struct utcp_half *find_half(const struct utcp_host *h, const struct utcp_segment *s)
{
    struct utcp_half *half = ways_of(h, &s->to, &s->from);

    for (int i = 0; i < UTCP_HALF_WAYS; i++)
        if (half[i].used && utcp_same_name(&half[i].local, &s->to) && utcp_same_name(&half[i].remote, &s->from))
            return &half[i];
    return 0;
}

static void set_due(struct utcp_host *h, struct utcp_half *half, bool due)
{
    h->half_due += (uint32_t)due - half->due;
    half->due = due;
}

static void drop_half(struct utcp_host *h, struct utcp_half *half)
{
    set_due(h, half, false);
    half->used = false;
    h->half_count--;
}

/* Returns a free slot of the bucket, or the oldest with a cookie, which gives way; NULL: all of them are yet to be
 * answered. Half of the slots are left to connections that need them: those that do without can be thousands. */
static struct utcp_half *take_half(struct utcp_host *h, const struct utcp_segment *s, bool *cookie, uint64_t now_us)
{
    struct utcp_half *half = ways_of(h, &s->to, &s->from), *pick = NULL, *old = NULL;
    uint32_t used = 0;

    for (int i = 0; i < UTCP_HALF_WAYS; i++) {
        used += half[i].used;
        if (!half[i].used)
            pick = &half[i];
        else if (half[i].cookie && !half[i].due && (!old || half[i].at_us < old->at_us))
            old = &half[i];
    }
    if (!pick && old) {
        h->count.displaced++;
        h->displaced_us = now_us;
        drop_half(h, old);
        pick = old;
    }
    *cookie = used >= UTCP_HALF_WAYS / 2;
    h->half_count += pick != NULL;
    return pick;
}

/* Returns the half-open connection of this SYN, perhaps a new one, or NULL: there are too many. */
static struct utcp_half *half_of(struct utcp_host *h, const struct utcp_segment *s, uint64_t now_us)
{
    const struct utcp_attr *a = &h->attr.tcp;
    struct utcp_half *half = find_half(h, s);
    bool cookie;

    if (half && half->irs == s->seq)
        return half;
    if (half)
        drop_half(h, half);
    half = take_half(h, s, &cookie, now_us);
    if (!half)
        return NULL;
    *half = (struct utcp_half){
        .local = s->to,
        .remote = s->from,
        .irs = s->seq,
        .isn = utcp_host_isn(h, &s->to, &s->from, now_us),
        .stamp = s->opt.stamp,
        .mss = s->opt.has_mss ? s->opt.mss : 0,
        .scale = s->opt.has_wscale ? s->opt.wscale : 0,
        .used = true,
        .cookie = cookie,
        .use_scale = s->opt.has_wscale && !a->no_scale,
        .sack = s->opt.sack_permitted && !a->no_sack,
        .stamps = s->opt.has_stamp && !a->no_stamps,
        .option = a->option_kind && s->opt.extra && s->opt.extra_length == 2,
        .ecn = !a->no_ecn && (~s->flags & (UTCP_ECE | UTCP_CWR)) == 0,
        .at_us = now_us,
        .again_us = now_us + HALF_AGAIN_US,
    };
    if (cookie)
        half->isn = utcp_cookie_make(h->attr.key, half, now_us);
    return half;
}

/* Each SYN is answered once. However often the same one comes, our own repetitions keep their time. */
static void on_syn(struct utcp_host *h, const struct utcp_segment *s, uint64_t now_us)
{
    struct utcp_half *half = half_of(h, s, now_us);

    h->count.syns++;
    if (!half)
        return;
    set_due(h, half, true);
    h->half_at = (uint32_t)(half - h->half);
    if (h->half_us == UTCP_NEVER)
        h->half_us = now_us + HALF_AGAIN_US;
}

/* The ACK of a handshake: establishes the connection if the user accepts it. */
static struct utcp *host_complete(struct utcp_host *h, struct utcp_half *half, const struct utcp_segment *s,
                                  uint64_t now_us)
{
    struct utcp_handshake shake = {
        .local = half->local,
        .remote = half->remote,
        .send_next = half->isn + 1,
        .receive_next = half->irs + 1,
        .window = (uint32_t)s->window << (half->use_scale ? half->scale : 0),
        .mss = half->mss,
        .scale = half->use_scale ? half->scale : 0,
        .own_scale = half->use_scale ? utcp_scale_for(&h->attr.tcp) : 0,
        .sack = half->sack,
        .stamps = half->stamps,
        .option = half->option,
        .ecn = half->ecn,
        .stamp_recent = half->stamp,
        .stamp_known = half->stamps,
        .edge = (uint32_t)utcp_min(h->attr.tcp.window, UINT16_MAX),
    };
    struct utcp *t = h->user->accept(h->of, &half->local, &half->remote);

    if (!t)
        return 0;
    if (half->stamps)
        t->attr.stamp_offset = utcp_host_stamp_offset(h, &half->local, &half->remote);
    if (half->used)
        drop_half(h, half);
    else
        h->count.restored++;
    utcp_adopt(t, &shake, now_us);
    utcp_host_add(h, t);
    return t;
}

/* RFC 9293 3.10.7.1 */
static void reset(struct utcp_host *h, const struct utcp_segment *s, uint64_t now_us)
{
    h->count.strays++;
    if (s->flags & UTCP_RST || h->attr.quiet)
        return;
    if (now_us - h->resets_us >= RESETS_US) {
        h->resets_us = now_us;
        h->resets = 0;
    }
    if (h->resets++ >= UTCP_RESETS)
        return;
    h->count.resets++;
    h->replies = true;
    h->reply_from = s->to;
    h->reply_to = s->from;
    h->reply = (struct utcp_head){.flags = UTCP_RST, .seq = s->ack};
    if (!(s->flags & UTCP_ACK)) {
        h->reply.flags |= UTCP_ACK;
        h->reply.seq = 0;
        h->reply.ack = s->seq + s->length + !!(s->flags & UTCP_SYN) + !!(s->flags & UTCP_FIN);
    }
}

/* The ACK of a half-open connection that gave way to another comes back with its cookie. None is asked for before that
 * has happened: there is nothing to guess then. */
static bool returns_cookie(const struct utcp_host *h, const struct utcp_segment *s, uint64_t now_us,
                           struct utcp_half *half)
{
    return (s->flags & (UTCP_SYN | UTCP_ACK | UTCP_RST)) == UTCP_ACK && h->displaced_us &&
           now_us - h->displaced_us <= UTCP_COOKIE_US && h->user->listens(h->of, &s->to) &&
           utcp_cookie_open(h->attr.key, s, now_us, half);
}

/* Processes a segment that belongs to no connection. */
static struct utcp *on_stray(struct utcp_host *h, const struct utcp_segment *s, uint64_t now_us)
{
    struct utcp_half *half = find_half(h, s), restored;

    if (half && s->flags & UTCP_RST) {
        if (s->seq == half->irs + 1)
            drop_half(h, half);
        return 0;
    }
    if ((s->flags & (UTCP_SYN | UTCP_ACK | UTCP_RST)) == UTCP_SYN && h->user->listens(h->of, &s->to)) {
        on_syn(h, s, now_us);
        return 0;
    }
    /* It may be a keep-alive probe, one before the first octet: what was sent before it was lost. */
    if (half && (s->flags & (UTCP_SYN | UTCP_ACK)) == UTCP_ACK && s->ack == half->isn + 1 &&
        s->seq - half->irs <= UINT16_MAX + 1U)
        return host_complete(h, half, s, now_us);
    if (returns_cookie(h, s, now_us, &restored))
        return host_complete(h, &restored, s, now_us);
    reset(h, s, now_us);
    return 0;
}

/* May a new SYN end the TIME-WAIT state of an old connection (RFC 9293 3.6.1, RFC 6191)? */
static bool reopens(const struct utcp *t, const struct utcp_segment *s)
{
    if (t->state != UTCP_TIME_WAIT || (s->flags & (UTCP_SYN | UTCP_ACK | UTCP_RST)) != UTCP_SYN)
        return false;
    if (t->stamps.on && s->opt.has_stamp)
        return (int32_t)(s->opt.stamp - t->stamps.recent) > 0;
    return (int32_t)(s->seq - t->rx.irs - (uint32_t)t->rx.next) > 0;
}

static uint64_t host_touch(const struct utcp_host *h, struct utcp *t, uint64_t now_us)
{
    return t && h->user->touch ? h->user->touch(h->of, t, now_us) : now_us;
}

static struct utcp *on_segment(struct utcp_host *h, const struct utcp_segment *s, uint64_t now_us)
{
    struct utcp *t = utcp_host_find(h, &s->to, &s->from);

    h->recent = t;
    now_us = host_touch(h, t, now_us);
    if (t && t->state != UTCP_CLOSED && reopens(t, s)) {
        utcp_over(t, 0);
        on_stray(h, s, now_us);
        return t;
    }
    if (!t || t->state == UTCP_CLOSED)
        t = on_stray(h, s, now_us);
    if (t)
        utcp_input(t, s, now_us);
    return t;
}

struct utcp *utcp_host_input(struct utcp_host *h, const uint8_t *octets, uint32_t n, bool checked, uint64_t now_us)
{
    struct utcp_segment s;
    struct utcp_too_big b;
    struct utcp *t;

    h->count.packets++;
    switch (utcp_packet_read(octets, n, checked, h->attr.tcp.option_kind, &s, &b)) {
    case UTCP_KIND_SEGMENT:
        return on_segment(h, &s, now_us);
    case UTCP_KIND_TOO_BIG:
        h->count.too_big++;
        t = utcp_host_find(h, &b.from, &b.to);
        host_touch(h, t, now_us);
        if (t && t->state != UTCP_CLOSED)
            utcp_too_big(t, b.seq, b.mtu);
        return t;
    case UTCP_KIND_BAD:
        h->count.bad++;
        return 0;
    case UTCP_KIND_BAD_CHECKSUM:
        h->count.bad_checksum++;
        return 0;
    default:
        h->count.other++;
        return 0;
    }
}

static void write_answer(struct utcp_host *h, struct utcp_half *half, struct utcp_packet *p, uint64_t now_us)
{
    const struct utcp_attr *a = &h->attr.tcp;
    struct utcp_syn_options o = {
        .mss = utcp_mss_offer(&half->remote, a->mtu),
        .scale = utcp_scale_for(&h->attr.tcp),
        .use_scale = half->use_scale,
        .sack = half->sack,
        .stamps = half->stamps,
        .stamp = (uint32_t)(now_us / 1000) + utcp_host_stamp_offset(h, &half->local, &half->remote),
        .echo = half->stamp,
        .kind = half->option ? a->option_kind : 0,
    };
    struct utcp_head head = {
        .seq = half->isn,
        .ack = half->irs + 1,
        .flags = (uint8_t)(UTCP_SYN | UTCP_ACK | (half->ecn ? UTCP_ECE : 0)),
        .window = (uint16_t)utcp_min(a->window, UINT16_MAX),
    };

    if (half->cookie)
        o.stamp = utcp_cookie_stamp(half, o.stamp);
    utcp_syn_options_write(&head, &o);
    set_due(h, half, false);
    utcp_packet_write(p, &half->local, &half->remote, &head);
}

bool utcp_host_output(struct utcp_host *h, struct utcp_packet *p, uint64_t now_us)
{
    p->spans = p->length = 0;
    p->partial = h->attr.tcp.partial;
    if (h->replies) {
        h->replies = false;
        utcp_packet_write(p, &h->reply_from, &h->reply_to, &h->reply);
        return true;
    }
    if (!h->half_due)
        return false;
    while (!h->half[h->half_at].due)
        h->half_at = (h->half_at + 1) & (h->halves - 1);
    write_answer(h, &h->half[h->half_at], p, now_us);
    return true;
}

uint64_t utcp_host_deadline(const struct utcp_host *h)
{
    return h->half_us;
}

void utcp_host_timeout(struct utcp_host *h, uint64_t now_us)
{
    if (h->half_us > now_us)
        return;
    for (uint32_t i = 0; i < h->halves; i++) {
        struct utcp_half *half = &h->half[i];

        if (!half->used || half->due || half->again_us > now_us)
            continue;
        if (half->tries == UTCP_HALF_TRIES) {
            drop_half(h, half);
            continue;
        }
        half->again_us = now_us + ((uint64_t)HALF_AGAIN_US << ++half->tries);
        set_due(h, half, true);
    }
    h->half_us = h->half_count ? now_us + HALF_AGAIN_US : UTCP_NEVER;
}
