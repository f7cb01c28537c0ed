/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_path.h - a stream between two networks of ours, over the kernel's forwarding (network.h). */
#ifndef RDDP_TESTS_SUITE_STREAM_PATH_H
#define RDDP_TESTS_SUITE_STREAM_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include <rddp/stream.h>

struct stream_path {
    struct rddp_stream_net *net[2];
    struct rddp_stream *end[2]; /* the first has connected, the second was accepted */
};

enum { STREAM_PATH_PORT = 700 }; /* the second net listens there, with a backlog of 1 */

/* What a path needs: IPv6 or IPv4; the length of packets (0: the default); losses in 100,000, each way. */
struct stream_path_attr {
    bool v6;
    uint32_t mtu, lose;
    bool no_option; /* the second net does not offer the option */
    bool checksums; /* the first net computes and verifies checksums itself */
};

void stream_path_open(struct stream_path *p, const struct stream_path_attr *attr);
void stream_path_turn(struct stream_path *p);  /* lets both networks work */
void stream_path_close(struct stream_path *p); /* an end may be NULL */

#endif
