/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plain_tcp.c - the reference: plain TCP on the same path, used as well as sockets allow (large calls, a polling
 * receiver). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/perf/perf.h"

enum {
    CALL = 1 << 20,
    ACCEPT_MS = 5000,
    WARM_MESSAGES = 500,
    LOOK_TRIES = 4096, /* attempts to move something between two looks at the clock, a power of two */
};

/* Before the clock starts the connection gets as warm as that of the others: windows and buffers grow while it is used.
 */
static const uint64_t warm_octets = 64 << 20;

const uint64_t tcp_read_sizes[TCP_READS] = {64 << 10, 1 << 20};

struct stream {
    int fd;
    uint64_t deadline_ns; /* 0: none */
    uint64_t still_ns;    /* when it was first seen that nothing moves; 0: something has moved since the last look */
    unsigned tries;
    int flags;             /* of recv(): MSG_DONTWAIT, or 0: it sleeps */
    unsigned char *buffer; /* `octets` of them, CALL at least */
    size_t octets, at;     /* the next call begins there; it stays 0 unless the memory is walked through */
    bool walks;
};

static int trouble(const char *what)
{
    return tool_stopped ? fail(EXIT_FAILED, "interrupted")
                        : fail(EXIT_FAILED, "raw TCP: %s: %s", what, error_text(errno));
}

static int stream_open(struct stream *stream, int fd, bool events, uint64_t walk)
{
    const struct timeval step = {.tv_usec = SIGNAL_MS * 1000};
    int one = 1;
    stream->fd = fd;
    stream->flags = events ? 0 : MSG_DONTWAIT;
    stream->walks = walk > 0;
    stream->octets = walk > CALL ? (size_t)walk : CALL;
    stream->buffer = malloc(stream->octets);
    if (!stream->buffer)
        return fail(EXIT_FAILED, "no memory");
    memset(stream->buffer, 1, stream->octets);
    /* A blocked call returns now and then, so that a peer that does nothing cannot hold this side. */
    bool failed = setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
                  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &step, sizeof(step)) ||
                  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof(step));
    return failed ? trouble("setsockopt") : 0;
}

static void stream_close(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->buffer);
}

/* --- moving -------------------------------------------------------------------------------------------------- */

/* Called for each attempt to move something; `moved`: it succeeded. Now and then it looks at the clock, and returns an
 * exit code if nothing has moved for too long, if all of it takes too long, or if a signal came. */
static int look_at_clock(struct stream *stream, bool moved)
{
    if (moved)
        stream->still_ns = 0;
    if (tool_stopped)
        return fail(EXIT_FAILED, "interrupted");
    if (++stream->tries % LOOK_TRIES)
        return 0;
    uint64_t now_ns = clock_ns();
    if (!stream->still_ns)
        stream->still_ns = now_ns;
    if (stream->deadline_ns && now_ns > stream->deadline_ns)
        return fail(EXIT_FAILED, "raw TCP: the peer takes too long");
    if (now_ns - stream->still_ns > SILENCE_S * 1000000000ull)
        return fail(EXIT_FAILED, "raw TCP: the peer moved nothing for %d s", SILENCE_S);
    return 0;
}

/* Where a call for up to `most` octets begins, and how many of them are there. */
static unsigned char *next_octets(const struct stream *stream, uint64_t most, size_t *octets)
{
    size_t left = stream->octets - stream->at;
    *octets = most < left ? (size_t)most : left;
    return stream->buffer + stream->at;
}

static void step_on(struct stream *stream, ssize_t moved)
{
    if (stream->walks && moved > 0)
        stream->at = (stream->at + (size_t)moved) % stream->octets;
}

static int plain_send_all(struct stream *stream, uint64_t n)
{
    int code = 0;
    while (n && !code) {
        size_t octets;
        const unsigned char *from = next_octets(stream, n < CALL ? n : CALL, &octets);
        ssize_t sent = send(stream->fd, from, octets, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            return trouble("send");
        step_on(stream, sent);
        if (sent < 0) /* that took SIGNAL_MS */
            stream->tries |= LOOK_TRIES - 1;
        n -= sent > 0 ? (uint64_t)sent : 0;
        code = look_at_clock(stream, sent > 0);
    }
    return code;
}

/* Takes `n` octets by polling or asleep, at most `call` at a time, into the same place unless the stream walks. */
static int receive_all(struct stream *stream, uint64_t n, size_t call)
{
    unsigned empty = 0;
    int code = 0;
    while (n && !code) {
        size_t octets;
        unsigned char *to = next_octets(stream, n < call ? n : call, &octets);
        ssize_t got = recv(stream->fd, to, octets, stream->flags);
        if (!got)
            return fail(EXIT_FAILED, "raw TCP: closed by the peer");
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return trouble("receive");
        step_on(stream, got);
        n -= got > 0 ? (uint64_t)got : 0;
        empty = got > 0 ? 0 : empty + 1;
        if (got <= 0 && !stream->flags) /* that took SIGNAL_MS */
            stream->tries |= LOOK_TRIES - 1;
        else if (empty > BUSY_POLLS) /* as the lane does */
            sched_yield();
        code = look_at_clock(stream, got > 0);
    }
    return code;
}

/* --- server -------------------------------------------------------------------------------------------------- */

/* Takes `n` octets, and says with one that they are there. */
static int sink(struct stream *stream, uint64_t n, size_t call)
{
    int code = receive_all(stream, n, call);
    return code ? code : plain_send_all(stream, 1);
}

static int echo(struct stream *stream, uint64_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        int code = receive_all(stream, size, CALL);
        if (!code)
            code = plain_send_all(stream, size);
        if (code)
            return code;
    }
    return 0;
}

static int plain_answer(struct stream *stream, const struct message *start, double *cpu_s)
{
    size_t size = (size_t)start->size;
    bool bandwidth = start->kind == KIND_BANDWIDTH;
    int code = bandwidth ? sink(stream, warm_octets, size) : echo(stream, size, WARM_MESSAGES);
    double before_s = cpu_seconds();
    if (!code)
        code = bandwidth ? sink(stream, start->count, size) : echo(stream, size, start->count);
    *cpu_s = cpu_seconds() - before_s;
    return code;
}

/* A listening socket where the lane's own end is; its port. */
static int listen_beside(struct lane *lane, uint16_t *port)
{
    struct rddp_qp_info info;
    socklen_t length = sizeof(info.local);
    if (rddp_query_qp(lane->qp, &info))
        return -1;
    int fd = socket(info.local.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_set_port(&info.local, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&info.local, address_length(&info.local)) || listen(fd, 1) ||
        getsockname(fd, (struct sockaddr *)&info.local, &length)) {
        close(fd);
        return -1;
    }
    *port = address_port(&info.local);
    return fd;
}

static int accept_one(int listener)
{
    struct pollfd poller = {.fd = listener, .events = POLLIN};
    int n = poll(&poller, 1, ACCEPT_MS);
    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0 ? accept(listener, NULL, NULL) : -1;
}

int tcp_server(struct lane *lane, const struct message *start, uint64_t deadline_ns)
{
    uint16_t port = 0;
    if (!start->size || start->size > CALL)
        return fail(EXIT_PROTOCOL, "raw TCP: the peer asked to read no or too many octets");
    if (start->offset > lane->size)
        return fail(EXIT_PROTOCOL, "raw TCP: the peer asked to walk through more memory than it has here");
    int listener = listen_beside(lane, &port);
    if (listener < 0)
        return trouble("listen");
    int code = lane_send(lane, &(struct message){.type = CONTROL_READY, .value = port});
    /* It must be on its way before this side turns to another socket. */
    if (!code)
        code = lane_poll(lane);
    struct stream stream = {.fd = code ? -1 : accept_one(listener), .deadline_ns = deadline_ns};
    close(listener);
    double cpu_s = 0;
    if (!code)
        code = stream.fd < 0 ? trouble("accept") : stream_open(&stream, stream.fd, start->value == 1, start->offset);
    if (!code)
        code = plain_answer(&stream, start, &cpu_s);
    stream_close(&stream);
    if (code)
        return code;
    return lane_send(lane, &(struct message){.type = CONTROL_RESULT, .value = 1, .count = (uint64_t)(cpu_s * 1e9)});
}

/* --- client -------------------------------------------------------------------------------------------------- */

static int connect_beside(struct lane *lane, uint16_t port)
{
    struct rddp_qp_info info;
    if (rddp_query_qp(lane->qp, &info))
        return -1;
    address_set_port(&info.peer, port);
    int fd = socket(info.peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&info.peer, address_length(&info.peer))) {
        close(fd);
        return -1;
    }
    return fd;
}

static int source(struct stream *stream, uint64_t n)
{
    int code = plain_send_all(stream, n);
    return code ? code : receive_all(stream, 1, 1);
}

static int ping_pong(struct stream *stream, uint64_t size, uint64_t count, double *samples_us)
{
    uint64_t before_ns = clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        int code = plain_send_all(stream, size);
        if (!code)
            code = receive_all(stream, size, CALL);
        if (code)
            return code;
        uint64_t now_ns = clock_ns();
        if (samples_us)
            samples_us[i] = (double)(now_ns - before_ns) * 0.5e-3;
        before_ns = now_ns;
    }
    return 0;
}

int tcp_client(struct lane *lane, const struct tcp_test *test, struct run *run)
{
    struct message start = {.type = CONTROL_TCP,
                            .kind = (uint8_t)test->kind,
                            .value = test->events,
                            .size = test->size,
                            .count = test->count,
                            .offset = test->walk};
    struct message result;
    int code = lane_ask(lane, &start, CONTROL_READY, &result);
    if (code)
        return code;
    struct stream stream = {.fd = connect_beside(lane, (uint16_t)result.value)};
    code = stream.fd < 0 ? trouble("connect") : stream_open(&stream, stream.fd, test->events, test->walk);

    bool bandwidth = test->kind == KIND_BANDWIDTH;
    if (!code)
        code = bandwidth ? source(&stream, warm_octets) : ping_pong(&stream, test->size, WARM_MESSAGES, NULL);
    double cpu_s = cpu_seconds();
    uint64_t start_ns = clock_ns();
    if (!code)
        code = bandwidth ? source(&stream, test->count) : ping_pong(&stream, test->size, test->count, run->samples_us);
    run->seconds = (double)(clock_ns() - start_ns) / 1e9;
    run->cpu_client_s = cpu_seconds() - cpu_s;
    stream_close(&stream);
    if (!code)
        code = lane_receive(lane, CONTROL_RESULT, &result);
    if (!code)
        run->cpu_server_s = (double)result.count / 1e9;
    return code;
}
