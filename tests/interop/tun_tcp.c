/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun_tcp.c - connects our TCP behind a TUN device with the kernel's TCP. Each end checks every octet that it receives.
 *
 * tun_tcp WORD...: connect or listen (the role of our TCP); send, receive or both; v4 or v6; mtu=N octets=N loss=N (N
 * of 100000 packets are lost in each direction) unit=N option=N (octets) window=N; fast (the device computes
 * checksums). It prints its measurements. It needs a network namespace in which it may create a device. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"
#include "tests/lib/rng.h"
#include "tcp/host.h"

enum {
    PORT = 7000,
    SENTS = 16384,
    OOO_RANGES = 8192,
    BUCKETS = 16,
    HALVES = 16,
    PATTERN = 65521,
    CHUNK = 1 << 17,
    BATCH = 64,
    KIND = 25
};

static struct {
    bool listen, send, receive, v6, fast;
    uint64_t octets;
    uint32_t mtu, loss, unit, option, window;
} args = {.mtu = 1500, .octets = 64 << 20, .window = 1 << 20};

static uint8_t pattern[PATTERN + CHUNK];
static struct utcp_host host;
static struct utcp tcp;
static struct utcp_sent sent[SENTS];
static struct utcp_ooo_range held[OOO_RANGES];
static struct utcp *bucket[BUCKETS];
static struct utcp_half half[HALVES];
static uint8_t *seen;
static bool open_now;
static uint64_t said, dropped;
static struct rng rng = {42};
static int tun_fd;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "tun_tcp: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint32_t cut(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    uint32_t length = space - args.option;

    (void)user;
    if (args.unit && length > args.unit - position % args.unit)
        length = args.unit - (uint32_t)(position % args.unit);
    return length < ready ? length : ready;
}

static void fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    (void)user;
    piece->spans = 1;
    piece->span[0] = (struct span){pattern + position % PATTERN, length};
    memset(piece->option, 0, args.option);
    if (args.option) {
        put8(put8(piece->option, KIND), (uint8_t)args.option);
        put64(piece->option + 8, position);
    }
    piece->option_length = args.option;
}

static struct utcp_verdict arrived(void *user, const struct utcp_arrival *a)
{
    (void)user;
    if (a->position + a->length > args.octets || memcmp(a->data, pattern + a->position % PATTERN, a->length) != 0)
        die("octets that were not sent");
    for (uint64_t p = a->position; p < a->position + a->length; p++) {
        if (seen[p])
            die("octets came twice");
        seen[p] = 1;
    }
    return (struct utcp_verdict){.taken = a->length};
}

static const struct utcp_user user = {cut, fetch, arrived};

static bool listens(void *of, const struct utcp_name *local)
{
    (void)of;
    return args.listen && local->port == PORT;
}

static struct utcp *begin(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    struct utcp_buffers buffers = {sent, SENTS, held, OOO_RANGES};

    (void)of;
    (void)local;
    (void)remote;
    if (open_now)
        return NULL;
    open_now = true;
    utcp_open(&tcp, &host.attr.tcp, &buffers, &user, NULL);
    return &tcp;
}

static const struct utcp_host_user host_user = {.listens = listens, .accept = begin};

static struct utcp_name name_of(uint8_t last, uint16_t port)
{
    struct utcp_name name = {.port = port};

    if (args.v6)
        name.ip[0] = 0xfd;
    else
        memcpy(name.ip + 10, "\xff\xff\x0a\x09", 4);
    name.ip[15] = last;
    return name;
}

/* Functions for the kernel's end of the connection. */
static socklen_t address_of(struct sockaddr_storage *to, uint8_t last)
{
    struct utcp_name name = name_of(last, PORT);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};

    memcpy(&v4.sin_addr, name.ip + 12, 4);
    memcpy(&v6.sin6_addr, name.ip, 16);
    memset(to, 0, sizeof(*to));
    if (args.v6)
        memcpy(to, &v6, sizeof(v6));
    else
        memcpy(to, &v4, sizeof(v4));
    return args.v6 ? sizeof(v6) : sizeof(v4);
}

/* The kernel's workers make a new IPv6 address usable, a moment after it was set. */
static void connect_from_kernel(int fd, const struct sockaddr *to, socklen_t length)
{
    enum { TRIES = 10000, PAUSE_US = 1000 };

    for (int i = 0; connect(fd, to, length); i++) {
        if (errno != EADDRNOTAVAIL || i == TRIES)
            die("the kernel's connect");
        usleep(PAUSE_US);
    }
}

static int kernel_socket(int ready_fd)
{
    struct sockaddr_storage address;
    socklen_t length = address_of(&address, args.listen ? 2 : 1);
    int fd = socket(address.ss_family, SOCK_STREAM, 0), stream;

    if (fd < 0)
        die("socket");
    if (args.listen) {
        connect_from_kernel(fd, (struct sockaddr *)&address, length);
        return fd;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    (void)setsockopt(fd, SOL_IP, IP_FREEBIND, &(int){1}, sizeof(int)); /* an IPv6 address may not be ready yet */
    if (bind(fd, (struct sockaddr *)&address, length) || listen(fd, 1) || write(ready_fd, "", 1) != 1)
        die("the kernel's listen");
    stream = accept(fd, NULL, NULL);
    if (stream < 0)
        die("the kernel's accept");
    return stream;
}

static void kernel_receive(int fd)
{
    static uint8_t buffer[CHUNK];
    uint64_t position = 0;
    ssize_t n;

    while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
        for (ssize_t done = 0, some; done < n; done += some, position += (uint64_t)some) {
            some = n - done < CHUNK ? n - done : CHUNK;
            if (memcmp(buffer + done, pattern + position % PATTERN, (size_t)some) != 0)
                die("the kernel got octets that were not sent");
        }
    }
    if (n < 0 || position != args.octets)
        die("the kernel's stream ended early");
}

static void kernel_send(int fd)
{
    uint64_t position = 0;

    while (position < args.octets) {
        size_t most = args.octets - position < CHUNK ? (size_t)(args.octets - position) : CHUNK;
        ssize_t n = send(fd, pattern + position % PATTERN, most, MSG_NOSIGNAL);

        if (n < 0)
            die("the kernel's send");
        position += (uint64_t)n;
    }
    shutdown(fd, SHUT_WR);
}

static _Noreturn void kernel_side(int ready_fd)
{
    int fd = kernel_socket(ready_fd), status;
    pid_t other = fork();

    if (other < 0)
        die("fork");
    if (other == 0) {
        if (args.receive)
            kernel_send(fd);
        else
            shutdown(fd, SHUT_WR);
        _exit(0);
    }
    if (args.send)
        kernel_receive(fd);
    if (waitpid(other, &status, 0) != other || status)
        _exit(1);
    _exit(0);
}

static void leave(const struct utcp_packet *p)
{
    struct span span[1 + UTCP_SPANS] = {{p->head, p->head_length}};
    struct tun_note note = {.partial = p->partial, .start = (uint16_t)p->ip_length, .offset = 16};

    memcpy(span + 1, p->span, p->spans * sizeof(span[0]));
    if (args.loss && rng_below(&rng, 100000) < args.loss) {
        dropped++;
        return;
    }
    /* If the device's queue is full the packet is lost, as on any network. */
    dropped += tun_send(tun_fd, span, 1 + p->spans, &note) != 0;
}

static void pump(uint64_t now)
{
    struct utcp_packet p;

    if (open_now && tcp.state >= UTCP_ESTABLISHED) {
        uint64_t to = args.send ? args.octets : 0, most = utcp_acked(&tcp) + (8 << 20);

        if (said < to && said < most)
            utcp_send(&tcp, said = most < to ? most : to);
        if (said == to && !tcp.tx.finish)
            utcp_finish(&tcp);
    }
    while (utcp_host_output(&host, &p, now))
        leave(&p);
    while (open_now && utcp_output(&tcp, &p, now))
        leave(&p);
}

static bool read_some(void)
{
    static uint8_t buffer[TUN_PACKET_MAX];
    struct iovec whole = {buffer, sizeof(buffer)};
    struct tun_note note;
    int n;

    for (n = 0; n < BATCH; n++) {
        ssize_t length = tun_recv(tun_fd, &whole, 1, &note);

        if (length < 0)
            break;
        if (args.loss && rng_below(&rng, 100000) < args.loss) {
            dropped++;
            continue;
        }
        if (utcp_host_input(&host, buffer, (uint32_t)length, note.checked, now_us()) && utcp_urgent(&tcp))
            pump(now_us());
    }
    return n == BATCH;
}

static bool through(void)
{
    return open_now && (!args.send || utcp_acked(&tcp) == args.octets) &&
           (!args.receive || utcp_received(&tcp) == args.octets);
}

static bool is_over(void)
{
    return open_now && (tcp.state == UTCP_CLOSED || tcp.state == UTCP_TIME_WAIT);
}

/* Runs until the connection is closed or in TIME-WAIT. Returns the time when the transfer was complete. */
static uint64_t run(void)
{
    uint64_t done_us = 0;

    while (!is_over()) {
        struct pollfd p = {.fd = tun_fd, .events = POLLIN};
        bool more = read_some();
        uint64_t now = now_us(), at_us = utcp_host_deadline(&host); /* now is later than all sends of read_some() */

        if (open_now)
            utcp_timeout(&tcp, now);
        utcp_host_timeout(&host, now);
        pump(now);
        if (!done_us && through())
            done_us = now_us();
        if (open_now && utcp_deadline(&tcp) < at_us)
            at_us = utcp_deadline(&tcp);
        if (!more && !is_over())
            poll(&p, 1, at_us == UTCP_NEVER ? 1000 : at_us > now ? (int)((at_us - now + 999) / 1000) : 0);
    }
    return done_us;
}

static void set_up(void)
{
    struct utcp_host_buffers buffers = {bucket, half, BUCKETS, HALVES};
    struct utcp_host_attr attr = {.key = {now_us(), 7}};
    struct utcp_name own = name_of(1, 0);
    struct tun_address address = {.length = args.v6 ? 16 : 4, .prefix = args.v6 ? 64 : 24};
    char name[IFNAMSIZ] = "ours";
    struct rng r = {1};
    int error;

    rng_fill(&r, pattern, PATTERN);
    for (uint32_t i = PATTERN; i < sizeof(pattern); i++)
        pattern[i] = pattern[i - PATTERN];
    seen = calloc(1, args.octets);
    tun_fd = tun_open(name, args.fast);
    memcpy(address.octets, own.ip + (args.v6 ? 0 : 12), address.length);
    error = tun_fd < 0 ? tun_fd : tun_configure(name, &address, args.mtu, NULL);
    if (error) {
        fprintf(stderr, "tun_tcp: cannot make a device: %s\n", strerror(-error));
        exit(77);
    }
    utcp_attr_default(&attr.tcp);
    attr.tcp.mtu = args.mtu;
    attr.tcp.window = args.window;
    attr.tcp.partial = args.fast;
    attr.tcp.option_kind = KIND;
    utcp_host_init(&host, &attr, &buffers, &host_user, NULL);
}

static void read_args(char **word)
{
    unsigned long long n;

    for (; *word; word++) {
        args.listen |= !strcmp(*word, "listen");
        args.send |= !strcmp(*word, "send") || !strcmp(*word, "both");
        args.receive |= !strcmp(*word, "receive") || !strcmp(*word, "both");
        args.v6 |= !strcmp(*word, "v6");
        args.fast |= !strcmp(*word, "fast");
        args.octets = sscanf(*word, "octets=%llu", &n) == 1 ? n : args.octets;
        args.mtu = sscanf(*word, "mtu=%llu", &n) == 1 ? (uint32_t)n : args.mtu;
        args.loss = sscanf(*word, "loss=%llu", &n) == 1 ? (uint32_t)n : args.loss;
        args.unit = sscanf(*word, "unit=%llu", &n) == 1 ? (uint32_t)n : args.unit;
        args.option = sscanf(*word, "option=%llu", &n) == 1 ? (uint32_t)n : args.option;
        args.window = sscanf(*word, "window=%llu", &n) == 1 ? (uint32_t)n : args.window;
    }
}

static void report(uint64_t us)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    printf("gbps=%.2f cpu=%.2f again=%llu dropped=%llu timeouts=%llu probes=%llu early=%llu duplicates=%llu bad=%llu\n",
           (double)args.octets * (args.send + args.receive) * 8 / 1000 / (double)(us ? us : 1),
           (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
           (unsigned long long)tcp.count.sent_again, (unsigned long long)dropped,
           (unsigned long long)tcp.count.timeouts, (unsigned long long)tcp.count.probes,
           (unsigned long long)tcp.count.early_octets, (unsigned long long)tcp.count.duplicates,
           (unsigned long long)(host.count.bad + host.count.bad_checksum));
}

int main(int argc, char **argv)
{
    struct utcp_name local, remote;
    uint64_t start_us, done_us;
    int ready[2], status;
    char octet;
    pid_t peer;

    (void)argc;
    read_args(argv + 1);
    /* The kernel may remember the connection of an earlier process, and would answer a SYN from the same port a second
     * later, so each process uses another port. */
    local = name_of(2, (uint16_t)(PORT + 1 + getpid() % 50000));
    remote = name_of(1, PORT);
    set_up();
    if (pipe(ready) || (peer = fork()) < 0)
        die("fork");
    if (peer == 0)
        kernel_side(ready[1]);
    close(ready[1]);
    if (!args.listen && read(ready[0], &octet, 1) != 1)
        die("the kernel's side");
    start_us = now_us();
    if (!args.listen) {
        host.attr.tcp.isn = utcp_host_isn(&host, &local, &remote, start_us);
        host.attr.tcp.stamp_offset = utcp_host_stamp_offset(&host, &local, &remote);
        begin(NULL, &local, &remote);
        utcp_connect(&tcp, &local, &remote);
        utcp_host_add(&host, &tcp);
    }
    done_us = run();
    if (waitpid(peer, &status, 0) != peer || status) {
        fprintf(stderr, "tun_tcp: the kernel's side failed\n");
        return 1;
    }
    if (!done_us || tcp.error) {
        fprintf(stderr, "tun_tcp: not all is through: state %d, error %d\n", (int)tcp.state, tcp.error);
        return 1;
    }
    report(done_us - start_us);
    return 0;
}
