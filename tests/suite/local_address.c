/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* local_address.c - a connection leaves from the address that the application names, over every way to connect. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/suite/lib/network.h"
#include "tests/suite/lib/pair.h"

static struct pair *of(void **state)
{
    return *state;
}

static in_port_t *port_of(struct sockaddr_storage *address)
{
    return &((struct sockaddr_in *)address)->sin_port; /* at the same place for IPv6 */
}

/* An address of the client: of IPv4 one that the system would not choose. */
static struct sockaddr_storage own_address(const struct pair *pair)
{
    struct sockaddr_storage address = pair->addr;

    if (pair->row->packet)
        network_address(&address, 1, 2, 0);
    else if (!pair->row->v6)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    *port_of(&address) = 0;
    return address;
}

/* A port of TCP that is not in use now, below those that the kernel gives to others meanwhile. The other transports
 * have ports of their own, and take this one too. */
static in_port_t free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    do
        any.sin_port = htons((uint16_t)(10000 + rand() % 20000));
    while (bind(fd, (struct sockaddr *)&any, sizeof(any)));
    close(fd);
    return any.sin_port;
}

static struct rddp_qp *make_qp(const struct pair *pair, const struct side *side)
{
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_qp *qp;

    attr.send_cq = attr.recv_cq = side->cq;
    qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(qp);
    return qp;
}

static int start(struct pair *pair, struct rddp_qp *qp, const struct sockaddr_storage *from)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    attr.wire.device = pair->client.device;
    attr.local = (const struct sockaddr *)from;
    return rddp_connect(qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr);
}

static void expect_address(const struct sockaddr_storage *have, const struct sockaddr_storage *want)
{
    assert_int_equal(have->ss_family, want->ss_family);
    if (want->ss_family == AF_INET6)
        assert_memory_equal(&((const struct sockaddr_in6 *)have)->sin6_addr,
                            &((const struct sockaddr_in6 *)want)->sin6_addr, sizeof(struct in6_addr));
    else
        assert_int_equal(((const struct sockaddr_in *)have)->sin_addr.s_addr,
                         ((const struct sockaddr_in *)want)->sin_addr.s_addr);
}

/* Connects from `from`, and returns the client's address as the server sees it. Both ends see the same. */
static struct sockaddr_storage connect_from(struct pair *pair, const struct sockaddr_storage *from)
{
    struct rddp_qp_info client, server;
    struct rddp_event request;

    assert_int_equal(start(pair, pair->client.qp, from), 0);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_accept(request.request, pair->server.qp, NULL), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_query_qp(pair->client.qp, &client), 0);
    assert_int_equal(rddp_query_qp(pair->server.qp, &server), 0);
    expect_address(&client.local, &server.peer);
    assert_int_equal(*port_of(&client.local), *port_of(&server.peer));
    return server.peer;
}

static void make_qps(struct pair *pair)
{
    pair->client.qp = make_qp(pair, &pair->client);
    pair->server.qp = make_qp(pair, &pair->server);
}

static void address_and_port(void **state)
{
    struct pair *pair = of(state);
    struct sockaddr_storage from = own_address(pair), seen;

    make_qps(pair);
    *port_of(&from) = free_port();
    seen = connect_from(pair, &from);
    expect_address(&seen, &from);
    assert_int_equal(*port_of(&seen), *port_of(&from));
}

static void address_alone(void **state)
{
    struct pair *pair = of(state);
    struct sockaddr_storage from = own_address(pair), seen;

    make_qps(pair);
    seen = connect_from(pair, &from);
    expect_address(&seen, &from);
    assert_int_not_equal(*port_of(&seen), 0);
}

static void port_alone(void **state)
{
    struct pair *pair = of(state);
    struct sockaddr_storage from = {.ss_family = pair->addr.ss_family}, seen;

    make_qps(pair);
    *port_of(&from) = free_port();
    seen = connect_from(pair, &from);
    assert_int_equal(*port_of(&seen), *port_of(&from));
}

/* Each is refused at once, and the queue pair can be connected after that. */
static void refused(void **state)
{
    struct sockaddr_in6 foreign6 = {.sin6_family = AF_INET6};
    struct sockaddr_in foreign = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("192.0.2.1")};
    struct sockaddr_storage from = {.ss_family = AF_UNIX}, other = {.ss_family = AF_INET};
    struct pair *pair = of(state);
    bool v6 = pair->row->v6;

    make_qps(pair);
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &foreign6.sin6_addr), 1);
    assert_int_equal(start(pair, pair->client.qp, &from), -EAFNOSUPPORT);
    other.ss_family = v6 ? AF_INET : AF_INET6;
    assert_int_equal(start(pair, pair->client.qp, &other), -EAFNOSUPPORT);
    memcpy(&from, v6 ? (void *)&foreign6 : (void *)&foreign, v6 ? sizeof(foreign6) : sizeof(foreign));
    assert_int_equal(start(pair, pair->client.qp, &from), -EADDRNOTAVAIL);
    from = own_address(pair);
    connect_from(pair, &from);
}

/* The port of a listener, and a connection that exists. Each association of our own SCTP has a UDP port to itself, and
 * so has all ports of SCTP. To RoCE the initiator's port is a number that its peer is told. */
static void taken(void **state)
{
    struct pair *pair = of(state);
    struct sockaddr_storage from = own_address(pair), listening;
    struct rddp_wire_attr wire = pair_wire(pair->row, true);
    struct rddp_listener *listener;
    struct rddp_qp *qp;

    if (pair->row->wire == RDDP_WIRE_SCTP || pair->row->wire == RDDP_WIRE_ROCE)
        skip();
    make_qps(pair);
    qp = make_qp(pair, &pair->client);
    wire.device = pair->client.device;
    listener = rddp_listen(pair->client.events, (struct sockaddr *)&from, sizeof(from), 4, &wire, NULL);
    assert_non_null(listener);
    assert_int_equal(rddp_listener_addr(listener, &listening), 0);
    assert_int_equal(start(pair, qp, &listening), -EADDRINUSE);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    *port_of(&from) = free_port();
    connect_from(pair, &from);
    assert_int_equal(start(pair, qp, &from), -EADDRNOTAVAIL);
    assert_int_equal(rddp_destroy_qp(qp), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(address_and_port), PAIR_TEST(address_alone), PAIR_TEST(port_alone),
        PAIR_TEST(refused),          PAIR_TEST(taken),
    };

    srand((unsigned)getpid());
    return pair_run("local_address", tests, sizeof(tests) / sizeof(*tests), false);
}
