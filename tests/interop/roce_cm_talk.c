/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_cm_talk.c - plays the other end of ucmatose and udaddy without messages (-C 0), from a plain UDP socket: the
 * connection manager of RoCE with that of a kernel. There are no queue pairs behind it.
 *
 *   roce_cm_talk [-s] [-d] [-r] [-w] OWN PEER PORT COUNT
 *
 * OWN and PEER are IPv4 addresses. -s: we are the server; -d: datagrams (SIDR); -r: the server rejects; -w: we
 * disconnect first, else the peer does. It makes COUNT connections at once, waits until all are established, then until
 * all are disconnected, and prints one line of counters. Exit code 0: all were established, or all rejected if it
 * prints so. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "roce/icrc.h"
#include "roce/rcm.h"

enum { CONNS = 64, QPN = 0x4242, DATAGRAM = 65536, LIMIT_S = 90, TIMEWAIT_US = 100000, LINGER_US = 1000000 };

static struct talk {
    bool server, datagrams, rejects, first;
    struct in_addr own, peer;
    uint16_t port;
    uint32_t count;

    int udp;
    struct icrc_path out, in;
    struct icrc_space space;
    struct rcm_path path;
    struct rcm cm;
    struct rcm_listener listener;
    struct rcm_conn conn[CONNS];
    uint32_t used, established, resolved, rejected, disconnected, failed, over;
    uint16_t reason; /* of the newest rejection */
    uint64_t wrong;
} talk;

static void print_counters(void)
{
    const struct rcm_counters *c = &talk.cm.counters;

    printf("roce_cm_talk: %u established, %u resolved, %u rejected (%u), %u failed, %u disconnected; sent again %llu, "
           "duplicates %llu, dropped %llu; wrong ICRC %llu\n",
           talk.established, talk.resolved, talk.rejected, talk.reason, talk.failed, talk.disconnected,
           (unsigned long long)c->resent, (unsigned long long)c->duplicates, (unsigned long long)c->dropped,
           (unsigned long long)talk.wrong);
}

static void quit(const char *what)
{
    print_counters();
    fprintf(stderr, "roce_cm_talk: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t give_random(void *unused)
{
    uint64_t number;

    (void)unused;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        quit("random numbers");
    return number;
}

/* --- packets ------------------------------------------------------------------------------------------------------ */

static void put_gid(uint8_t *gid, const struct in_addr *a)
{
    gid[10] = gid[11] = 0xff;
    memcpy(gid + 12, a, 4);
}

static void open_udp(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT), .sin_addr = talk.own};
    int discover = IP_PMTUDISC_DO;

    talk.udp = socket(AF_INET, SOCK_DGRAM, 0);
    if (talk.udp < 0 || bind(talk.udp, (struct sockaddr *)&a, sizeof(a)) ||
        setsockopt(talk.udp, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)))
        quit("the UDP socket");
    talk.out.source_port = talk.out.destination_port = talk.in.destination_port = ROCE_PORT;
    memcpy(talk.out.source, &talk.own, 4);
    memcpy(talk.out.destination, &talk.peer, 4);
    memcpy(talk.in.source, &talk.peer, 4);
    memcpy(talk.in.destination, &talk.own, 4);
    put_gid(talk.path.local, &talk.own);
    put_gid(talk.path.peer, &talk.peer);
    talk.path.peer_port = ROCE_PORT;
}

static void send_packets(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT), .sin_addr = talk.peer};
    uint8_t p[RCM_PACKET_OCTETS + ICRC_OCTETS];
    struct rcm_path path;

    while (rcm_output(&talk.cm, &path, p)) {
        put32le(p + RCM_PACKET_OCTETS, icrc_head(icrc_begin(&talk.out, 0, sizeof(p)), p, RCM_PACKET_OCTETS));
        (void)sendto(talk.udp, p, sizeof(p), 0, (struct sockaddr *)&to, sizeof(to));
    }
}

static void receive_packet(void)
{
    static uint8_t octets[DATAGRAM];
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    ssize_t n = recvfrom(talk.udp, octets, sizeof(octets), MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    struct bth b;

    if (n < BTH_OCTETS + ICRC_OCTETS || from.sin_addr.s_addr != talk.peer.s_addr)
        return;
    talk.in.source_port = ntohs(from.sin_port);
    if (!icrc_is_right(&talk.in, octets, (uint32_t)n, &talk.space))
        talk.wrong++;
    else if (bth_decode(&b, octets, (uint32_t)n) == BTH_OK && rcm_is_packet(&b))
        rcm_input(&talk.cm, &talk.path, b.data, b.length, now_us());
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static struct rcm_terms terms_of(uint32_t number)
{
    return (struct rcm_terms){.qpn = QPN + number,
                              .psn = (uint32_t)give_random(NULL) & BTH_MASK24,
                              .q_key = 0x1234567,
                              .responder_resources = 1,
                              .initiator_depth = 1,
                              .retries = 7,
                              .rnr_retries = 7,
                              .mtu = rcm_mtu_code(1024),
                              .ack_delay = 15,
                              .pkey = BTH_PKEY_DEFAULT};
}

static uint64_t service(void)
{
    return rcm_service(talk.datagrams ? RCM_SPACE_UDP : RCM_SPACE_TCP, talk.port);
}

static void call(uint32_t number)
{
    struct rcm_connect connect = {.path = talk.path,
                                  .service = service(),
                                  .rdma_cm = true,
                                  .source_port = (uint16_t)(40000 + number),
                                  .terms = terms_of(number),
                                  .hop_limit = 64,
                                  .ack_timeout = 19,
                                  .response_timeout = RCM_TIMEOUT_DEFAULT,
                                  .cm_retries = RCM_RETRIES_MAX,
                                  .timewait_us = TIMEWAIT_US};

    if ((talk.datagrams ? rcm_resolve : rcm_connect)(&talk.cm, &talk.conn[number], &connect, now_us()))
        quit("connect");
}

static void take_request(void)
{
    const struct rcm_accept accept = {.terms = terms_of(talk.used), .timewait_us = TIMEWAIT_US};
    struct rcm_conn *conn = &talk.conn[talk.used];

    if (talk.used == talk.count) {
        rcm_refuse(&talk.cm, RCM_NO_RESOURCES, NULL, 0);
        return;
    }
    talk.used++;
    rcm_take(&talk.cm, conn);
    if (talk.rejects)
        rcm_reject(&talk.cm, conn, RCM_CONSUMER, NULL, 0, now_us());
    else
        rcm_accept(&talk.cm, conn, &accept, now_us());
    talk.rejected += talk.rejects;
    talk.resolved += talk.datagrams && !talk.rejects;
}

static void take_event(const struct rcm_event *e)
{
    switch (e->kind) {
    case RCM_EVENT_REQUEST:
        take_request();
        break;
    case RCM_EVENT_ANSWERED:
        talk.established += !rcm_confirm(&talk.cm, e->conn);
        break;
    case RCM_EVENT_RESOLVED:
        talk.resolved += e->message->status == RCM_SIDR_VALID && e->message->terms.qpn;
        talk.rejected += e->message->status != RCM_SIDR_VALID;
        talk.reason = e->message->status;
        break;
    case RCM_EVENT_ESTABLISHED:
        talk.established++;
        break;
    case RCM_EVENT_REJECTED:
        talk.rejected++;
        talk.reason = e->reason;
        break;
    case RCM_EVENT_DISCONNECTED:
        talk.disconnected++;
        break;
    case RCM_EVENT_GONE:
        talk.over++;
        break;
    default:
        talk.failed++;
    }
}

static void work(void)
{
    struct pollfd p = {.fd = talk.udp, .events = POLLIN};
    uint64_t now = now_us(), due = rcm_deadline(&talk.cm);
    struct rcm_event e;

    due = due > now ? due - now : 0;
    poll(&p, 1, (int)(due < 100000 ? due / 1000 + 1 : 100));
    if (p.revents)
        receive_packet();
    while (rcm_event(&talk.cm, &e))
        take_event(&e);
    rcm_tick(&talk.cm, now_us());
    while (rcm_event(&talk.cm, &e))
        take_event(&e);
    send_packets();
}

/* Plays until COUNT requests have been answered, and those that were established are over. */
static void play(void)
{
    uint64_t limit_us = now_us() + LIMIT_S * 1000000ull, linger_us;

    while (talk.established + talk.resolved + talk.rejected + talk.failed < talk.count) {
        work();
        if (now_us() > limit_us)
            quit("not all are established");
    }
    for (uint32_t i = 0; i < talk.count && talk.first; i++)
        rcm_disconnect(&talk.cm, &talk.conn[i], now_us());
    while (talk.disconnected < talk.established) {
        work();
        if (now_us() > limit_us)
            quit("not all are disconnected");
    }
    for (linger_us = now_us() + LINGER_US; now_us() < linger_us;)
        work(); /* what the peer has not heard comes again */
}

static void read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "sdrw")) != -1) {
        talk.server |= option == 's';
        talk.datagrams |= option == 'd';
        talk.rejects |= option == 'r';
        talk.first |= option == 'w';
    }
    if (argc - optind != 4 || !inet_aton(argv[optind], &talk.own) || !inet_aton(argv[optind + 1], &talk.peer)) {
        fprintf(stderr, "usage: roce_cm_talk [-s] [-d] [-r] [-w] OWN PEER PORT COUNT\n");
        exit(2);
    }
    talk.port = (uint16_t)strtoul(argv[optind + 2], NULL, 10);
    talk.count = (uint32_t)strtoul(argv[optind + 3], NULL, 10);
    if (!talk.count || talk.count > CONNS) {
        fprintf(stderr, "roce_cm_talk: expected a COUNT of 1 to %d\n", CONNS);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    const struct rcm_attr attr = {.id_mask = UINT32_MAX, .guid = 1, .random = give_random};

    read_options(argc, argv);
    alarm(2 * LIMIT_S);
    open_udp();
    rcm_init(&talk.cm, &attr);
    if (talk.server) {
        /* All requests come from one address, which has a part of the backlog. */
        talk.listener = (struct rcm_listener){
            .service = service(), .backlog = RCM_SHARE * CONNS, .rdma_cm = true, .datagram = talk.datagrams};
        rcm_listen(&talk.cm, &talk.listener);
        printf("listening\n");
        fflush(stdout);
    } else {
        for (uint32_t i = 0; i < talk.count; i++)
            call(i);
        send_packets();
    }
    play();
    print_counters();
    return talk.failed ? 1 : 0;
}
