/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* repair.c - a socket is switched to repair mode, deafened by a filter, and read out. */
#include "tcp/io/repair.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TRIES = 8,
    ESTABLISHED = 1,   /* TCP_ESTABLISHED of <net/tcp_states.h> */
    STAMPS_IN_US = 64, /* TCPI_OPT_USEC_TS, which older headers lack */
};

static int repair_put(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int repair_get(int fd, int level, int name, void *value, socklen_t length)
{
    return getsockopt(fd, level, name, value, &length) ? -errno : 0;
}

int repair_allowed(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), error;

    if (fd < 0)
        return -errno;
    error = repair_put(fd, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_ON);
    close(fd);
    return error;
}

static int deafen(int fd)
{
    struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {1, &none};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static int number_of(int fd, int queue, uint32_t *number)
{
    int error = repair_put(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue);

    return error ? error : repair_get(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, number, sizeof(*number));
}

/* Nothing of ours waits at the kernel, for the peer or to be sent. */
static int is_drained(int fd)
{
    int waits;

    if (ioctl(fd, SIOCOUTQ, &waits))
        return -errno;
    return waits ? -EAGAIN : 0;
}

static int read_received(int fd, struct repair_state *state, uint8_t *to, uint32_t capacity)
{
    int waits;
    ssize_t n;

    if (ioctl(fd, SIOCINQ, &waits))
        return -errno;
    if ((uint32_t)waits > capacity)
        return -ENOBUFS;
    n = waits ? recv(fd, to, (size_t)waits, MSG_PEEK | MSG_DONTWAIT) : 0;
    state->received = (uint32_t)n;
    return n < 0 ? -errno : n == waits ? 0 : -ENOBUFS;
}

/* The queue that was chosen last is that of what is received. */
static int read_out(int fd, struct repair_state *state, uint8_t *to, uint32_t capacity)
{
    struct tcp_repair_window window;
    struct tcp_info info;
    int error = repair_get(fd, IPPROTO_TCP, TCP_INFO, &info, sizeof(info));

    if (!error)
        error = info.tcpi_state != ESTABLISHED ? -ENOTCONN : info.tcpi_options & STAMPS_IN_US ? -EOPNOTSUPP : 0;
    if (!error)
        error = number_of(fd, TCP_SEND_QUEUE, &state->send_next);
    if (!error)
        error = number_of(fd, TCP_RECV_QUEUE, &state->receive_next);
    if (!error)
        error = read_received(fd, state, to, capacity);
    if (!error)
        error = repair_get(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, sizeof(window));
    if (!error)
        error = repair_get(fd, IPPROTO_TCP, TCP_TIMESTAMP, &state->stamp, sizeof(state->stamp));
    if (!error)
        error = repair_get(fd, IPPROTO_TCP, TCP_MAXSEG, &state->mss, sizeof(state->mss));
    if (error)
        return error;
    state->window = window.snd_wnd;
    state->edge = window.rcv_wup + window.rcv_wnd - state->receive_next;
    if (state->edge > INT32_MAX)
        state->edge = 0;
    state->mtu = info.tcpi_pmtu;
    state->rtt_us = info.tcpi_rtt;
    state->scale = info.tcpi_options & TCPI_OPT_WSCALE ? info.tcpi_snd_wscale : 0;
    state->own_scale = info.tcpi_options & TCPI_OPT_WSCALE ? info.tcpi_rcv_wscale : 0;
    state->sack = info.tcpi_options & TCPI_OPT_SACK;
    state->stamps = info.tcpi_options & TCPI_OPT_TIMESTAMPS;
    state->ecn = info.tcpi_options & TCPI_OPT_ECN;
    return 0;
}

/* A packet that another processor had let through before the filter was there may still change something. */
static int read_stable(int fd, struct repair_state *state, uint8_t *to, uint32_t capacity)
{
    uint32_t next = 0;
    int error = 0;

    for (int i = 0; i < TRIES && !error; i++) {
        error = read_out(fd, state, to, capacity);
        if (!error)
            error = is_drained(fd);
        if (!error)
            error = number_of(fd, TCP_RECV_QUEUE, &next);
        if (!error && next == state->receive_next)
            return 0;
    }
    return error ? error : -EAGAIN;
}

/* As it was: nothing is sent for it. What came meanwhile comes again. */
static void give_back(int fd)
{
    (void)repair_put(fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
    (void)repair_put(fd, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP);
    (void)repair_put(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int repair_take(int fd, struct repair_state *state, uint8_t *to, uint32_t capacity)
{
    int error = is_drained(fd);

    *state = (struct repair_state){0};
    if (error)
        return error;
    /* Its timers: nothing but an acknowledgement that is delayed, which leaves now. */
    (void)repair_put(fd, SOL_SOCKET, SO_KEEPALIVE, 0);
    (void)repair_put(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
    /* If this process is killed the kernel ends a socket in repair mode without a word, and any other with a FIN, whose
     * acknowledgement a deaf one never hears: it must not be deaf outside of that mode. */
    error = repair_put(fd, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_ON);
    if (!error)
        error = deafen(fd);
    if (!error)
        error = read_stable(fd, state, to, capacity);
    if (error)
        give_back(fd);
    return error;
}

uint8_t repair_hops(int fd, bool v4)
{
    int hops = 0;

    (void)repair_get(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_UNICAST_HOPS, &hops, sizeof(hops));
    return hops > 0 ? (uint8_t)hops : 0;
}

uint32_t repair_mtu(int fd)
{
    int mtu = 0;

    if (repair_get(fd, IPPROTO_IP, IP_MTU, &mtu, sizeof(mtu)))
        (void)repair_get(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, sizeof(mtu));
    return mtu > 0 ? (uint32_t)mtu : 0;
}
