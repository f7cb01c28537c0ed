/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* marked.c - makes the net and its stream by hand, as an accepted connection has them. */
#include "tests/lib/marked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1000, OWN = 7 };

static const struct utcp_host_user deaf; /* no packet comes to the host */

struct rddp_stream *marked_open(void)
{
    struct rddp_stream_net *net = calloc(1, sizeof(*net));
    struct utcp_handshake h = {.receive_next = FIRST,
                               .send_next = OWN,
                               .window = 10000,
                               .mss = 1400,
                               .sack = true,
                               .option = true,
                               .edge = MARKED_WINDOW};
    struct utcp_host_buffers buffers = {net->bucket, net->half, STREAM_BUCKETS, STREAM_HALVES};
    struct utcp_host_attr attr = {.key = {1, 2}};
    struct rddp_stream *s;
    int error;

    assert(net && !reactor_init(&net->reactor));
    rddp_stream_net_attr_init(&net->attr);
    net->attr.window = MARKED_WINDOW;
    net->fd = -1;
    utcp_attr_default(&attr.tcp);
    attr.tcp.window = MARKED_WINDOW;
    attr.tcp.option_kind = TCPOPT_KIND;
    utcp_host_init(&net->host, &attr, &buffers, &deaf, net);
    s = stream_new(net, &error);
    assert(s);
    s->accepted = true;
    memset(h.local.ip + 10, 0xff, 2);
    memset(h.remote.ip + 10, 0xff, 2);
    utcp_adopt(&s->tcp, &h, reactor_now_us());
    return s;
}

struct tcpopt marked_option(uint64_t rid, uint32_t offset, uint32_t length)
{
    return (struct tcpopt){
        .length = TCPOPT_SHORT, .rid = rid, .buffer_offset = offset, .data_length = (uint16_t)length};
}

void marked_segment(struct rddp_stream *s, uint64_t position, const uint8_t *octets, uint32_t length,
                    const struct tcpopt *o)
{
    uint8_t option[TCPOPT_LONG];
    struct utcp_segment segment = {.seq = FIRST + (uint32_t)position,
                                   .ack = OWN,
                                   .window = 10000,
                                   .flags = UTCP_ACK,
                                   .length = length,
                                   .payload = s->net->packet + MARKED_HEAD};

    memcpy(s->net->packet + MARKED_HEAD, octets, length);
    if (o) {
        segment.opt.extra = option;
        segment.opt.extra_length = (uint8_t)(tcpopt_encode(option, o) - option);
        segment.opt.extra_at = 32;
    }
    utcp_input(&s->tcp, &segment, reactor_now_us());
}

void marked_close(struct rddp_stream *s)
{
    struct rddp_stream_net *net = s->net;

    rddp_stream_close(s);
    reactor_fini(&net->reactor);
    free(net);
}
