/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exchange.c - another link takes over a working connection; no octet is lost or duplicated. */
#include <string.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "endpoint/endpoint_link.h"
#include "tcp/io/link_tcp.h"
#include "tests/suite/lib/pair.h"

enum { LENGTH = 300000, ROUNDS = 20 };

/* A second descriptor of the same TCP connection plays the other link. */
static void exchange(struct side *side)
{
    struct endpoint *endpoint = qp_hold(side->qp);
    struct sockaddr_storage local = endpoint->local;
    struct link *link;
    int fd = -1;

    for (int i = 3; i < 1024 && fd < 0; i++) {
        struct sockaddr_storage name;
        socklen_t length = sizeof(name);

        if (!getsockname(i, (struct sockaddr *)&name, &length) && !memcmp(&name, &local, length) &&
            !getpeername(i, (struct sockaddr *)&name, &length))
            fd = dup(i);
    }
    assert_true(fd >= 0);
    link = link_tcp_new(&endpoint->loop->reactor, fd, true, false);
    assert_non_null(link);
    endpoint_exchange_link(endpoint, link);
    qp_release(endpoint);
}

static void in_the_middle(void **state)
{
    struct pair *pair = *state;

    if (pair->row->packet || pair->row->hand_off || pair->row->wire == RDDP_WIRE_SCTP ||
        pair->row->wire == RDDP_WIRE_ROCE)
        skip(); /* there is no socket to make another link of */
    for (unsigned i = 0; i < ROUNDS; i++) {
        pair_pattern(pair->client.buffer, LENGTH, i);
        pair_receive(&pair->server, i, 0, LENGTH);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, i, 0, LENGTH, 0, RDDP_SEND_SIGNALED), 0);
        exchange(i % 2 ? &pair->client : &pair->server);
        assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
        assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
        assert_true(pair_is_pattern(pair->server.buffer, LENGTH, i));
    }
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(in_the_middle)};

    return pair_run("exchange", tests, 1, true);
}
