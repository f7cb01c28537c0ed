/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lwip.c - goodput and processor time of lwIP, the user-space TCP of Debian's liblwip, on the path of bench/stream.c:
 * two TUN devices with the kernel forwarding between them.
 *
 * lwip [MIB]: transfers MIB for each MTU, default 64, and an eighth of that with losses. It creates its own network
 * namespace. Each end is a process with a stack of its own, driven by raw calls from the thread that reads the device;
 * lwIP's own thread only runs its timers. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>

#include "base/container.h"
#include "bench/lib/path.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"

enum { TRANSFER_PORT = 700, BLOCK = 1 << 20, BURST = 64, PIECE_MAX = 65535, PACKET_MAX = 1500, FULL = 100000 };

/* What an end reports when its part is done. */
struct outcome {
    double took, cpu;
};

static struct {
    bool sends;
    uint32_t mtu, lose;
    uint64_t octets;
} job;

static uint8_t *source, *target;
static int tun_fd, report_fd;
static struct netif device;
static struct tcp_pcb *sender;
static uint64_t done, written, start_us;
static double start_cpu;
static uint64_t chance = 88172645463325252ULL;

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void begin(void)
{
    start_us = path_now_us();
    start_cpu = cpu_seconds();
}

static void count(uint64_t octets)
{
    struct outcome outcome;

    done += octets;
    if (done != job.octets)
        return;
    outcome = (struct outcome){(double)(path_now_us() - start_us) / 1e6, cpu_seconds() - start_cpu};
    if (write(report_fd, &outcome, sizeof(outcome)) != sizeof(outcome))
        path_die("report");
}

static bool is_lost(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % FULL < job.lose;
}

/* --- the device ---------------------------------------------------------------------------------------------- */

static err_t leave(struct netif *of, struct pbuf *p, const ip4_addr_t *to)
{
    struct span span[TUN_SPANS];
    struct tun_note note = {0};
    uint32_t spans = 0;

    (void)of;
    (void)to;
    if (is_lost())
        return ERR_OK;
    for (; p && spans < TUN_SPANS; p = p->next)
        span[spans++] = (struct span){p->payload, p->len};
    tun_send(tun_fd, span, spans, &note);
    return ERR_OK;
}

static err_t set_up_device(struct netif *of)
{
    of->output = leave;
    of->mtu = (u16_t)job.mtu;
    of->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
    return ERR_OK;
}

/* The packet is read into the buffer that lwIP keeps: no copy but the one to the application. Both ends have the MSS
 * that liblwip was built with, so no packet is longer than on Ethernet. */
static bool read_packet(void)
{
    struct pbuf *p = pbuf_alloc(PBUF_RAW, PACKET_MAX, PBUF_RAM);
    struct tun_note note;
    struct iovec slots;
    ssize_t length;

    if (!p)
        path_die("pbuf_alloc");
    slots = (struct iovec){p->payload, p->len};
    length = tun_recv(tun_fd, &slots, 1, &note);
    if (length > 0 && !is_lost()) {
        pbuf_realloc(p, (u16_t)length);
        device.input(p, &device);
    } else {
        pbuf_free(p);
    }
    return length > 0;
}

static _Noreturn void run(void)
{
    for (;;) {
        struct pollfd p = {.fd = tun_fd, .events = POLLIN};

        poll(&p, 1, -1);
        LOCK_TCPIP_CORE();
        for (int n = 0; n < BURST && read_packet(); n++)
            ;
        UNLOCK_TCPIP_CORE();
    }
}

/* --- the connection ------------------------------------------------------------------------------------------ */

static void pump(void)
{
    while (written < job.octets && tcp_sndbuf(sender)) {
        uint64_t at = written % BLOCK, n = tcp_sndbuf(sender);

        n = n < PIECE_MAX ? n : PIECE_MAX;
        n = n < BLOCK - at ? n : BLOCK - at;
        if (tcp_write(sender, source + at, (u16_t)n, 0) != ERR_OK)
            break;
        written += n;
    }
    tcp_output(sender);
}

static err_t acknowledged(void *user, struct tcp_pcb *pcb, u16_t length)
{
    (void)user;
    (void)pcb;
    count(length);
    pump();
    return ERR_OK;
}

static err_t connected(void *user, struct tcp_pcb *pcb, err_t error)
{
    (void)user;
    (void)pcb;
    (void)error;
    begin();
    pump();
    return ERR_OK;
}

static err_t arrived(void *user, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
    uint64_t before = done;

    (void)user;
    (void)error;
    if (!p)
        return ERR_OK;
    for (struct pbuf *q = p; q; q = q->next)
        for (uint32_t moved = 0, n; moved < q->len; moved += n, before += n) {
            uint32_t at = (uint32_t)(before % BLOCK);

            n = q->len - moved < BLOCK - at ? q->len - moved : BLOCK - at;
            memcpy(target + at, (uint8_t *)q->payload + moved, n);
            if (at + n == BLOCK && memcmp(target, source, BLOCK) != 0)
                path_die("wrong data");
        }
    tcp_recved(pcb, p->tot_len);
    count(p->tot_len);
    pbuf_free(p);
    return ERR_OK;
}

static err_t accepted(void *user, struct tcp_pcb *pcb, err_t error)
{
    (void)user;
    (void)error;
    tcp_nagle_disable(pcb);
    tcp_recv(pcb, arrived);
    begin();
    return ERR_OK;
}

static ip4_addr_t address(uint32_t net, uint32_t host)
{
    return (ip4_addr_t){path_address(net, host, 0).sin_addr.s_addr};
}

static void is_running(void *user)
{
    *(volatile bool *)user = true;
}

static void start_stack(uint32_t net)
{
    ip4_addr_t own = address(net, 2), gateway = address(net, 1), mask = {path_address(0, 0, 0).sin_addr.s_addr};
    volatile bool running = false;

    ip4_addr_set_u32(&mask, lwip_htonl(0xffffff00));
    tcpip_init(is_running, (void *)&running);
    while (!running)
        usleep(1000);
    LOCK_TCPIP_CORE();
    if (!netif_add(&device, &own, &mask, &gateway, NULL, set_up_device, ip_input))
        path_die("netif_add");
    netif_set_default(&device);
    netif_set_up(&device);
    UNLOCK_TCPIP_CORE();
}

static void start_connection(void)
{
    ip_addr_t there = IPADDR4_INIT(address(2, 2).addr);
    struct tcp_pcb *pcb;

    LOCK_TCPIP_CORE();
    pcb = tcp_new();
    if (job.sends) {
        sender = pcb;
        tcp_nagle_disable(pcb);
        tcp_sent(pcb, acknowledged);
        tcp_connect(pcb, &there, TRANSFER_PORT, connected);
    } else {
        tcp_bind(pcb, IP_ANY_TYPE, TRANSFER_PORT);
        pcb = tcp_listen(pcb);
        tcp_accept(pcb, accepted);
    }
    UNLOCK_TCPIP_CORE();
}

/* --- the comparison ------------------------------------------------------------------------------------------ */

static pid_t start_end(bool sends, int fd)
{
    uint32_t net = sends ? 1 : 2;
    struct sockaddr_in neighbor = path_address(net, 1, 0);
    pid_t pid = fork();

    if (pid)
        return pid;
    job.sends = sends;
    job.lose = sends ? job.lose : 0; /* in each direction, at one end */
    report_fd = fd;
    tun_fd = tun_set_up(NULL, (struct sockaddr *)&neighbor, 24, job.mtu, 0, NULL);
    if (tun_fd < 0)
        path_die("a TUN device");
    start_stack(net);
    if (!sends && write(fd, "", 1) != 1)
        path_die("report");
    start_connection();
    run();
}

static void compare(void)
{
    double gb = (double)job.octets / 1e9;
    struct outcome outcome[2];
    int pipes[2][2];
    pid_t pid[2];
    char octet;

    for (int end = 0; end < 2; end++) { /* the receiver is first */
        if (pipe(pipes[end]) || (pid[end] = start_end(end == 1, pipes[end][1])) < 0)
            path_die("fork");
        if (end == 0 && read(pipes[end][0], &octet, 1) != 1)
            path_die("the receiver");
    }
    for (int end = 0; end < 2; end++)
        if (read(pipes[end][0], &outcome[end], sizeof(outcome[end])) != sizeof(outcome[end]))
            path_die("no result");
    for (int end = 0; end < 2; end++) {
        kill(pid[end], SIGKILL);
        waitpid(pid[end], NULL, 0);
        close(pipes[end][0]);
        close(pipes[end][1]);
    }
    printf("%-7s %6u %6.1f %8.3f %8.2f\n", "lwip", job.mtu, job.lose / 1000.0, gb * 8 / outcome[0].took,
           (outcome[0].cpu + outcome[1].cpu) / gb);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const uint32_t mtus[] = {1280, 1500, 9000, 65000}, losses[] = {0, 1000};
    uint64_t octets = (argc > 1 ? strtoull(argv[1], NULL, 10) : 64) * BLOCK;
    int fd;

    if ((unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) ||
        (fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY)) < 0 || write(fd, "1", 1) != 1)
        path_die("a network namespace");
    source = malloc(BLOCK);
    target = malloc(BLOCK);
    if (!source || !target)
        path_die("malloc");
    for (uint32_t i = 0; i < BLOCK; i++)
        source[i] = (uint8_t)(i * 7 + i / 253);
    printf("stack      MTU loss %%     Gb/s cpu s/GB\n");
    for (size_t m = 0; m < countof(mtus); m++)
        for (size_t l = 0; l < countof(losses); l++) {
            job.mtu = mtus[m];
            job.lose = losses[l];
            job.octets = losses[l] ? octets / 8 : octets;
            compare();
        }
    return 0;
}
