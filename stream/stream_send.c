/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_send.c - makes packets of what streams have to send. */
#include "stream/inner.h"
#include "tcp/io/tun_packet.h"

bool stream_loses(struct rddp_stream_net *net)
{
    if (!net->attr.lose)
        return false;
    net->random = net->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (net->random >> 33) % STREAM_CHANCES < net->attr.lose;
}

/* The device's number may be that of a file of the program. */
void stream_send_packet(struct rddp_stream_net *net, const struct utcp_packet *p, uint32_t each)
{
    if (!stream_loses(net) && reactor_is_ours(&net->reactor))
        tun_send_packet(net->fd, p, each);
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
    stream_ring_grow(s);
    utcp_limit(&s->tcp, s->read_to + s->ring_octets / 2);
}

/* Segments whose options are the same, as they are without marks, leave in one packet, and the device cuts it again. If
 * packets shall be lost on purpose, they have to be those of the path. */
void stream_pump(struct rddp_stream *s)
{
    struct rddp_stream_net *net = s->net;
    struct utcp_packet p, next;
    uint32_t each = 0;
    bool waits = false;

    stream_send_settle(s);
    while (utcp_output(&s->tcp, &next, reactor_now_us())) {
        if (waits && !net->attr.lose && utcp_packet_join(&p, &next, each))
            continue;
        if (waits)
            stream_send_packet(net, &p, each);
        p = next;
        each = p.length;
        waits = true;
    }
    if (waits)
        stream_send_packet(net, &p, each);
    reactor_set_timer(&net->reactor, &s->timer, utcp_deadline(&s->tcp));
}
