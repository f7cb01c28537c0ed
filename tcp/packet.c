/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - the headers of IPv4, IPv6 and TCP (RFC 791, 8200, 9293), and the ICMP messages about the path's MTU. */
#include "tcp/packet.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "tcp/checksum.h"

enum { V4_HEAD = 20, V6_HEAD = 40, TCP_HEAD = 20, ICMP_HEAD = 8, QUOTE = 8 };
enum { PROTOCOL_ICMP = 1, PROTOCOL_TCP = 6, PROTOCOL_ICMP6 = 58 };
enum { V4_DONT_FRAGMENT = 0x4000, V4_FRAGMENT = 0x3fff, TTL = 64 };
enum { OPTION_END, OPTION_NOP, OPTION_MSS, OPTION_WSCALE, OPTION_SACK_PERMITTED, OPTION_SACK, OPTION_STAMP = 8 };

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* The fields of the IP header. */
struct datagram {
    struct utcp_name from, to;
    const uint8_t *body;
    uint32_t length;
    uint8_t protocol, ecn;
};

bool utcp_is_v4(const struct utcp_name *name)
{
    return memcmp(name->ip, mapped, sizeof(mapped)) == 0;
}

bool utcp_same_name(const struct utcp_name *a, const struct utcp_name *b)
{
    return a->port == b->port && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static void map_v4(struct utcp_name *name, const uint8_t *p)
{
    memcpy(name->ip, mapped, sizeof(mapped));
    memcpy(name->ip + sizeof(mapped), p, 4);
}

/* The sum over a header of whole 32-bit words: 2^16 counts as 1, so that they are added as they are. */
static uint16_t sum_header(const uint8_t *p, uint32_t n)
{
    struct utcp_sum sum = {0};

    for (uint32_t i = 0; i < n; i += 4)
        sum.sum += get32(p + i);
    return utcp_sum_fold(&sum);
}

static enum utcp_kind read_v4(struct datagram *d, const uint8_t *p, uint32_t n, bool quoted)
{
    uint32_t head = 4 * (uint32_t)(p[0] & 0xf), total;

    if (n < V4_HEAD || head < V4_HEAD || head > n)
        return UTCP_KIND_BAD;
    total = get16(p + 2);
    if (total < head || (total > n && !quoted))
        return UTCP_KIND_BAD;
    if (sum_header(p, head) != 0xffff && !quoted)
        return UTCP_KIND_BAD_CHECKSUM;
    if (get16(p + 6) & V4_FRAGMENT)
        return UTCP_KIND_OTHER;
    map_v4(&d->from, p + 12);
    map_v4(&d->to, p + 16);
    d->protocol = p[9];
    d->ecn = p[1] & 3;
    d->body = p + head;
    d->length = (total < n ? total : n) - head;
    return UTCP_KIND_SEGMENT;
}

static enum utcp_kind read_v6(struct datagram *d, const uint8_t *p, uint32_t n, bool quoted)
{
    uint32_t length;

    if (n < V6_HEAD)
        return UTCP_KIND_BAD;
    length = get16(p + 4);
    if (length > n - V6_HEAD && !quoted)
        return UTCP_KIND_BAD;
    memcpy(d->from.ip, p + 8, 16);
    memcpy(d->to.ip, p + 24, 16);
    /* An IPv4-mapped address never belongs in an IPv6 header. */
    if (utcp_is_v4(&d->from) || utcp_is_v4(&d->to))
        return UTCP_KIND_OTHER;
    d->protocol = p[6];
    d->ecn = p[1] >> 4 & 3;
    d->body = p + V6_HEAD;
    d->length = length < n - V6_HEAD ? length : n - V6_HEAD;
    return UTCP_KIND_SEGMENT;
}

static enum utcp_kind read_ip(struct datagram *d, const uint8_t *p, uint32_t n, bool quoted)
{
    if (n < 1)
        return UTCP_KIND_BAD;
    if (p[0] >> 4 == 4)
        return read_v4(d, p, n, quoted);
    return p[0] >> 4 == 6 ? read_v6(d, p, n, quoted) : UTCP_KIND_OTHER;
}

/* The pseudo-header of RFC 9293 3.1 and RFC 8200 8.1. The prefix of a mapped address adds nothing, because 0xffff
 * counts as 0. */
static struct utcp_sum pseudo(const struct utcp_name *from, const struct utcp_name *to, uint8_t protocol,
                              uint32_t length)
{
    struct utcp_sum sum = {.sum = (uint64_t)length + protocol};

    for (uint32_t i = 0; i < sizeof(from->ip); i += 4)
        sum.sum += (uint64_t)get32(from->ip + i) + get32(to->ip + i);
    return sum;
}

static bool checksum_holds(const struct datagram *d)
{
    struct utcp_sum sum = pseudo(&d->from, &d->to, d->protocol, d->length);

    utcp_sum_add(&sum, d->body, d->length);
    return utcp_sum_fold(&sum) == 0xffff;
}

/* Decodes the packet of ours that an ICMP message quotes, and the path's MTU. */
static enum utcp_kind read_too_big(const struct datagram *d, struct utcp_too_big *b)
{
    const uint8_t *p = d->body;
    struct utcp_sum sum = {0};
    struct datagram quoted;

    if (d->length < ICMP_HEAD)
        return UTCP_KIND_BAD;
    if (d->protocol == PROTOCOL_ICMP6)
        sum = pseudo(&d->from, &d->to, d->protocol, d->length);
    utcp_sum_add(&sum, p, d->length);
    if (utcp_sum_fold(&sum) != 0xffff)
        return UTCP_KIND_BAD_CHECKSUM;
    if (d->protocol == PROTOCOL_ICMP ? p[0] != 3 || p[1] != 4 : p[0] != 2)
        return UTCP_KIND_OTHER;
    b->mtu = d->protocol == PROTOCOL_ICMP ? get16(p + 6) : get32(p + 4);
    if (read_ip(&quoted, p + ICMP_HEAD, d->length - ICMP_HEAD, true) != UTCP_KIND_SEGMENT ||
        quoted.protocol != PROTOCOL_TCP || quoted.length < QUOTE)
        return UTCP_KIND_OTHER;
    b->from = quoted.from;
    b->to = quoted.to;
    b->from.port = get16(quoted.body);
    b->to.port = get16(quoted.body + 2);
    b->seq = get32(quoted.body + 4);
    return UTCP_KIND_TOO_BIG;
}

static void read_sack(struct utcp_options *o, const uint8_t *p, uint32_t length)
{
    for (uint32_t at = 2; at + 8 <= length && o->sacks < UTCP_SACKS; at += 8)
        o->sack[o->sacks++] = (struct utcp_block){get32(p + at), get32(p + at + 4)};
}

static void read_option(struct utcp_options *o, const uint8_t *p, uint32_t length)
{
    if (p[0] == OPTION_MSS && length == 4) {
        o->has_mss = true;
        o->mss = get16(p + 2);
    } else if (p[0] == OPTION_WSCALE && length == 3) {
        o->has_wscale = true;
        o->wscale = p[2] < 14 ? p[2] : 14; /* RFC 7323 2.3 */
    } else if (p[0] == OPTION_SACK_PERMITTED && length == 2) {
        o->sack_permitted = true;
    } else if (p[0] == OPTION_SACK && length % 8 == 2) {
        read_sack(o, p, length);
    } else if (p[0] == OPTION_STAMP && length == 10) {
        o->has_stamp = true;
        o->stamp = get32(p + 2);
        o->echo = get32(p + 6);
    }
}

void utcp_options_read(struct utcp_options *o, const uint8_t *octets, uint32_t n, uint8_t extra)
{
    uint32_t at = 0, length;

    *o = (struct utcp_options){0};
    while (at < n && octets[at] != OPTION_END) {
        if (octets[at] == OPTION_NOP) {
            at++;
            continue;
        }
        length = at + 1 < n ? octets[at + 1] : 0;
        if (length < 2 || length > n - at) {
            o->broken = true;
            return;
        }
        if (extra && octets[at] == extra && !o->extra) {
            o->extra = octets + at;
            o->extra_length = (uint8_t)length;
            o->extra_at = (uint8_t)(TCP_HEAD + at);
        }
        read_option(o, octets + at, length);
        at += length;
    }
}

static enum utcp_kind read_segment(const struct datagram *d, bool checked, uint8_t extra, struct utcp_segment *s)
{
    const uint8_t *p = d->body;
    uint32_t head;

    if (d->length < TCP_HEAD)
        return UTCP_KIND_BAD;
    head = 4 * (uint32_t)(p[12] >> 4);
    if (head < TCP_HEAD || head > d->length)
        return UTCP_KIND_BAD;
    if (!checked && !checksum_holds(d))
        return UTCP_KIND_BAD_CHECKSUM;
    s->from = d->from;
    s->to = d->to;
    s->from.port = get16(p);
    s->to.port = get16(p + 2);
    s->seq = get32(p + 4);
    s->ack = get32(p + 8);
    s->flags = p[13];
    s->ecn = d->ecn;
    s->window = get16(p + 14);
    s->payload = p + head;
    s->length = d->length - head;
    utcp_options_read(&s->opt, p + TCP_HEAD, head - TCP_HEAD, extra);
    return UTCP_KIND_SEGMENT;
}

enum utcp_kind utcp_packet_read(const uint8_t *octets, uint32_t n, bool checked, uint8_t extra, struct utcp_segment *s,
                                struct utcp_too_big *b)
{
    struct datagram d;
    enum utcp_kind kind = read_ip(&d, octets, n, false);

    if (kind != UTCP_KIND_SEGMENT)
        return kind;
    if (d.protocol == PROTOCOL_TCP)
        return read_segment(&d, checked, extra, s);
    if (d.protocol == (octets[0] >> 4 == 4 ? PROTOCOL_ICMP : PROTOCOL_ICMP6))
        return read_too_big(&d, b);
    return UTCP_KIND_OTHER;
}

static uint8_t *write_ip(uint8_t *q, const struct utcp_name *from, const struct utcp_name *to,
                         const struct utcp_head *h, uint32_t length)
{
    uint8_t *start = q, hops = h->hops ? h->hops : TTL;

    if (!utcp_is_v4(to)) {
        q = put16(put32(q, 6U << 28 | (uint32_t)h->ecn << 20), (uint16_t)length);
        q = put8(put8(q, PROTOCOL_TCP), hops);
        return put_bytes(put_bytes(q, from->ip, 16), to->ip, 16);
    }
    q = put16(put8(put8(q, 0x45), h->ecn), (uint16_t)(V4_HEAD + length));
    /* With Don't Fragment any identification is allowed (RFC 6864 4.1). */
    q = put16(put16(q, 0), V4_DONT_FRAGMENT);
    q = put16(put8(put8(q, hops), PROTOCOL_TCP), 0);
    q = put_bytes(put_bytes(q, from->ip + 12, 4), to->ip + 12, 4);
    put16(start + 10, (uint16_t)~sum_header(start, V4_HEAD));
    return q;
}

void utcp_packet_write(struct utcp_packet *p, const struct utcp_name *from, const struct utcp_name *to,
                       const struct utcp_head *h)
{
    uint32_t head = TCP_HEAD + h->options, total = head + p->length;
    uint8_t *tcp = write_ip(p->head, from, to, h, total), *q = tcp;
    struct utcp_sum sum = pseudo(from, to, PROTOCOL_TCP, total);

    assert(h->options % 4 == 0 && h->options <= UTCP_OPTIONS_MAX);
    q = put32(put32(put16(put16(q, from->port), to->port), h->seq), h->ack);
    q = put16(put8(put8(q, (uint8_t)(head << 2)), h->flags), h->window);
    q = put32(q, 0);                         /* checksum, urgent pointer */
    memcpy(q, h->option, sizeof(h->option)); /* all of them: a copy of known length is no call */
    q += h->options;
    p->ip_length = (uint32_t)(tcp - p->head);
    p->head_length = (uint32_t)(q - p->head);
    if (!p->partial) {
        utcp_sum_add(&sum, tcp, head);
        for (uint32_t i = 0; i < p->spans; i++)
            utcp_sum_add(&sum, p->span[i].at, p->span[i].length);
    }
    put16(tcp + 16, p->partial ? utcp_sum_fold(&sum) : (uint16_t)~utcp_sum_fold(&sum));
}

/* Only the sequence number, which must continue, and PSH may differ. */
static bool packet_goes_on(const struct utcp_packet *p, const struct utcp_packet *next)
{
    const uint8_t *a = p->head + p->ip_length, *b = next->head + next->ip_length;

    return p->head_length == next->head_length && p->ip_length == next->ip_length && !memcmp(p->head, next->head, 2) &&
           a[13] == UTCP_ACK && (b[13] & ~UTCP_PSH) == UTCP_ACK && get32(b + 4) == get32(a + 4) + p->length &&
           !memcmp(a, b, 4) && !memcmp(a + 8, b + 8, 4) && get16(a + 14) == get16(b + 14) &&
           !memcmp(a + TCP_HEAD, b + TCP_HEAD, p->head_length - p->ip_length - TCP_HEAD);
}

static void lengthen(struct utcp_packet *p, uint32_t octets)
{
    uint8_t *ip = p->head, *check = p->head + p->ip_length + 16;
    uint32_t sum = get16(check) + octets;

    put16(check, (uint16_t)((sum & 0xffff) + (sum >> 16)));
    if (ip[0] >> 4 == 6) {
        put16(ip + 4, (uint16_t)(get16(ip + 4) + octets));
        return;
    }
    put16(ip + 2, (uint16_t)(get16(ip + 2) + octets));
    put16(ip + 10, 0);
    put16(ip + 10, (uint16_t)~sum_header(ip, V4_HEAD));
}

bool utcp_packet_join(struct utcp_packet *p, const struct utcp_packet *next, uint32_t each)
{
    struct span *last = p->spans ? &p->span[p->spans - 1] : NULL;
    bool touches = last && next->spans == 1 && last->at + last->length == next->span[0].at;

    if (!p->partial || !next->partial || !last || !next->length || next->length > each || p->length % each ||
        p->head_length + p->length + next->length > UINT16_MAX || (!touches && p->spans + next->spans > UTCP_SPANS) ||
        !packet_goes_on(p, next))
        return false;
    if (touches)
        last->length += next->length;
    for (uint32_t i = 0; !touches && i < next->spans; i++)
        p->span[p->spans++] = next->span[i];
    p->length += next->length;
    p->head[p->ip_length + 13] |= next->head[next->ip_length + 13] & UTCP_PSH;
    lengthen(p, next->length);
    return true;
}

void utcp_syn_options_write(struct utcp_head *h, const struct utcp_syn_options *o)
{
    uint8_t *q = h->option;

    q = put16(put16(q, OPTION_MSS << 8 | 4), o->mss);
    if (o->stamps) {
        q = put16(q, o->sack ? OPTION_SACK_PERMITTED << 8 | 2 : 0x0101);
        q = put32(put32(put16(q, OPTION_STAMP << 8 | 10), o->stamp), o->echo);
    } else if (o->sack) {
        q = put32(q, 0x01010402);
    }
    if (o->use_scale)
        q = put32(q, 0x01030300U | o->scale);
    if (o->kind)
        q = put32(q, (uint32_t)o->kind << 24 | 0x020101);
    h->options = (uint32_t)(q - h->option);
}
