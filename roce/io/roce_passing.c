/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_passing.c - packets that belong to another process of this host, out and in. */
#include "roce/io/roce_passing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "loop/descriptors.h"
#include "roce/io/roce_port.h"

int roce_passing_init(struct roce_passing *passing)
{
    int octets = UDP_SOCKET_OCTETS;

    *passing = (struct roce_passing){.fd = -1, .out = malloc(PASSING_OCTETS)};
    if (!passing->out)
        return -ENOMEM;
    passing->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (passing->fd < 0)
        return -errno;
    setsockopt(passing->fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof(octets));
    return 0;
}

void roce_passing_fini(struct roce_passing *passing)
{
    if (passing->fd >= 0)
        descriptor_close(passing->fd);
    free(passing->out);
    passing->out = NULL;
    passing->fd = -1;
}

/* --- names ------------------------------------------------------------------------------------------------------- */

struct passing_name {
    struct sockaddr_un address;
    socklen_t length;
};

/* Abstract: it begins with an octet of zero, and its length counts. */
static struct passing_name passing_name(const char *text)
{
    struct passing_name name = {.address.sun_family = AF_UNIX};
    size_t octets = strlen(text);

    memcpy(name.address.sun_path + 1, text, octets);
    name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + octets);
    return name;
}

static struct passing_name name_of_port(uint16_t port)
{
    char text[32];

    snprintf(text, sizeof(text), "rddp-roce/%u", port);
    return passing_name(text);
}

static struct passing_name name_of_listener(uint64_t service, const struct roce_address *local)
{
    const uint8_t *gid = local->octets;
    char text[80];

    snprintf(text, sizeof(text), "rddp-roce/%016" PRIx64 "/%016" PRIx64 "%016" PRIx64, service, get64(gid),
             get64(gid + 8));
    return passing_name(text);
}

static int open_named(const struct passing_name *name)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, error;

    if (fd < 0)
        return -errno;
    if (!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) &&
        !bind(fd, (const struct sockaddr *)&name->address, name->length))
        return fd;
    error = -errno;
    close(fd);
    return error;
}

int roce_passing_open(uint16_t port)
{
    struct passing_name name = name_of_port(port);

    return open_named(&name);
}

int roce_passing_listen(uint64_t service, const struct roce_address *local)
{
    struct passing_name name = name_of_listener(service, local);

    return open_named(&name);
}

/* --- out --------------------------------------------------------------------------------------------------------- */

static uint32_t packets_of(const struct roce_run *run)
{
    return (run->octets + run->each - 1) / run->each;
}

static uint8_t *write_head(uint8_t *p, const struct roce_run *run)
{
    p = put_bytes(put_bytes(p, run->from.octets, sizeof(run->from.octets)), run->to.octets, sizeof(run->to.octets));
    p = put32(put16(put16(p, run->from_port), run->to_port), run->scope);
    return put16(put16(p, (uint16_t)run->octets), (uint16_t)run->each);
}

static void put_run(struct roce_passing *passing, const struct roce_run *run)
{
    memcpy(write_head(passing->out + passing->octets, run), run->at, run->octets);
    passing->octets += PASSING_HEAD + run->octets;
    passing->packets += packets_of(run);
}

void roce_passing_put(struct roce_passing *passing, uint16_t port, const struct roce_run *run)
{
    if (passing->to_port != port || PASSING_HEAD + run->octets > PASSING_OCTETS - passing->octets)
        roce_passing_flush(passing);
    passing->to_port = port;
    if (run->octets > PASSING_OCTETS - PASSING_HEAD)
        passing->lost += packets_of(run);
    else
        put_run(passing, run);
}

void roce_passing_flush(struct roce_passing *passing)
{
    struct passing_name name;

    if (!passing->octets)
        return; /* as after almost every call that receives */
    name = name_of_port(passing->to_port);
    if (sendto(passing->fd, passing->out, passing->octets, MSG_DONTWAIT, (struct sockaddr *)&name.address,
               name.length) < 0) {
        if (errno == ECONNREFUSED)
            passing->unowned += passing->packets;
        else
            passing->lost += passing->packets;
    }
    passing->octets = passing->packets = 0;
}

static int offer_to(struct roce_passing *passing, uint64_t service, const struct roce_address *local,
                    const struct iovec *parts)
{
    struct passing_name name = name_of_listener(service, local);
    struct msghdr message = {
        .msg_name = &name.address, .msg_namelen = name.length, .msg_iov = (struct iovec *)parts, .msg_iovlen = 2};

    if (sendmsg(passing->fd, &message, MSG_DONTWAIT) >= 0)
        return 0;
    return errno == ECONNREFUSED ? -ECONNREFUSED : -EAGAIN;
}

int roce_passing_offer(struct roce_passing *passing, uint64_t service, const struct roce_run *run)
{
    static const struct roce_address any, any_ipv4 = {{[10] = 0xff, [11] = 0xff}};
    uint8_t head[PASSING_HEAD];
    const struct iovec parts[] = {{head, PASSING_HEAD}, {(void *)run->at, run->octets}};
    int error;

    write_head(head, run);
    error = offer_to(passing, service, &run->to, parts);
    if (error == -ECONNREFUSED && roce_address_is_v4(&run->to))
        error = offer_to(passing, service, &any_ipv4, parts);
    if (error == -ECONNREFUSED)
        error = offer_to(passing, service, &any, parts);
    return error;
}

/* --- in ---------------------------------------------------------------------------------------------------------- */

static bool is_of_this_user(const struct msghdr *message)
{
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    struct ucred sender;

    if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.uid == getuid() || sender.uid == geteuid() || !sender.uid;
}

ssize_t roce_passing_receive(int fd, uint8_t *to, size_t octets)
{
    alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec all = {to, octets};
    struct msghdr message = {
        .msg_iov = &all, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);

    return n > 0 && !is_of_this_user(&message) ? 0 : n;
}

bool roce_passing_read(const uint8_t *p, uint32_t octets, uint32_t *at, struct roce_run *run)
{
    const uint8_t *head = p + *at;

    if (octets - *at < PASSING_HEAD)
        return false;
    *run = (struct roce_run){
        .at = head + PASSING_HEAD,
        .from_port = get16(head + 32),
        .to_port = get16(head + 34),
        .scope = get32(head + 36),
        .octets = get16(head + 40),
        .each = get16(head + 42),
    };
    memcpy(run->from.octets, head, sizeof(run->from.octets));
    memcpy(run->to.octets, head + 16, sizeof(run->to.octets));
    if (!run->octets || !run->each || run->octets > octets - *at - PASSING_HEAD)
        return false;
    *at += PASSING_HEAD + run->octets;
    return true;
}
