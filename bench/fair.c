/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fair.c - a stream of ours and one of the kernel's TCP with CUBIC share a queue: what each gets of it.
 *
 * fair [SECONDS [MBIT [DELAY_MS]]]: 30, 50 and 10 unless told; the queue holds what the path does in a round trip.
 * Makes network namespaces of its own: both senders in one, the kernel's TCP as the receiver of both in another, and
 * this program between them, which lets packets pass at that rate. Fails if one gets less than 40 %. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rddp/stream.h>

#include "bench/lib/path.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"

enum { PORT = 700, CHUNK = 1 << 18, WAITING = 1 << 16, PACKET = 1600, MTU = 1500, AHEAD = 4 << 20, LEAST = 40 };

/* Packets that are on their way, in one direction. */
struct way {
    int from, to;
    uint64_t rate, queue, delay_us; /* octets a second, 0: any; octets that may wait */
    uint64_t free_us;
    uint32_t head, count;
    struct {
        uint64_t at_us;
        uint32_t length;
        uint8_t octets[PACKET];
    } waiting[WAITING];
};

static _Atomic uint64_t *heard; /* by the receiver: octets of the kernel's stream, and of ours */
static atomic_bool over;
static uint8_t chunk[CHUNK];

/* --- between the namespaces ------------------------------------------------------------------------------------ */

static int open_tun(uint32_t net)
{
    struct sockaddr_in own = path_address(net, 1, 0);
    int fd = tun_set_up(NULL, (struct sockaddr *)&own, 8, MTU, 0, NULL); /* the other end is in its prefix */

    if (fd < 0) {
        errno = -fd;
        path_die("tun_set_up");
    }
    return fd;
}

static void take_in(struct way *w)
{
    struct tun_note note;
    uint64_t now = path_now_us(), start;
    ssize_t n = 1;

    while (w->count < WAITING) {
        uint32_t slot = (w->head + w->count) % WAITING;
        struct iovec whole = {w->waiting[slot].octets, PACKET};

        if ((n = tun_recv(w->from, &whole, 1, &note)) <= 0)
            return;
        start = w->free_us > now ? w->free_us : now;
        if (w->rate && (start - now) * w->rate / 1000000 > w->queue)
            continue; /* the queue is full */
        w->free_us = w->rate ? start + (uint64_t)n * 1000000 / w->rate : now;
        w->waiting[slot].at_us = w->free_us + w->delay_us;
        w->waiting[slot].length = (uint32_t)n;
        w->count++;
    }
}

/* Returns when the next one is to leave. */
static uint64_t forward_due(struct way *w)
{
    while (w->count && w->waiting[w->head].at_us <= path_now_us()) {
        struct span span = {w->waiting[w->head].octets, w->waiting[w->head].length};

        (void)tun_send(w->to, &span, 1, &(struct tun_note){.partial = false});
        w->head = (w->head + 1) % WAITING;
        w->count--;
    }
    return w->count ? w->waiting[w->head].at_us : UINT64_MAX;
}

static _Noreturn void relay(struct way *way)
{
    for (;;) {
        struct pollfd polled[2] = {{way[0].from, POLLIN, 0}, {way[1].from, POLLIN, 0}};
        uint64_t at_us = UINT64_MAX, now = path_now_us();
        struct timespec wait;

        for (int i = 0; i < 2; i++) {
            uint64_t next_us = forward_due(&way[i]);

            at_us = next_us < at_us ? next_us : at_us;
        }
        at_us = at_us < now ? 0 : at_us - now < 1000000 ? at_us - now : 1000000;
        wait = (struct timespec){(time_t)(at_us / 1000000), (long)(at_us % 1000000 * 1000)};
        ppoll(polled, 2, &wait, NULL);
        for (int i = 0; i < 2; i++)
            take_in(&way[i]);
    }
}

/* --- the ends ------------------------------------------------------------------------------------------------- */

/* Both streams come here; ours is the one from 10.1.0.2. */
static _Noreturn void receive(void)
{
    static uint8_t octets[CHUNK];
    struct sockaddr_in here = path_address(2, 1, PORT), peer;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd[2];

    if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, 2))
        path_die("listen");
    for (int i = 0; i < 2; i++) {
        socklen_t length = sizeof(peer);
        int new = accept(listener, (struct sockaddr *)&peer, &length);

        if (new < 0)
            path_die("accept");
        fd[peer.sin_addr.s_addr == path_address(1, 2, 0).sin_addr.s_addr] = new;
    }
    for (;;) {
        struct pollfd polled[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};

        poll(polled, 2, -1);
        for (int i = 0; i < 2; i++) {
            ssize_t n = polled[i].revents ? read(fd[i], octets, sizeof(octets)) : 0;

            if (n < 0)
                path_die("read");
            heard[i] += (uint64_t)n;
        }
    }
}

/* A namespace with the receiver, and the way there. Ends with its parent. */
static _Noreturn void other_side(uint64_t rate, uint64_t delay_us, int ready)
{
    struct way *way = calloc(2, sizeof(*way));

    if (!way)
        path_die("calloc");
    way[0].from = way[1].to = open_tun(3);
    if (unshare(CLONE_NEWNET))
        path_die("unshare");
    way[0].to = way[1].from = open_tun(2);
    way[0].rate = rate;
    way[0].queue = rate * 2 * delay_us / 1000000;
    way[0].delay_us = way[1].delay_us = delay_us;
    if (!fork())
        receive();
    if (write(ready, "", 1) != 1)
        path_die("write");
    relay(way);
}

static int connect_kernel(void)
{
    struct sockaddr_in to = path_address(2, 1, PORT);

    for (int i = 0; i < 100; i++, usleep(10000)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5))
            path_die("TCP_CONGESTION");
        if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
            return fd;
        close(fd);
    }
    path_die("connect");
}

static void *send_kernel(void *of)
{
    while (!over)
        if (send(*(int *)of, chunk, CHUNK, 0) < 0)
            path_die("send");
    return NULL;
}

static struct rddp_stream *connect_ours(struct rddp_stream_net **net)
{
    struct sockaddr_in neighbor = path_address(1, 1, 0), from = path_address(1, 2, 0), to = path_address(2, 1, PORT);
    struct rddp_stream_net_attr attr;
    struct rddp_stream *stream;

    rddp_stream_net_attr_init(&attr);
    attr.neighbor = (struct sockaddr *)&neighbor;
    attr.prefix = 24;
    *net = rddp_stream_net_open(&attr);
    if (!*net || !(stream = rddp_stream_connect(*net, (struct sockaddr *)&from, (struct sockaddr *)&to)))
        path_die("rddp_stream_connect");
    while (rddp_stream_state(stream) == RDDP_STREAM_CONNECTING)
        rddp_stream_progress(*net, 10);
    return stream;
}

static void send_ours(struct rddp_stream_net *net, struct rddp_stream *stream, uint64_t until_us)
{
    while (path_now_us() < until_us) {
        while (rddp_stream_unacked(stream) < AHEAD)
            if (rddp_stream_write(stream, chunk, CHUNK, 0, NULL))
                path_die("rddp_stream_write");
        rddp_stream_progress(net, 10);
    }
}

static int share(uint32_t span_s, double rate)
{
    struct rddp_stream_net *net;
    struct rddp_stream *ours = connect_ours(&net);
    int kernel = connect_kernel();
    struct rddp_stream_counters count;
    double total, percent;
    uint64_t said[2];
    pthread_t thread;

    if (pthread_create(&thread, NULL, send_kernel, &kernel))
        path_die("pthread_create");
    send_ours(net, ours, path_now_us() + span_s * 1000000ULL);
    for (int i = 0; i < 2; i++)
        said[i] = heard[i];
    over = true;
    shutdown(kernel, SHUT_RDWR);
    rddp_stream_count(ours, &count);
    total = (double)(said[0] + said[1]);
    percent = 100 * (double)said[1] / total;
    printf("ours %.1f %%, kernel's CUBIC %.1f %% of %.1f Mbit/s, which is %.0f %% of the path's; %llu sent again, %llu "
           "time-outs\n",
           percent, 100 - percent, total * 8 / span_s / 1e6, 100 * total / span_s / rate,
           (unsigned long long)count.sent_again, (unsigned long long)count.timeouts);
    return percent < LEAST || percent > 100 - LEAST;
}

int main(int argc, char **argv)
{
    uint32_t span_s = argc > 1 ? (uint32_t)atoi(argv[1]) : 30, mbit = argc > 2 ? (uint32_t)atoi(argv[2]) : 50;
    uint64_t rate = mbit * 125000ULL, delay_us = (argc > 3 ? (uint64_t)atoi(argv[3]) : 10) * 1000;
    int fd, ready[2], unfair;
    uint8_t octet;
    pid_t pid;

    signal(SIGPIPE, SIG_IGN);
    heard = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (heard == MAP_FAILED || (unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) ||
        (fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY)) < 0 || write(fd, "1", 1) != 1 || pipe(ready) ||
        (pid = fork()) < 0)
        path_die("a network namespace");
    if (!pid) {
        setpgid(0, 0);
        other_side(rate, delay_us, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &octet, 1) != 1)
        path_die("the other side has ended");
    unfair = share(span_s, (double)rate);
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return unfair;
}
