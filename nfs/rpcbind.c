/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcbind.c - three calls to rpcbind, each over a connection of its own: SET and UNSET of version 4 over its local
 * socket, where it believes who we are, and GETPORT of version 2, which every host answers. */
#include "nfs/rpcbind.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "nfs/record.h"
#include "rpc/clock.h"
#include "rpc/xdrbytes.h"

enum { RPCBIND_PROGRAM = 100000, RPCBIND_PORT = 111, PORTMAP_VERSION = 2, RPCBIND_VERSION = 4 };
enum { PROC_SET = 1, PROC_UNSET = 2, PROC_GETPORT = 3 };
enum { MESSAGE_MAX = 512, LOCAL_MS = 10000 };

#define LOCAL_SOCKET "/run/rpcbind.sock"

/* One call: the message with its mark, then the reply. */
struct exchange {
    int fd;
    uint64_t until_ms;
    uint8_t message[RECORD_MARK + MESSAGE_MAX];
    struct xdr_out out;
};

static void begin(struct exchange *x, uint32_t version, uint32_t procedure)
{
    static const uint32_t call = 0, rpc_version = 2;

    x->out = (struct xdr_out){.at = x->message + RECORD_MARK, .left = MESSAGE_MAX};
    xdr_put32(&x->out, (uint32_t)getpid());
    xdr_put32(&x->out, call);
    xdr_put32(&x->out, rpc_version);
    xdr_put32(&x->out, RPCBIND_PROGRAM);
    xdr_put32(&x->out, version);
    xdr_put32(&x->out, procedure);
    for (int i = 0; i < 4; i++) /* AUTH_NONE twice: a credential and a verifier of no octets */
        xdr_put32(&x->out, 0);
}

static void put_text(struct xdr_out *out, const char *text)
{
    xdr_put32(out, (uint32_t)strlen(text));
    xdr_putopaque(out, text, strlen(text));
}

static int wait_for(const struct exchange *x, short events)
{
    struct pollfd fd = {.fd = x->fd, .events = events};
    uint64_t now = clock_ms();
    int n;

    if (now >= x->until_ms)
        return -ETIMEDOUT;
    n = poll(&fd, 1, (int)(x->until_ms - now));
    return n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;
}

static int connect_to(struct exchange *x, const struct sockaddr *addr, socklen_t length)
{
    socklen_t n = sizeof(int);
    int error = 0, rc;

    x->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (x->fd < 0)
        return -errno;
    if (connect(x->fd, addr, length) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    rc = wait_for(x, POLLOUT);
    if (rc == 0 && getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        return -errno;
    return rc ? rc : -error;
}

static int send_message(const struct exchange *x)
{
    size_t length = MESSAGE_MAX - x->out.left + RECORD_MARK;

    for (size_t at = 0; at < length;) {
        ssize_t n = send(x->fd, x->message + at, length - at, MSG_NOSIGNAL);

        if (n >= 0) {
            at += (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return -errno;
        } else {
            int rc = wait_for(x, POLLOUT);

            if (rc && rc != -EINTR)
                return rc;
        }
    }
    return 0;
}

static int receive_message(const struct exchange *x, struct record_rx *rx)
{
    uint8_t octets[MESSAGE_MAX];
    size_t eaten;

    for (int rc = 0;;) {
        ssize_t n = recv(x->fd, octets, sizeof(octets), 0);

        if (n == 0)
            return -ECONNRESET;
        if (n > 0) {
            rc = record_eat(rx, octets, (size_t)n, &eaten);
            if (rc)
                return rc < 0 ? -EPROTO : 0;
        } else if (errno != EAGAIN && errno != EINTR) {
            return -errno;
        } else {
            rc = wait_for(x, POLLIN);
            if (rc && rc != -EINTR)
                return rc;
        }
    }
}

/* The reply is to this call, accepted and successful; then one number follows. */
static int decode(const uint8_t *reply, size_t length, uint32_t *result)
{
    struct xdr_in in = {.at = reply, .left = length};
    bool mine = xdr_get32(&in) == (uint32_t)getpid() && xdr_get32(&in) == 1;
    bool accepted = xdr_get32(&in) == 0;
    uint32_t verifier;

    xdr_get32(&in);
    verifier = xdr_get32(&in);
    if (!accepted || verifier > MESSAGE_MAX)
        return -EPROTO;
    xdr_getopaque(&in, verifier);
    accepted = xdr_get32(&in) == 0;
    *result = xdr_get32(&in);
    return mine && accepted && !in.bad ? 0 : -EPROTO;
}

static int run(struct exchange *x, const struct sockaddr *addr, socklen_t length, int timeout_ms, uint32_t *result)
{
    struct record_rx rx;
    int rc;

    record_init(&rx, MESSAGE_MAX);
    x->until_ms = clock_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
    record_mark(x->message, MESSAGE_MAX - x->out.left);
    rc = connect_to(x, addr, length);
    if (rc == 0)
        rc = send_message(x);
    if (rc == 0)
        rc = receive_message(x, &rx);
    if (rc == 0)
        rc = decode(rx.data, rx.length, result);
    record_fini(&rx);
    if (x->fd >= 0)
        close(x->fd);
    return rc;
}

int rpcbind_getport(const struct sockaddr *addr, uint32_t program, uint32_t version, const char *netid, int timeout_ms)
{
    struct sockaddr_storage to = {0};
    socklen_t length = addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    struct exchange x;
    uint32_t port = 0;
    uint16_t there = htons(RPCBIND_PORT);
    int rc;

    if (strcmp(netid, "tcp") != 0 && strcmp(netid, "tcp6") != 0)
        return -EINVAL;
    memcpy(&to, addr, length);
    /* The port is at the same place in both families. */
    memcpy((uint8_t *)&to + offsetof(struct sockaddr_in, sin_port), &there, sizeof(there));
    begin(&x, PORTMAP_VERSION, PROC_GETPORT);
    xdr_put32(&x.out, program);
    xdr_put32(&x.out, version);
    xdr_put32(&x.out, IPPROTO_TCP);
    xdr_put32(&x.out, 0);
    rc = run(&x, (const struct sockaddr *)&to, length, timeout_ms, &port);
    if (rc)
        return rc;
    return port <= UINT16_MAX ? (int)port : -EPROTO;
}

/* An address has the port's two octets behind it, all in decimal (RFC 5665 5.2.3.3); ours is any. UNSET looks at none.
 */
static int tell(uint32_t procedure, uint32_t program, uint32_t version, const char *netid, unsigned port)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = LOCAL_SOCKET};
    char address[32], owner[16];
    bool v6 = netid[0] && netid[strlen(netid) - 1] == '6';
    struct exchange x;
    uint32_t done = 0;
    int rc;

    snprintf(address, sizeof(address), "%s.%u.%u", v6 ? "::" : "0.0.0.0", port >> 8, port & 255);
    snprintf(owner, sizeof(owner), "%u", geteuid());
    begin(&x, RPCBIND_VERSION, procedure);
    xdr_put32(&x.out, program);
    xdr_put32(&x.out, version);
    put_text(&x.out, netid);
    put_text(&x.out, address);
    put_text(&x.out, owner);
    rc = run(&x, (const struct sockaddr *)&path, sizeof(path), LOCAL_MS, &done);
    return rc ? rc : done ? 0 : -EEXIST;
}

int rpcbind_set(uint32_t program, uint32_t version, const char *netid, uint16_t port)
{
    return tell(PROC_SET, program, version, netid, port);
}

int rpcbind_unset(uint32_t program, uint32_t version, const char *netid)
{
    return tell(PROC_UNSET, program, version, netid, 0);
}
