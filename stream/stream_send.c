/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_send.c - makes packets of what streams have to send. */
#include <string.h>

#include "stream/inner.h"

enum { TCP_CHECKSUM_AT = 16 };

bool stream_loses(struct rddp_stream_net *net)
{
    if (!net->attr.lose)
        return false;
    net->random = net->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (net->random >> 33) % STREAM_CHANCES < net->attr.lose;
}

void stream_send_packet(struct rddp_stream_net *net, const struct utcp_packet *p)
{
    struct span span[1 + UTCP_SPANS] = {{p->head, p->head_length}};
    struct tun_note note = {.partial = p->partial, .start = (uint16_t)p->ip_length, .offset = TCP_CHECKSUM_AT};

    memcpy(span + 1, p->span, p->spans * sizeof(span[0]));
    /* A packet that the device does not take is lost, as on any path. */
    if (!stream_loses(net))
        (void)tun_send(net->fd, span, 1 + p->spans, &note);
}

/* Gives acknowledged pieces back to the writer, and moves the peer's limit with the reader. */
static void stream_send_settle(struct rddp_stream *s)
{
    uint64_t acked = utcp_acked(&s->tcp);

    while (s->pieces && stream_piece_at(s, 0)->from + stream_piece_at(s, 0)->length <= acked) {
        s->piece_head++;
        s->pieces--;
    }
    tcpopt_map_trim(&s->map, acked);
    utcp_limit(&s->tcp, s->read_to + s->ring_octets / 2);
}

void stream_pump(struct rddp_stream *s)
{
    struct rddp_stream_net *net = s->net;
    struct utcp_packet p;

    stream_send_settle(s);
    while (utcp_output(&s->tcp, &p, loop_now_us()))
        stream_send_packet(net, &p);
    loop_set_timer(&net->loop, &s->timer, utcp_deadline(&s->tcp));
}
