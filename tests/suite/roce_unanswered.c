/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_unanswered.c - a peer that never answers, or answers no more: the line of the log names the port that the last
 * packet to it went to, and how long ago its own last packet came. */
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/container.h"
#include "loop/reactor.h"
#include "roce/bth.h"
#include "roce/io/roce_port.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum {
    OCTETS = 64,
    POLLS = 100,    /* that take all that has come */
    SILENT_MS = 30, /* between its last packet and the first that it does not answer */
};

/* Two addresses of this host that are not its loopback: peers there are first asked at the common port. */
static const char *const address[2] = {"10.91.0.1", "10.91.0.2"};

static struct hands h;
static int wire = -1; /* hears each packet of UDP here */
static char explained[512];

struct unanswered {
    bool near;  /* it is at our own address, and asked at its own port from the first packet on */
    bool heard; /* one of its packets has come */
    uint8_t retries;
    bool at_own_port; /* where the last of them goes */
};

static void note_line(void *user, enum rddp_log_level level, const char *line)
{
    (void)user;
    if (level == RDDP_LOG_WARN && strstr(line, "acknowledged nothing, after all retries"))
        snprintf(explained, sizeof(explained), "%s", line);
}

/* One end is connected, and gives up soon. */
static void open_end(const struct unanswered *u)
{
    struct rddp_context_attr attr;

    explained[0] = 0;
    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    attr.log = note_line;
    attr.log_level = RDDP_LOG_WARN;
    hands_open_with(&h, RDDP_QPT_RC, address[!u->near], &attr);
    hands_make(&h);
    h.ib.timeout = 8; /* 1 ms */
    h.ib.retry_cnt = u->retries;
    h.ib.local = hand_address(address[0], 0);
    hand_connect(&h, 0, rddp_qp_num(h.end[1].qp));
}

/* The other one has all the time that it needs. */
static void connect_peer(void)
{
    struct rddp_ib_attr defaults;

    rddp_ib_attr_init(&defaults);
    h.ib.timeout = defaults.timeout;
    h.ib.retry_cnt = defaults.retry_cnt;
    h.ib.local = h.address;
    h.address = hand_address(address[0], 0);
    hand_connect(&h, 1, rddp_qp_num(h.end[0].qp));
}

static bool completed(unsigned end)
{
    struct rddp_wc wc;
    int n = rddp_poll_cq(h.end[end].cq, 1, &wc);

    assert_true(n <= 0 || wc.status == RDDP_WC_SUCCESS);
    return n > 0;
}

/* Packets that this end had from whoever took them at the common port. */
static uint64_t handed_over(void)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(h.end[0].qp, &info), 0);
    return info.ib.handed;
}

static void hear_once(void)
{
    hand_post(&h.end[1], &h.end[0], RDDP_WR_RDMA_WRITE, 0, OCTETS, 0);
    while (!completed(1))
        assert_false(completed(0));
    for (unsigned i = 0; i < POLLS; i++)
        assert_false(completed(0));
}

/* The last packet of the peer comes straight from it: one that is handed over says nothing of its port. */
static void hear_of_peer(void)
{
    uint64_t handed;

    connect_peer();
    do {
        handed = handed_over();
        hear_once();
    } while (handed_over() != handed);
    assert_int_equal(rddp_destroy_qp(h.end[1].qp), 0);
    h.end[1].qp = NULL;
    poll(NULL, 0, SILENT_MS);
}

static void give_up(void)
{
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, OCTETS, 0);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_RETRY_EXC_ERR);
    assert_true(explained[0]);
}

static unsigned own_port(unsigned end)
{
    return rddp_qp_num(h.end[end].qp) >> ROCE_SLOT_BITS;
}

/* Where the last of all packets from this port went. */
static unsigned last_port_from(unsigned port)
{
    uint8_t p[BTH_MTU_MAX];
    unsigned last = 0;
    ssize_t n;

    while ((n = recv(wire, p, sizeof(p), MSG_DONTWAIT)) > 0) {
        const uint8_t *udp = p + (p[0] & 0xf) * 4;

        if (get16(udp) == port)
            last = get16(udp + 2);
    }
    return last;
}

static void explain(const struct unanswered *u)
{
    uint64_t began_us = reactor_now_us(), ago_ms;
    unsigned peer_port, port, named = 0;
    const char *why;

    open_end(u);
    peer_port = own_port(1);
    if (u->heard)
        hear_of_peer();
    give_up();
    port = last_port_from(own_port(0));
    assert_int_equal(port, u->at_own_port ? peer_port : ROCE_PORT);
    why = strrchr(explained, ';');
    assert_non_null(why);
    if (u->heard) {
        assert_int_equal(
            sscanf(why, "; its last packet came %" SCNu64 " ms ago, ours went to port %u,", &ago_ms, &named), 2);
        assert_in_range(ago_ms, SILENT_MS, (reactor_now_us() - began_us) / 1000);
    } else {
        assert_int_equal(sscanf(why, "; none of its packets have come, ours went to port %u,", &named), 1);
    }
    assert_int_equal(named, port);
    hands_close(&h);
}

static void none_has_come(void **state)
{
    static const struct unanswered all[] = {
        {.retries = 0, .at_own_port = false},
        {.retries = 1, .at_own_port = true},
        {.retries = 2, .at_own_port = false},
        {.retries = 2, .at_own_port = true, .near = true},
    };

    (void)state;
    for (unsigned i = 0; i < countof(all); i++)
        explain(&all[i]);
}

static void no_more_come(void **state)
{
    static const struct unanswered all[] = {
        {.heard = true, .retries = 0, .at_own_port = true},
        {.heard = true, .retries = 1, .at_own_port = false},
        {.heard = true, .retries = 2, .at_own_port = false},
        {.heard = true, .retries = 2, .at_own_port = true, .near = true},
    };

    (void)state;
    for (unsigned i = 0; i < countof(all); i++)
        explain(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_has_come), cmocka_unit_test(no_more_come)};

    if (!network_alone() || !network_add(address[0]) || !network_add(address[1]) ||
        (wire = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP)) < 0) {
        print_message("no namespace with addresses of its own here\n");
        return 77;
    }
    return cmocka_run_group_tests_name("roce_unanswered", tests, NULL, NULL);
}
