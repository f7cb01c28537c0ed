/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send_receive.c - data are sent and received: copied into a ring, from where they leave, and out of the one that the
 * peer writes. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "verbs/rsock/rsock_datagram.h"

bool rs_is_readable(const struct rsocket *rs)
{
    return rs->in.ready || rs->read_shut || rs->peer_is_done || rs->state != RS_CONNECTED;
}

bool rs_has_ring_space(const struct rsocket *rs)
{
    return rs->out.size - rs->out.used >= RS_WRITABLE;
}

bool rs_is_writable(const struct rsocket *rs)
{
    const struct rs_out *out = &rs->out;

    if (rs->write_shut || rs->state != RS_CONNECTED)
        return true;
    return out->slots >= RS_CONTROL_SLOTS + 2 && rs_has_ring_space(rs) && out->targets &&
           (uint16_t)(out->allowed - out->sent) > out->kept && rs_maps_are_announced(rs);
}

uint32_t rs_ring_space(const struct rsocket *rs, size_t n, uint32_t length)
{
    const struct rs_out *out = &rs->out;
    uint32_t most = RS_TRANSFER_MAX;

    if (most > length)
        most = length;
    if (most > out->size - out->used)
        most = out->size - out->used;
    if (most > out->size - out->write_at)
        most = out->size - out->write_at;
    return n < most ? (uint32_t)n : most;
}

struct ibv_sge rs_ring_put(struct rsocket *rs, const void *from, uint32_t n)
{
    struct rs_out *out = &rs->out;
    uint8_t *to = out->buffer + out->write_at;

    memcpy(to, from, n);
    out->write_at = (out->write_at + n) % out->size;
    out->used += n;
    return (struct ibv_sge){.addr = (uintptr_t)to, .length = n, .lkey = rs->queues.out->lkey};
}

/* Sends the beginning of n octets. */
static uint32_t send_part(struct rsocket *rs, const void *from, size_t n)
{
    struct rs_out *out = &rs->out;
    const struct rs_sge to = out->target[0];
    uint32_t part = rs_ring_space(rs, n, to.length);
    struct ibv_sge sge = rs_ring_put(rs, from, part);

    if (rs_post_write(rs, &sge, &to, rs_message(RS_DATA, part), part))
        return 0;
    out->sent++;
    out->target[0].addr += part;
    out->target[0].length -= part;
    if (!out->target[0].length) {
        out->target[0] = out->target[1];
        out->targets--;
    }
    return part;
}

/* The error of a socket that cannot be written to; 0 if it can. */
static int write_error(struct rsocket *rs)
{
    int error;

    if (rs->write_shut)
        return EPIPE;
    if (rs->state == RS_CONNECTED)
        return 0;
    if (rs->state == RS_OVER)
        return ECONNRESET;
    error = rs_take_error(rs);
    return error ? error : EPIPE;
}

/* All of it, unless the socket does not wait or the connection ends. Returns the octets sent, or a negative errno. */
static ssize_t send_all(struct rsocket *rs, const uint8_t *from, size_t n, bool dont_wait)
{
    size_t done = 0;
    int error = 0;

    while (done < n && !error) {
        error = rs_wait(rs, rs_is_writable, dont_wait, -1);
        if (!error)
            error = write_error(rs);
        if (!error)
            done += send_part(rs, from + done, n - done);
    }
    return done || !error ? (ssize_t)done : -error;
}

static int begin_transfer(struct rsocket *rs, int flags, bool *dont_wait)
{
    *dont_wait = rs->is_nonblocking || flags & MSG_DONTWAIT;
    if (flags & MSG_OOB)
        return EOPNOTSUPP;
    return rs_wait_connected(rs, *dont_wait);
}

static ssize_t end_transfer(struct rsocket *rs, ssize_t result)
{
    rs_leave(rs, 0);
    return result < 0 ? rs_fail((int)-result) : result;
}

/* Parts are sent as if they were one. */
static ssize_t send_stream(struct rsocket *rs, const struct msghdr *msg, int flags)
{
    ssize_t done = 0;
    bool dont_wait;
    int error = begin_transfer(rs, flags, &dont_wait);

    if (!error && (rs->write_shut || rs->state != RS_CONNECTED))
        error = write_error(rs);
    for (size_t i = 0; !error && i < msg->msg_iovlen; i++) {
        ssize_t sent = send_all(rs, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len, dont_wait);
        if (sent < 0)
            error = (int)-sent;
        else
            done += sent;
        if (sent != (ssize_t)msg->msg_iov[i].iov_len)
            break;
    }
    return done || !error ? done : -error;
}

static ssize_t send_parts(int socket, const struct msghdr *msg, int flags)
{
    struct rsocket *rs = rs_get(socket);

    if (!rs)
        return -1;
    rs_lock(rs);
    return end_transfer(rs, rs->datagrams ? rs_datagram_send(rs, msg, flags) : send_stream(rs, msg, flags));
}

/* The address is that of a datagram. With a connected stream it is not looked at, as TCP does. */
ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr, socklen_t addrlen)
{
    struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};
    const struct msghdr msg = {.msg_name = (void *)dest_addr, .msg_namelen = addrlen, .msg_iov = &iov, .msg_iovlen = 1};

    return send_parts(socket, &msg, flags);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    if (msg->msg_control && msg->msg_controllen)
        return rs_fail(EOPNOTSUPP);
    return send_parts(socket, msg, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
    return rsend(socket, buf, count, 0);
}

static struct msghdr parts_of(const struct iovec *iov, int iovcnt)
{
    return (struct msghdr){.msg_iov = (struct iovec *)iov, .msg_iovlen = iovcnt > 0 ? (size_t)iovcnt : 0};
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    const struct msghdr msg = parts_of(iov, iovcnt);

    return send_parts(socket, &msg, 0);
}

/* Copies what is there, from `skip` octets on. */
static size_t copy_ready(const struct rsocket *rs, uint8_t *to, size_t n, size_t skip)
{
    const struct rs_in *in = &rs->in;
    size_t at = (in->read_at + skip) % in->size, first;

    if (n > in->ready - skip)
        n = in->ready - skip;
    first = n < in->size - at ? n : in->size - at;
    memcpy(to, in->buffer + at, first);
    memcpy(to + first, in->buffer, n - first);
    return n;
}

static size_t scatter_ready(const struct rsocket *rs, const struct iovec *iov, size_t count, size_t skip_to)
{
    size_t done = 0;

    for (size_t i = 0; i < count && done < rs->in.ready; i++) {
        size_t skip = skip_to < iov[i].iov_len ? skip_to : iov[i].iov_len;
        skip_to -= skip;
        done += copy_ready(rs, (uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip, done);
    }
    return done;
}

/* The error of a socket from which nothing can be read any more; 0: it has ended. */
static int read_error(struct rsocket *rs)
{
    return rs->state == RS_FAILED && !rs->peer_is_done ? rs_take_error(rs) : 0;
}

static ssize_t receive_into(struct rsocket *rs, const struct iovec *iov, size_t count, int flags, bool dont_wait)
{
    size_t wanted = 0, done = 0;
    int error = 0;

    for (size_t i = 0; i < count; i++)
        wanted += iov[i].iov_len;
    while (done < wanted) {
        size_t n;
        error = rs_wait(rs, rs_is_readable, dont_wait, -1);
        if (!error && !rs->in.ready)
            error = read_error(rs);
        if (error || !rs->in.ready)
            break;
        n = scatter_ready(rs, iov, count, done);
        if (flags & MSG_PEEK)
            return (ssize_t)n;
        rs_consume(rs, (uint32_t)n);
        done += n;
        rs_advance(rs); /* a half may be free now, and the peer waits for it */
        if (!(flags & MSG_WAITALL))
            break;
    }
    return done || !error ? (ssize_t)done : -error;
}

static ssize_t receive_stream(struct rsocket *rs, struct msghdr *msg, int flags)
{
    bool dont_wait;
    int error = begin_transfer(rs, flags, &dont_wait);

    msg->msg_flags = 0;
    return error ? -error : receive_into(rs, msg->msg_iov, msg->msg_iovlen, flags, dont_wait);
}

static ssize_t receive_parts(int socket, struct msghdr *msg, int flags)
{
    struct rsocket *rs = rs_get(socket);
    ssize_t done;

    if (!rs)
        return -1;
    rs_lock(rs);
    if (rs->datagrams) {
        done = rs_datagram_receive(rs, msg, flags);
    } else {
        done = receive_stream(rs, msg, flags);
        msg->msg_namelen = 0;
    }
    return end_transfer(rs, done);
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

/* A stream names the peer that it is connected to. */
ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
    const bool names = src_addr && addrlen;
    struct iovec iov = {.iov_base = buf, .iov_len = len};
    struct msghdr msg = {
        .msg_name = names ? src_addr : NULL, .msg_namelen = names ? *addrlen : 0, .msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n = receive_parts(socket, &msg, flags);

    if (n < 0 || !names)
        return n;
    if (msg.msg_namelen)
        *addrlen = msg.msg_namelen;
    else
        rgetpeername(socket, src_addr, addrlen);
    return n;
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    ssize_t n = receive_parts(socket, msg, flags);

    if (n >= 0)
        msg->msg_controllen = 0;
    return n;
}

ssize_t rread(int socket, void *buf, size_t count)
{
    return rrecv(socket, buf, count, 0);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    struct msghdr msg = parts_of(iov, iovcnt);

    return receive_parts(socket, &msg, 0);
}
