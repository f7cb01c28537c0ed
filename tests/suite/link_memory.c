/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_memory.c - connections whose link is no socket: two rings of memory take over from the kernel's TCP. */
#include "tests/suite/lib/link_memory.h"

#include "endpoint/objects.h"
#include "endpoint/endpoint_link.h"
#include "tests/suite/lib/pair.h"

enum { LENGTH = 300000, ROUNDS = 8 };

/* Everything that was sent before has arrived: nothing may be left in the sockets. */
static void say_both_ways(struct pair *pair)
{
    struct side *side[] = {&pair->client, &pair->server};

    for (int i = 0; i < 2; i++) {
        pair_receive(side[1 - i], 1, 0, 8);
        assert_int_equal(pair_post(side[i], side[1 - i], RDDP_WR_SEND, 2, 0, 8, 0, RDDP_SEND_SIGNALED), 0);
        assert_int_equal(pair_completion(side[1 - i]).status, RDDP_WC_SUCCESS);
        assert_int_equal(pair_completion(side[i]).status, RDDP_WC_SUCCESS);
    }
}

static bool has_links(const struct pair *pair)
{
    return !pair->row->packet && !pair->row->hand_off && pair->row->wire != RDDP_WIRE_SCTP &&
           pair->row->wire != RDDP_WIRE_ROCE;
}

/* Both ends at once, or one of them would see the other's socket end. */
static struct link *move(struct pair *pair, uint32_t capacity)
{
    struct endpoint *client, *server;
    struct reactor *reactor[2];
    struct link *end[2];

    say_both_ways(pair);
    client = qp_hold(pair->client.qp);
    server = qp_hold(pair->server.qp);
    reactor[0] = &client->loop->reactor;
    reactor[1] = &server->loop->reactor;
    link_memory_new(end, reactor, capacity);
    endpoint_exchange_link(client, end[0]);
    endpoint_exchange_link(server, end[1]);
    qp_release(server);
    qp_release(client);
    return end[0];
}

static void talk(struct pair *pair, unsigned i)
{
    struct side *from = i % 2 ? &pair->client : &pair->server, *to = i % 2 ? &pair->server : &pair->client;

    pair_pattern(from->buffer, LENGTH, i);
    pair_receive(to, i, 0, LENGTH);
    assert_int_equal(pair_post(from, to, RDDP_WR_RDMA_WRITE, i, 0, LENGTH, LENGTH, 0), 0);
    assert_int_equal(pair_post(from, to, RDDP_WR_SEND, i, 0, LENGTH, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(to).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(from).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(to->buffer, LENGTH, i));
    assert_true(pair_is_pattern(to->buffer + LENGTH, LENGTH, i));
    assert_int_equal(pair_post(to, from, RDDP_WR_RDMA_READ, i, 2UL * LENGTH, LENGTH, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(to).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(to->buffer + 2UL * LENGTH, LENGTH, i));
}

static void carries_everything(void **state)
{
    static const uint32_t capacity[] = {1, 7, 1448, LINK_MEMORY_MAX};
    struct pair *pair = *state;

    if (!has_links(pair))
        skip();
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct link *link = move(pair, capacity[i % 4]);
        uint64_t before = link_memory_carried(link);

        if (capacity[i % 4] > 7) { /* a few octets at a time, LENGTH would take minutes */
            talk(pair, i);
            assert_true(link_memory_carried(link) - before > 3UL * LENGTH);
        } else {
            say_both_ways(pair);
            assert_true(link_memory_carried(link) - before >= 16);
        }
    }
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_equal(pair_event(&pair->client, RDDP_EVENT_DISCONNECTED).status, 0);
}

/* Both ends hear of a link that fails, and what was posted is flushed. */
static void is_lost(void **state)
{
    struct pair *pair = *state;

    if (!has_links(pair))
        skip();
    link_memory_cut(move(pair, LINK_MEMORY_MAX));
    pair_receive(&pair->server, 5, 0, 8);
    assert_int_not_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_not_equal(pair_event(&pair->client, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_WR_FLUSH_ERR);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(carries_everything), PAIR_TEST(is_lost)};

    return pair_run("link_memory", tests, 2, true);
}
