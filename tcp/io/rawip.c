/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rawip.c - packet sockets behind a filter of ports, and raw sockets. */
#include "loop/descriptors.h"
#include "tcp/io/rawip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What arrives while the loop does something else, and one burst that leaves. */
enum { RECEIVE_OCTETS = 64 << 20, SEND_OCTETS = 4 << 20 };

/* --- the filter --------------------------------------------------------------------------------------------------- */

enum {
    FILTER_MAX = 32 + 2 * RAWIP_RANGES,
    V4_PROTOCOL = 9,
    V4_FRAGMENT = 6,
    V6_PROTOCOL = 6,
    V6_HEADER = 40,
    DESTINATION_PORT = 2,
    ICMP_UNREACHABLE = 3,
    ICMPV6_TOO_BIG = 2,
};

/* A classic BPF program as it is written; jumps to its two ends are filled in when it is complete. */
struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short length;
};

enum { NEXT = 0, DROP = 254, PASS = 255 };

static void emit(struct filter *f, unsigned code, unsigned yes, unsigned no, uint32_t k)
{
    f->code[f->length++] = (struct sock_filter){(uint16_t)code, (uint8_t)yes, (uint8_t)no, k};
}

static void emit_ports(struct filter *f, const struct rawip *r)
{
    for (uint32_t i = 0; i < r->ranges; i++) {
        emit(f, BPF_JMP | BPF_JGE | BPF_K, NEXT, 1, r->range[i].first);
        emit(f, BPF_JMP | BPF_JGT | BPF_K, NEXT, PASS, r->range[i].last);
    }
    emit(f, BPF_JMP | BPF_JGE | BPF_K, DROP, DROP, 0);
}

/* Fragments are not for us: only their first would have ports. */
static void emit_v4(struct filter *f, const struct rawip *r)
{
    emit(f, BPF_LD | BPF_H | BPF_ABS, 0, 0, V4_FRAGMENT);
    emit(f, BPF_JMP | BPF_JSET | BPF_K, DROP, NEXT, 0x3fff);
    emit(f, BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0);
    emit(f, BPF_LD | BPF_B | BPF_ABS, 0, 0, V4_PROTOCOL);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, 3, NEXT, IPPROTO_TCP);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, NEXT, DROP, IPPROTO_ICMP);
    emit(f, BPF_LD | BPF_B | BPF_IND, 0, 0, 0);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, PASS, DROP, ICMP_UNREACHABLE);
    emit(f, BPF_LD | BPF_H | BPF_IND, 0, 0, DESTINATION_PORT);
    emit_ports(f, r);
}

static void emit_v6(struct filter *f, const struct rawip *r)
{
    emit(f, BPF_LD | BPF_B | BPF_ABS, 0, 0, V6_PROTOCOL);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, 3, NEXT, IPPROTO_TCP);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, NEXT, DROP, IPPROTO_ICMPV6);
    emit(f, BPF_LD | BPF_B | BPF_ABS, 0, 0, V6_HEADER);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, PASS, DROP, ICMPV6_TOO_BIG);
    emit(f, BPF_LD | BPF_H | BPF_ABS, 0, 0, V6_HEADER + DESTINATION_PORT);
    emit_ports(f, r);
}

static uint8_t filter_resolve(unsigned to, unsigned at, unsigned length)
{
    return (uint8_t)(to == DROP ? length - 2 - at - 1 : to == PASS ? length - 1 - at - 1 : to);
}

static int attach(int fd, const struct rawip *r, int family)
{
    struct filter f = {.length = 0};
    struct sock_fprog program = {.filter = f.code};

    /* Only what is addressed to this host: not what a bridge or a promiscuous interface lets us see. */
    emit(&f, BPF_LD | BPF_B | BPF_ABS, 0, 0, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
    emit(&f, BPF_JMP | BPF_JEQ | BPF_K, r->ranges ? NEXT : DROP, DROP, PACKET_HOST);
    if (family == RAWIP_V4)
        emit_v4(&f, r);
    else
        emit_v6(&f, r);
    emit(&f, BPF_RET | BPF_K, 0, 0, 0);
    emit(&f, BPF_RET | BPF_K, 0, 0, UINT32_MAX);
    for (unsigned i = 0; i < f.length; i++) {
        if (BPF_CLASS(f.code[i].code) != BPF_JMP)
            continue;
        f.code[i].jt = filter_resolve(f.code[i].jt, i, f.length);
        f.code[i].jf = filter_resolve(f.code[i].jf, i, f.length);
    }
    program.len = f.length;
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static int attach_all(const struct rawip *r)
{
    int error = 0;

    for (int family = 0; family < RAWIP_FAMILIES && !error; family++)
        if (r->in[family] >= 0)
            error = attach(r->in[family], r, family);
    return error;
}

/* Ports with at most `gap` unused ones between them are one range. False: these are more than there is room for. */
static bool collect_ports(struct rawip *r, uint32_t gap)
{
    uint32_t n = 0;

    for (uint32_t port = 0; port < RAWIP_PORTS; port++) {
        if (!r->users[port])
            continue;
        if (n && port - r->range[n - 1].last <= gap + 1)
            r->range[n - 1].last = (uint16_t)port;
        else if (n == RAWIP_RANGES)
            return false;
        else
            r->range[n++] = (struct rawip_range){(uint16_t)port, (uint16_t)port};
    }
    r->ranges = n;
    return true;
}

static int renew_filters(struct rawip *r)
{
    uint32_t gap = 0;

    while (!collect_ports(r, gap))
        gap = 2 * gap + 1;
    return attach_all(r);
}

static bool is_passed(const struct rawip *r, uint16_t port)
{
    for (uint32_t i = 0; i < r->ranges; i++)
        if (port >= r->range[i].first && port <= r->range[i].last)
            return true;
    return false;
}

int rawip_add_port(struct rawip *r, uint16_t port)
{
    int error;

    if (r->users[port] == UINT16_MAX)
        return -EOVERFLOW;
    r->users[port]++;
    if (is_passed(r, port))
        return 0;
    error = renew_filters(r);
    if (error) {
        r->users[port]--;
        (void)renew_filters(r);
    }
    return error;
}

/* A filter that passes too much costs time and nothing else. */
void rawip_remove_port(struct rawip *r, uint16_t port)
{
    if (!--r->users[port] && r->ranges < RAWIP_RANGES)
        (void)renew_filters(r);
}

/* --- the sockets ------------------------------------------------------------------------------------------------- */

static void set_buffer(int fd, int forced, int usual, int octets)
{
    /* Beyond the limits of others; without the privilege as much as they allow. */
    if (setsockopt(fd, SOL_SOCKET, forced, &octets, sizeof(octets)))
        (void)setsockopt(fd, SOL_SOCKET, usual, &octets, sizeof(octets));
}

/* Bound to one protocol a packet socket sees what the host's own filters at the device have let through, and nothing
 * that leaves. */
static int open_in(const struct rawip *r, int family)
{
    struct sockaddr_ll all = {.sll_family = AF_PACKET,
                              .sll_protocol = htons(family == RAWIP_V4 ? ETH_P_IP : ETH_P_IPV6)};
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, error;

    if (fd < 0)
        return -errno;
    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, RECEIVE_OCTETS);
    error = attach(fd, r, family);
    if (!error &&
        (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) || bind(fd, (struct sockaddr *)&all, sizeof(all))))
        error = -errno;
    if (!error)
        return fd;
    close(fd);
    return error;
}

static int open_out(int family)
{
    int fd = socket(family == RAWIP_V4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);

    if (fd < 0)
        return -errno;
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_OCTETS);
    return fd;
}

int rawip_open(struct rawip *r)
{
    int error = 0;

    *r = (struct rawip){.in = {-1, -1},
                        .out = {-1, -1},
                        .users = calloc(RAWIP_PORTS, sizeof(*r->users)),
                        .packets = malloc((size_t)RAWIP_READ * RAWIP_PACKET_MAX)};
    if (!r->users || !r->packets)
        error = -ENOMEM;
    for (int family = 0; family < RAWIP_FAMILIES && !error; family++) {
        r->out[family] = open_out(family);
        if (r->out[family] == -EAFNOSUPPORT)
            continue;
        r->in[family] = r->out[family] < 0 ? r->out[family] : open_in(r, family);
        error = r->in[family] < 0 ? r->in[family] : 0;
    }
    if (error)
        rawip_close(r);
    return error;
}

void rawip_close(struct rawip *r)
{
    for (int family = 0; family < RAWIP_FAMILIES; family++) {
        if (r->in[family] >= 0)
            descriptor_close(r->in[family]);
        if (r->out[family] >= 0)
            descriptor_close(r->out[family]);
        r->in[family] = r->out[family] = -1;
    }
    free(r->packets);
    free(r->users);
    r->packets = NULL;
    r->users = NULL;
}

/* --- packets -------------------------------------------------------------------------------------------------------
 */

static bool is_loopback(const uint8_t *ip, bool v6)
{
    static const uint8_t one[16] = {[15] = 1};

    return v6 ? !memcmp(ip, one, sizeof(one)) : ip[0] == 127;
}

/* As in the kernel: no address of loopback comes from outside. */
static bool is_martian(const uint8_t *packet, size_t n, const struct sockaddr_ll *from)
{
    bool v6 = from->sll_protocol == htons(ETH_P_IPV6);

    if (n < (v6 ? V6_HEADER : 20))
        return true;
    return from->sll_hatype != ARPHRD_LOOPBACK &&
           (is_loopback(packet + (v6 ? 8 : 12), v6) || is_loopback(packet + (v6 ? 24 : 16), v6));
}

/* What the kernel says of a packet beside its octets. */
struct note {
    struct sockaddr_ll from;
    struct iovec iov;
    union {
        struct cmsghdr align;
        uint8_t octets[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
};

static struct msghdr message_with(struct note *note, uint8_t *to)
{
    note->iov = (struct iovec){to, RAWIP_PACKET_MAX};
    return (struct msghdr){.msg_name = &note->from,
                           .msg_namelen = sizeof(note->from),
                           .msg_iov = &note->iov,
                           .msg_iovlen = 1,
                           .msg_control = &note->control,
                           .msg_controllen = sizeof(note->control)};
}

static struct rawip_arrival arrival_of(struct mmsghdr *m)
{
    struct rawip_arrival arrival = {.at = m->msg_hdr.msg_iov->iov_base, .octets = m->msg_len};
    struct tpacket_auxdata aux = {0};

    if (m->msg_hdr.msg_flags & MSG_TRUNC || is_martian(arrival.at, arrival.octets, m->msg_hdr.msg_name))
        arrival.octets = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c; c = CMSG_NXTHDR(&m->msg_hdr, c))
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
            memcpy(&aux, CMSG_DATA(c), sizeof(aux));
    arrival.checked = aux.tp_status & (TP_STATUS_CSUMNOTREADY | TP_STATUS_CSUM_VALID);
    return arrival;
}

int rawip_recv(const struct rawip *r, int fd, struct rawip_arrival arrival[RAWIP_READ])
{
    struct note note[RAWIP_READ];
    struct mmsghdr m[RAWIP_READ];
    int n;

    for (size_t i = 0; i < RAWIP_READ; i++)
        m[i].msg_hdr = message_with(&note[i], r->packets + i * RAWIP_PACKET_MAX);
    do
        n = recvmmsg(fd, m, RAWIP_READ, MSG_DONTWAIT, NULL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++)
        arrival[i] = arrival_of(&m[i]);
    return n;
}

static socklen_t address_v4(struct sockaddr_storage *to, struct cmsghdr *source, const uint8_t *head)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct in_pktinfo from = {.ipi_ifindex = 0};

    memcpy(&v4.sin_addr, head + 16, 4);
    memcpy(to, &v4, sizeof(v4));
    memcpy(&from.ipi_spec_dst, head + 12, 4);
    source->cmsg_level = IPPROTO_IP;
    source->cmsg_type = IP_PKTINFO;
    source->cmsg_len = CMSG_LEN(sizeof(from));
    memcpy(CMSG_DATA(source), &from, sizeof(from));
    return sizeof(v4);
}

static socklen_t address_v6(struct sockaddr_storage *to, struct cmsghdr *source, const uint8_t *head, uint32_t scope)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_scope_id = scope};
    struct in6_pktinfo from = {.ipi6_ifindex = scope};

    memcpy(&v6.sin6_addr, head + 24, 16);
    memcpy(to, &v6, sizeof(v6));
    memcpy(&from.ipi6_addr, head + 8, 16);
    source->cmsg_level = IPPROTO_IPV6;
    source->cmsg_type = IPV6_PKTINFO;
    source->cmsg_len = CMSG_LEN(sizeof(from));
    memcpy(CMSG_DATA(source), &from, sizeof(from));
    return sizeof(v6);
}

/* Sends messages in as few calls as the kernel allows, which stops at one that it does not take. */
static int rawip_send_messages(int fd, struct mmsghdr *m, uint32_t messages)
{
    int error = 0;

    for (uint32_t sent = 0; sent < messages;) {
        int n = sendmmsg(fd, m + sent, messages - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            sent += (uint32_t)n;
        } else if (errno != EINTR) {
            sent++;
            error = errno == EMSGSIZE ? -EMSGSIZE : error;
        }
    }
    return error;
}

/* The source address is told to routing, too, which may choose the way by it. */
int rawip_send(const struct rawip *r, const struct rawip_packet *packet, uint32_t packets, uint32_t scope)
{
    union {
        struct cmsghdr head;
        uint8_t octets[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control = {.octets = {0}};
    struct sockaddr_storage to;
    const uint8_t *head = packet[0].piece[0].iov_base;
    bool v6 = head[0] >> 4 == 6;
    struct mmsghdr m[RAWIP_BATCH];
    struct msghdr message = {.msg_name = &to, .msg_control = &control};

    message.msg_namelen = v6 ? address_v6(&to, &control.head, head, scope) : address_v4(&to, &control.head, head);
    message.msg_controllen = control.head.cmsg_len;
    for (uint32_t i = 0; i < packets; i++) {
        message.msg_iov = packet[i].piece;
        message.msg_iovlen = packet[i].pieces;
        m[i].msg_hdr = message;
    }
    return rawip_send_messages(r->out[v6 ? RAWIP_V6 : RAWIP_V4], m, packets);
}
