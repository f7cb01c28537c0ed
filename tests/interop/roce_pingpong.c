/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_pingpong.c - plays the other end of ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong by the public calls: a
 * queue pair of RoCE version 2, connected by hand. It needs no privilege, device or module.
 *
 *   roce_pingpong [-s] [-u | -d] [-r] OWN PEER SIZE COUNT
 *
 * OWN and PEER are IPv4 addresses. -s: we are the server; -u: unreliable; -d: datagrams; -r: post our receives late, so
 * that the peer has to wait for them. The peer receives our messages, and sends its own, in one buffer: every message
 * but one that it sends first has to be ours again, octet by octet. It prints one line of counters. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rddp/rddp.h>

enum {
    EXCHANGE_PORT = 18515,
    EXCHANGE = 52, /* octets of "LID:QPN:PSN:GID" and its end: 4, 6, 6 and 32 digits */
    MTU = 1024,
    DEPTH = 64,
    PAGE = 4096,
    LIMIT_S = 60,
    LATE_US = 3000, /* of receives with -r */
    LAST_US = 300000,
    QKEY = 0x11111111, /* of ibv_ud_pingpong */
};

static struct pingpong {
    bool server, unreliable, datagrams, late;
    struct in_addr own, peer;
    uint32_t size, count;

    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_mr *mr;
    struct rddp_qp *qp;
    struct rddp_ah *ah; /* of datagrams: the peer, and its queue pair */
    uint32_t peer_qpn;
    uint32_t front;  /* octets in front of what we receive */
    uint8_t *buffer; /* what we send, then what we receive */
    uint32_t sent, received, posted;
    uint64_t post_us;
    bool send_done, receive_done;
} pp;

static void print_counters(void)
{
    struct rddp_qp_info info = {.state = RDDP_QP_IDLE};

    if (pp.qp)
        rddp_query_qp(pp.qp, &info);
    printf("roce_pingpong: %u sent, %u received; sent again %llu, NAKs %llu, not ready %llu; the peer's: duplicates "
           "%llu, gaps %llu, not ready %llu; wrong ICRC %llu\n",
           pp.sent, pp.received, (unsigned long long)info.ib.resent, (unsigned long long)info.ib.naks,
           (unsigned long long)info.ib.not_ready, (unsigned long long)info.ib.duplicates,
           (unsigned long long)info.ib.gaps, (unsigned long long)info.ib.not_ready_here,
           (unsigned long long)info.ib.wrong_icrc);
}

static void quit(const char *what)
{
    int error = errno;

    print_counters();
    fprintf(stderr, "roce_pingpong: %s%s%s\n", what, error ? ": " : "", error ? strerror(error) : "");
    exit(1);
}

static void check_error(int error, const char *what)
{
    if (!error)
        return;
    errno = -error;
    quit(what);
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- exchange of numbers over TCP ----------------------------------------------------------------------------------
 */

static int open_exchange(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(EXCHANGE_PORT), .sin_addr = pp.own};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, accepted;

    if (!pp.server) {
        a.sin_addr = pp.peer;
        for (int tries = 0; connect(fd, (struct sockaddr *)&a, sizeof(a)); tries++) {
            if (tries == 100)
                quit("connect");
            usleep(100000);
            close(fd);
            fd = socket(AF_INET, SOCK_STREAM, 0);
        }
        errno = 0;
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
        quit("listen");
    accepted = accept(fd, NULL, NULL);
    if (accepted < 0)
        quit("accept");
    close(fd);
    return accepted;
}

static void tell_numbers(int fd, uint32_t psn)
{
    char text[EXCHANGE + 1];

    snprintf(text, sizeof(text), "0000:%06x:%06x:00000000000000000000ffff%08x", rddp_qp_num(pp.qp), psn,
             ntohl(pp.own.s_addr));
    if (write(fd, text, EXCHANGE) != EXCHANGE)
        quit("write");
}

static void learn_numbers(int fd, uint32_t *qpn, uint32_t *psn)
{
    char text[EXCHANGE + 1] = {0};
    unsigned lid;

    if (recv(fd, text, EXCHANGE, MSG_WAITALL) != EXCHANGE || sscanf(text, "%x:%x:%x:", &lid, qpn, psn) != 3)
        quit("the peer's numbers");
}

/* The client is ready when it says so; the server's pingpong waits for it before it goes on. */
static void say_done(int fd)
{
    char done[sizeof("done")] = "done";

    if (pp.server ? recv(fd, done, sizeof(done), MSG_WAITALL) <= 0 : write(fd, done, sizeof(done)) != sizeof(done))
        quit("done");
}

/* --- the queue pair -------------------------------------------------------------------------------------------------
 */

static void make_memory(void)
{
    size_t octets = 2 * (size_t)(pp.size ? pp.size : 1) + pp.front;

    pp.buffer = calloc(1, octets);
    pp.mr = pp.buffer ? rddp_reg_mr(pp.pd, pp.buffer, octets, RDDP_ACCESS_LOCAL_WRITE) : NULL;
    if (!pp.mr)
        quit("memory");
    /* ibv_rc_pingpong -c wants a zero at the beginning of each page. */
    for (uint32_t at = 0; at < pp.size; at++)
        pp.buffer[at] = at % PAGE ? (uint8_t)((at * 2654435761u) >> 24) : 0;
}

static void make_queue_pair(void)
{
    struct rddp_qp_attr attr;

    pp.context = rddp_open(NULL);
    pp.pd = pp.context ? rddp_alloc_pd(pp.context) : NULL;
    pp.cq = pp.pd ? rddp_create_cq(pp.context, 4 * DEPTH, NULL, NULL) : NULL;
    if (!pp.cq)
        quit("a context");
    make_memory();
    rddp_qp_attr_init(&attr);
    attr.type = pp.datagrams ? RDDP_QPT_UD : pp.unreliable ? RDDP_QPT_UC : RDDP_QPT_RC;
    attr.send_cq = attr.recv_cq = pp.cq;
    attr.max_send_wr = attr.max_recv_wr = DEPTH;
    pp.qp = rddp_create_qp(pp.pd, &attr);
    if (!pp.qp)
        quit("a queue pair");
}

static void set_address(struct sockaddr_storage *address, struct in_addr of)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = of};

    memcpy(address, &v4, sizeof(v4));
}

static void make_address_handle(uint32_t peer_qpn)
{
    struct rddp_ah_attr attr;

    rddp_ah_attr_init(&attr);
    set_address(&attr.local, pp.own);
    set_address(&attr.peer, pp.peer);
    attr.path_mtu = MTU;
    pp.ah = rddp_create_ah(pp.pd, &attr);
    if (!pp.ah)
        quit("an address handle");
    pp.peer_qpn = peer_qpn;
}

static void connect_queue_pair(uint32_t own_psn, uint32_t peer_qpn, uint32_t peer_psn)
{
    struct rddp_ib_attr attr;

    rddp_ib_attr_init(&attr);
    set_address(&attr.local, pp.own);
    set_address(&attr.peer, pp.peer);
    attr.peer_qpn = peer_qpn;
    attr.rq_psn = peer_psn;
    attr.sq_psn = own_psn;
    attr.path_mtu = MTU;
    attr.timeout = 16; /* eight times 268 ms: an emulated guest beside other tests may stand still for half a second */
    attr.qkey = QKEY;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
        check_error(rddp_modify_qp(pp.qp, &attr), "the queue pair");
    if (pp.datagrams)
        make_address_handle(peer_qpn);
}

static void post_receives(void)
{
    struct rddp_sge sge = {(uintptr_t)pp.buffer + pp.size, pp.front + pp.size, rddp_mr_key(pp.mr)};
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    while (pp.posted < pp.received + (pp.late ? 1 : DEPTH) && !rddp_post_recv(pp.qp, &wr, NULL))
        pp.posted++;
}

static void post_send(void)
{
    struct rddp_sge sge = {(uintptr_t)pp.buffer, pp.size, rddp_mr_key(pp.mr)};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};

    wr.ah = pp.ah;
    wr.remote_qpn = pp.peer_qpn;
    wr.remote_qkey = QKEY;
    check_error(rddp_post_send(pp.qp, &wr, NULL), "post");
    pp.sent++;
    pp.send_done = pp.receive_done = false;
}

/* --- ping, pong ------------------------------------------------------------------------------------------------------
 */

static void check_source(const struct rddp_wc *wc)
{
    struct rddp_ah_attr attr;
    struct in_addr from;

    check_error(rddp_ah_attr_from_wc(wc, pp.buffer + pp.size, &attr), "where it came from");
    from = ((struct sockaddr_in *)&attr.peer)->sin_addr;
    if (from.s_addr != pp.peer.s_addr || wc->src_qp != pp.peer_qpn)
        quit("a message from elsewhere");
}

static void check_received(const struct rddp_wc *wc)
{
    uint8_t *message = pp.buffer + pp.size + pp.front;

    errno = 0;
    if (wc->byte_len != pp.front + pp.size)
        quit("a message of another length");
    if (pp.datagrams)
        check_source(wc);
    if ((pp.received || !pp.server) && memcmp(message, pp.buffer, pp.size) != 0)
        quit("a message with other octets");
    memset(pp.buffer + pp.size, 0xa5, pp.front + pp.size);
}

/* The peer ends when it has our last message, and then nothing answers if its acknowledgement was lost. */
static bool is_peer_gone(const struct rddp_wc *wc)
{
    return wc->status == RDDP_WC_RETRY_EXC_ERR && pp.received == pp.count && pp.sent == pp.count;
}

static void take_completions(void)
{
    struct rddp_wc wc;

    while (rddp_poll_cq(pp.cq, 1, &wc) > 0) {
        if (is_peer_gone(&wc)) {
            pp.send_done = true;
            return;
        }
        if (wc.status) {
            errno = 0;
            quit(rddp_wc_status_str(wc.status));
        }
        if (wc.opcode & RDDP_WC_RECV) {
            check_received(&wc);
            pp.received++;
            pp.receive_done = true;
            pp.post_us = now_us() + LATE_US;
        } else {
            pp.send_done = true;
        }
    }
    if (!pp.late || now_us() >= pp.post_us)
        post_receives();
    if (pp.send_done && pp.receive_done && pp.sent < pp.count)
        post_send();
}

static void play(void)
{
    uint64_t limit_us = now_us() + LIMIT_S * 1000000ull;

    pp.send_done = true; /* the server's first message answers one of the client's */
    if (!pp.server)
        post_send();
    while (pp.received < pp.count || pp.sent < pp.count || !pp.send_done) {
        take_completions();
        if (now_us() > limit_us) {
            errno = 0;
            quit("no end after a minute");
        }
    }
    usleep(LAST_US); /* the peer may have lost our last acknowledgement */
}

static void close_all(void)
{
    check_error(rddp_destroy_qp(pp.qp), "the end of the queue pair");
    if (pp.ah)
        rddp_destroy_ah(pp.ah);
    rddp_dereg_mr(pp.mr);
    rddp_destroy_cq(pp.cq);
    rddp_dealloc_pd(pp.pd);
    check_error(rddp_close(pp.context), "the end of the context");
    free(pp.buffer);
}

static void read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "sudr")) != -1) {
        pp.server |= option == 's';
        pp.unreliable |= option == 'u';
        pp.datagrams |= option == 'd';
        pp.late |= option == 'r';
    }
    if (argc - optind != 4 || !inet_aton(argv[optind], &pp.own) || !inet_aton(argv[optind + 1], &pp.peer)) {
        fprintf(stderr, "usage: roce_pingpong [-s] [-u | -d] [-r] OWN PEER SIZE COUNT\n");
        exit(2);
    }
    pp.size = (uint32_t)strtoul(argv[optind + 2], NULL, 10);
    pp.front = pp.datagrams ? RDDP_GRH_OCTETS : 0;
    pp.count = (uint32_t)strtoul(argv[optind + 3], NULL, 10);
}

int main(int argc, char **argv)
{
    uint32_t own_psn, peer_qpn, peer_psn;
    int fd;

    read_options(argc, argv);
    alarm(2 * LIMIT_S);
    if (getrandom(&own_psn, sizeof(own_psn), 0) != sizeof(own_psn))
        quit("random numbers");
    own_psn &= 0xffffff;
    make_queue_pair();
    fd = open_exchange();
    if (!pp.server)
        tell_numbers(fd, own_psn);
    learn_numbers(fd, &peer_qpn, &peer_psn);
    connect_queue_pair(own_psn, peer_qpn, peer_psn);
    if (!pp.late)
        post_receives();
    if (pp.server) /* a client sends as soon as it knows: what finds no receive is lost, if it is a datagram */
        tell_numbers(fd, own_psn);
    say_done(fd);
    play();
    print_counters();
    close_all();
    return 0;
}
