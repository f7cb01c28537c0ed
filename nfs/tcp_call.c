/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_call.c - one RPC over its own TCP connection (RFC 5531 11: record marking), with a deadline. */
#include "nfs/tcp_call.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "rpc/clock.h"

enum { RESERVED_MIN = 600, RESERVED_MAX = 1023 };

/* Both address families have the port at the same offset. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "ports");

void tcp_call_port(struct tcp_call *t, uint16_t port)
{
    ((struct sockaddr_in *)&t->addr)->sin_port = htons(port);
}

/* --- the connection -------------------------------------------------------------------------------------------- */

static int tcp_call_wait_for(int fd, short events, uint64_t until)
{
    for (;;) {
        uint64_t now = clock_ms();
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, now < until ? (int)(until - now) : 0);

        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR || clock_ms() >= until)
            return -errno;
    }
}

/* Some servers answer only reserved ports. A process that may not use one calls from another port and gets the server's
 * answer to that. */
static void bind_reserved(int fd, int family)
{
    struct sockaddr_storage from = {.ss_family = (sa_family_t)family};
    socklen_t length = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    uint16_t start = 0;

    if (getrandom(&start, sizeof(start), 0) < 0)
        start = 0;
    for (unsigned i = 0; i <= RESERVED_MAX - RESERVED_MIN; i++) {
        unsigned port = RESERVED_MIN + (start + i) % (RESERVED_MAX - RESERVED_MIN + 1);

        ((struct sockaddr_in *)&from)->sin_port = htons((uint16_t)port);
        if (bind(fd, (struct sockaddr *)&from, length) == 0 || errno != EADDRINUSE)
            return;
    }
}

static int tcp_call_dial(const struct tcp_call *t, bool reserved, uint64_t until)
{
    int fd = socket(t->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error, result = 0;
    socklen_t length = sizeof(result);

    if (fd < 0)
        return -errno;
    if (reserved)
        bind_reserved(fd, t->addr.ss_family);
    error = connect(fd, (const struct sockaddr *)&t->addr, t->length) ? -errno : 0;
    if (error == -EINPROGRESS)
        error = tcp_call_wait_for(fd, POLLOUT, until);
    if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &length) == 0)
        error = -result;
    if (error == 0)
        return fd;
    close(fd);
    return error;
}

static int tcp_call_send_all(int fd, const uint8_t *p, size_t n, uint64_t until)
{
    while (n) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (sent < 0) {
            int error = tcp_call_wait_for(fd, POLLOUT, until);

            if (error)
                return error;
            continue;
        }
        p += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* --- the message ----------------------------------------------------------------------------------------------- */

/* Builds the call as a record of one fragment. Returns its length in octets. */
static size_t tcp_call_build(struct tcp_call *t, uint32_t xid, void (*args)(struct coder *c, void *user), void *user)
{
    struct rpc_call call = {.xid = xid, .rpc_version = 2, .program = t->program, .version = t->version};
    bool bad_cred = false;
    struct coder c;
    size_t n;

    call.procedure = t->procedure;
    call.cred = t->cred;
    coder_write(&c, t->message + RECORD_MARK, sizeof(t->message) - RECORD_MARK);
    rpc_code_call(&c, &call, &bad_cred);
    if (args)
        args(&c, user);
    n = coder_length(&c);
    if (c.bad || c.out.bad || bad_cred)
        return 0;
    record_mark(t->message, n);
    return RECORD_MARK + n;
}

/* Receives a record of any number of fragments. */
static int receive_record(int fd, struct record_rx *rx, uint64_t until)
{
    uint8_t chunk[4096];

    for (;;) {
        ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
        size_t eaten;
        int error = 0;

        if (got == 0)
            return -ECONNRESET;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        error = got < 0 ? tcp_call_wait_for(fd, POLLIN, until) : record_eat(rx, chunk, (size_t)got, &eaten);
        if (error)
            return error < 0 ? error : 0;
    }
}

static int tcp_call_read_reply(struct tcp_call *t, uint32_t xid, struct coder *results)
{
    struct rpc_reply reply = {0};
    size_t n;

    t->reply = record_take(&t->rx, &n);
    coder_read(results, t->reply, n);
    rpc_code_reply(results, &reply);
    t->trouble = "the answer is not an RPC reply to the call";
    if (results->bad || results->in.bad || reply.xid != xid)
        return -EPROTO;
    t->trouble = rpc_result_str(reply.result);
    if (reply.result == RPC_SUCCESS)
        return 0;
    return reply.result == RPC_AUTH_ERROR ? -EACCES : -EPROTONOSUPPORT;
}

int tcp_call(struct tcp_call *t, void (*args)(struct coder *c, void *user), void *user, struct coder *results)
{
    uint64_t until = clock_ms() + (uint64_t)t->timeout_ms;
    uint32_t xid = 0;
    size_t n;
    int fd, error;

    tcp_call_end(t);
    t->trouble = NULL;
    if (getrandom(&xid, sizeof(xid), 0) < 0)
        xid = (uint32_t)until;
    n = tcp_call_build(t, xid, args, user);
    if (n == 0)
        return -EINVAL;
    fd = tcp_call_dial(t, t->reserved, until);
    /* A reserved port may still be in TIME-WAIT from its last connection to this server. */
    if (t->reserved && (fd == -EADDRNOTAVAIL || fd == -EADDRINUSE))
        fd = tcp_call_dial(t, false, until);
    if (fd < 0)
        return fd;
    record_init(&t->rx, t->reply_max);
    error = tcp_call_send_all(fd, t->message, n, until);
    if (error == 0)
        error = receive_record(fd, &t->rx, until);
    close(fd);
    if (error == 0)
        error = tcp_call_read_reply(t, xid, results);
    record_fini(&t->rx);
    return error;
}

void tcp_call_end(struct tcp_call *t)
{
    free(t->reply);
    t->reply = NULL;
}
