/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_path.c - opens two networks, connects a stream between them, and closes both. */
#include "tests/suite/lib/stream_path.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/suite/lib/network.h"

enum { ROUNDS = 60000 };

static struct rddp_stream_net *open_net(uint32_t number, const struct stream_path_attr *path)
{
    struct sockaddr_storage neighbor;
    struct rddp_stream_net_attr attr;
    struct rddp_stream_net *net;

    network_address_of(&neighbor, path->v6, number, 1, 0);
    rddp_stream_net_attr_init(&attr);
    attr.neighbor = (struct sockaddr *)&neighbor;
    attr.prefix = path->v6 ? 64 : 24;
    if (path->mtu)
        attr.mtu = path->mtu;
    attr.lose = path->lose;
    attr.lose_seed = 3 + number;
    attr.no_option = path->no_option && number == 2;
    attr.checksums = path->checksums && number == 1;
    net = rddp_stream_net_open(&attr);
    if (!net)
        fail_msg("rddp_stream_net_open: %s", strerror(errno));
    return net;
}

void stream_path_turn(struct stream_path *p)
{
    rddp_stream_progress(p->net[0], 0);
    rddp_stream_progress(p->net[1], 1);
}

void stream_path_open(struct stream_path *p, const struct stream_path_attr *attr)
{
    struct sockaddr_storage from, to;

    network_address_of(&from, attr->v6, 1, 2, 0);
    network_address_of(&to, attr->v6, 2, 2, STREAM_PATH_PORT);
    p->net[0] = open_net(1, attr);
    p->net[1] = open_net(2, attr);
    p->end[1] = NULL;
    assert_int_equal(rddp_stream_listen(p->net[1], STREAM_PATH_PORT, 1), 0);
    p->end[0] = rddp_stream_connect(p->net[0], (struct sockaddr *)&from, (struct sockaddr *)&to);
    assert_non_null(p->end[0]);
    assert_int_equal(rddp_stream_state(p->end[0]), RDDP_STREAM_CONNECTING);
    for (int i = 0; i < ROUNDS && !(p->end[1] = rddp_stream_accept(p->net[1])); i++)
        stream_path_turn(p);
    assert_non_null(p->end[1]);
    assert_int_equal(rddp_stream_state(p->end[0]), RDDP_STREAM_OPEN);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rddp_stream_has_option(p->end[i]), !attr->no_option);
}

void stream_path_close(struct stream_path *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->end[i]) {
            assert_int_equal(rddp_stream_net_close(p->net[i]), -EBUSY);
            rddp_stream_close(p->end[i]);
        }
        assert_int_equal(rddp_stream_net_close(p->net[i]), 0);
    }
}
