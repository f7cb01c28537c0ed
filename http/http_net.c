/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_net.c - the net of streams that `rddp http` serves and fetches on. */
#include "http/http.h"
#include "tools/lib/packet_options.h"

int http_open_net(const struct http_options *options, uint32_t streams, struct rddp_stream_net **net,
                  struct sockaddr_storage *own)
{
    struct rddp_stream_net_attr attr;
    rddp_stream_net_attr_init(&attr);
    attr.streams = streams;
    attr.no_option = options->no_option;
    return packet_stream_net(&attr, net, own);
}
