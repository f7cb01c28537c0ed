/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.c - the batches of a UDP socket: recvmmsg() with UDP_GRO, sendmsg() with UDP_SEGMENT. */
#include "loop/udp_inner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/icmp6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* It takes for granted what others declare. */
#include <linux/errqueue.h>

enum { ECN_MASK = 3, ECN_ECT0 = 2, ECN_CE = 3 }; /* of the octet TOS or Traffic Class (RFC 3168) */

union udp_control {
    struct cmsghdr align;
    char buffer[3 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo)) +
                CMSG_SPACE(sizeof(struct in_pktinfo))];
};

static const uint8_t any[UDP_ADDRESS];

/* --- in ------------------------------------------------------------------------------------------------------ */

/* What the kernel says of a batch: the length of each packet if it joined several, the address that they were sent to,
 * whether that is one host's, and whether they have the mark of congestion. */
struct udp_facts {
    uint32_t each;
    bool unicast, marked;
    uint8_t to[UDP_ADDRESS];
};

static void read_fact(const struct cmsghdr *c, struct udp_facts *facts)
{
    struct in6_pktinfo to6;
    struct in_pktinfo to;
    int each, tos;

    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
        memcpy(&each, CMSG_DATA(c), sizeof(each));
        if (each > 0)
            facts->each = (uint32_t)each;
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
        facts->marked |= (*CMSG_DATA(c) & ECN_MASK) == ECN_CE; /* one octet */
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
        memcpy(&tos, CMSG_DATA(c), sizeof(tos));
        facts->marked |= (tos & ECN_MASK) == ECN_CE;
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        memcpy(&to, CMSG_DATA(c), sizeof(to));
        facts->unicast &= to.ipi_addr.s_addr == to.ipi_spec_dst.s_addr;
        memcpy(facts->to + sizeof(udp_mapped), &to.ipi_addr, sizeof(to.ipi_addr));
        memcpy(facts->to, udp_mapped, sizeof(udp_mapped));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        memcpy(&to6, CMSG_DATA(c), sizeof(to6));
        facts->unicast &= !IN6_IS_ADDR_MULTICAST(&to6.ipi6_addr);
        memcpy(facts->to, &to6.ipi6_addr, sizeof(facts->to));
    }
}

static struct udp_facts facts_of(const struct udp *u, struct msghdr *m, uint32_t octets)
{
    struct udp_facts facts = {.each = octets, .unicast = true};

    memcpy(facts.to, u->at, sizeof(facts.to));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        read_fact(c, &facts);
    return facts;
}

/* Do packets that failed to arrive cause this error, and not the socket itself? All that Linux makes of ICMP. */
static bool is_of_the_path(int error)
{
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE ||
           error == EPROTO || error == EACCES || error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET ||
           error == EOPNOTSUPP;
}

/* Nothing can be sent to port 0. */
static bool has_port(const struct sockaddr_storage *from)
{
    return from->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)from)->sin6_port
                                       : ((const struct sockaddr_in *)from)->sin_port;
}

static struct msghdr message_for(struct udp_batch *batch, struct iovec *space, union udp_control *control)
{
    return (struct msghdr){
        .msg_name = &batch->from,
        .msg_namelen = sizeof(batch->from),
        .msg_iov = space,
        .msg_iovlen = 1,
        .msg_control = control->buffer,
        .msg_controllen = sizeof(control->buffer),
    };
}

static void describe_batch(const struct udp *u, struct udp_batch *batch, struct msghdr *m, uint32_t octets)
{
    struct udp_facts facts = facts_of(u, m, octets);
    bool counts = !(m->msg_flags & MSG_TRUNC) && has_port(&batch->from) && facts.unicast;

    batch->at = m->msg_iov->iov_base;
    batch->octets = counts ? octets : 0;
    batch->each = facts.each;
    batch->marked = facts.marked;
    memcpy(batch->to, facts.to, sizeof(facts.to));
    batch->from_length = m->msg_namelen;
}

/* Nothing was received: 0, or what is wrong with the socket. */
static int recv_failed(struct udp *u)
{
    u->errors |= is_of_the_path(errno);
    return errno == EAGAIN || errno == EINTR || is_of_the_path(errno) ? 0 : -errno;
}

int udp_recv(struct udp *u, const struct udp_stage *stage, struct udp_batch *batch)
{
    struct mmsghdr m[UDP_BUFFERS];
    struct iovec iov[UDP_BUFFERS];
    union udp_control control[UDP_BUFFERS];
    int n;

    for (int i = 0; i < UDP_BUFFERS; i++) {
        iov[i] = (struct iovec){stage->buffer + (size_t)i * UDP_BUFFER_OCTETS, UDP_BUFFER_OCTETS};
        m[i] = (struct mmsghdr){.msg_hdr = message_for(&batch[i], &iov[i], &control[i])};
    }
    n = recvmmsg(u->fd, m, UDP_BUFFERS, MSG_DONTWAIT, NULL);
    if (n < 0)
        return recv_failed(u);
    for (int i = 0; i < n; i++)
        describe_batch(u, &batch[i], &m[i].msg_hdr, m[i].msg_len);
    return n;
}

int udp_recv_one(struct udp *u, const struct udp_stage *stage, struct udp_batch *batch)
{
    struct iovec space = {stage->buffer, UDP_BUFFER_OCTETS};
    union udp_control control;
    struct msghdr m = message_for(batch, &space, &control);
    ssize_t n = recvmsg(u->fd, &m, MSG_DONTWAIT);

    if (n < 0)
        return recv_failed(u);
    describe_batch(u, batch, &m, (uint32_t)n);
    return 1;
}

static bool says_refused(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
        struct sock_extended_err error;

        if (!v4 && (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR))
            continue;
        memcpy(&error, CMSG_DATA(c), sizeof(error));
        if (error.ee_origin == SO_EE_ORIGIN_ICMP)
            return error.ee_type == ICMP_DEST_UNREACH && error.ee_code == ICMP_PORT_UNREACH;
        return error.ee_origin == SO_EE_ORIGIN_ICMP6 && error.ee_type == ICMP6_DST_UNREACH &&
               error.ee_code == ICMP6_DST_UNREACH_NOPORT;
    }
    return false;
}

uint32_t udp_refused(struct udp *u, uint8_t *p, uint32_t size)
{
    struct iovec iov = {p, size};
    char control[512];

    while (u->errors) {
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(u->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);

        if (n > 0 && says_refused(&m))
            return (uint32_t)n;
        u->errors = n >= 0;
    }
    return 0;
}

static bool same_peer(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    return a->ss_family == b->ss_family && memcmp(a, b, udp_length_of(a)) == 0;
}

/* --- out ----------------------------------------------------------------------------------------------------- */

/* Adds a control message behind those that are there. */
static void add_control(struct msghdr *m, int level, int type, const void *value, size_t octets)
{
    struct cmsghdr *c = (void *)((char *)m->msg_control + m->msg_controllen);

    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(octets);
    memcpy(CMSG_DATA(c), value, octets);
    m->msg_controllen += CMSG_SPACE(octets);
}

static void add_source(const struct udp *u, struct msghdr *m)
{
    struct in6_pktinfo v6 = {.ipi6_ifindex = 0};
    struct in_pktinfo v4 = {.ipi_ifindex = 0};
    bool is_v4 = !memcmp(u->out_source, udp_mapped, sizeof(udp_mapped));

    memcpy(&v6.ipi6_addr, u->out_source, sizeof(v6.ipi6_addr));
    memcpy(&v4.ipi_spec_dst, u->out_source + sizeof(udp_mapped), sizeof(v4.ipi_spec_dst));
    if (is_v4)
        add_control(m, IPPROTO_IP, IP_PKTINFO, &v4, sizeof(v4));
    else
        add_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof(v6));
}

/* Sends packets, all but the last of `each` octets. */
static bool udp_send_out(struct udp *u, struct iovec *packet, uint32_t packets, uint32_t each)
{
    union udp_control control = {0};
    uint16_t segment = (uint16_t)each;
    int ect = ECN_ECT0;
    bool v6 = u->out_to.ss_family == AF_INET6;
    struct msghdr m = {
        .msg_name = &u->out_to,
        .msg_namelen = udp_length_of(&u->out_to),
        .msg_iov = packet,
        .msg_iovlen = packets,
        .msg_control = control.buffer,
    };

    if (packets > 1)
        add_control(&m, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
    if (u->out_ect)
        add_control(&m, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &ect, sizeof(ect));
    if (memcmp(u->out_source, any, sizeof(any)) != 0)
        add_source(u, &m);
    if (!m.msg_controllen)
        m.msg_control = NULL;
    if (sendmsg(u->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    u->errors |= is_of_the_path(errno);
    return false;
}

bool udp_leaves_singly(const struct udp *u, const struct sockaddr_storage *to)
{
    return !u->cuts || same_peer(to, &u->uncut);
}

static bool leaves_singly(const struct udp *u)
{
    return udp_leaves_singly(u, &u->out_to);
}

static void send_singly(struct udp *u)
{
    bool told = u->alone && !leaves_singly(u); /* those that were to leave alone are at place 0 already */

    for (uint32_t i = 0; i < u->out_packets; i++) {
        if (told && i)
            u->alone(&u->out_to, u->packet[i].iov_base, (uint32_t)u->packet[i].iov_len, i);
        u->dropped += !udp_send_out(u, &u->packet[i], 1, 0);
    }
}

void udp_forget(struct udp *u)
{
    u->out_octets = u->out_packets = u->out_each = u->out_used = 0;
    u->out_ect = false;
    u->out_closed = u->out_borrows = false;
}

void udp_flush(struct udp *u)
{
    if (!u->out_packets)
        return;
    if (u->out_packets == 1 || leaves_singly(u)) {
        send_singly(u);
    } else if (!udp_send_out(u, u->packet, u->out_packets, u->out_each)) {
        /* A route may refuse batches that the socket accepts (EINVAL, EIO, EMSGSIZE): send the packets one by one. This
         * is remembered of one peer, so that no peer takes batches from the others; and not if it refuses those, too,
         * as all that leave from an address that is gone. */
        if (errno == EAGAIN || errno == ENOBUFS) {
            u->dropped += u->out_packets;
        } else {
            bool is_refused = errno == EINVAL || errno == EIO;
            uint64_t dropped = u->dropped;

            send_singly(u);
            if (is_refused && u->dropped - dropped < u->out_packets)
                u->uncut = u->out_to;
        }
    }
    udp_forget(u);
}

/* Makes space in the batch for a packet to this peer. */
static bool udp_make_space(struct udp *u, const struct sockaddr_storage *to, uint32_t octets, bool ect)
{
    bool fits = u->out_packets && !u->out_closed && octets <= u->out_each && u->out_packets < UDP_BATCH_PACKETS &&
                octets <= UDP_BATCH_OCTETS - u->out_octets && u->out_ect == ect && same_peer(&u->out_to, to);

    if (octets > UDP_BATCH_OCTETS)
        return false;
    if (!fits) {
        udp_flush(u);
        u->out_to = *to;
        u->out_ect = ect;
    }
    return true;
}

static void udp_add(struct udp *u, const uint8_t *p, uint32_t octets)
{
    if (!u->out_packets)
        u->out_each = octets;
    u->out_closed = octets < u->out_each;
    u->packet[u->out_packets++] = (struct iovec){(void *)(uintptr_t)p, octets};
    u->out_octets += octets;
}

uint8_t *udp_buffer(struct udp *u, const struct sockaddr_storage *to, uint32_t octets)
{
    return udp_make_space(u, to, octets, false) ? u->out + u->out_used : NULL;
}

void udp_put(struct udp *u, uint32_t octets)
{
    udp_add(u, u->out + u->out_used, octets);
    u->out_used += octets;
}

uint32_t udp_place(const struct udp *u)
{
    return leaves_singly(u) ? 0 : u->out_packets;
}

void udp_set_source(struct udp *u, const uint8_t source[UDP_ADDRESS])
{
    if (!memcmp(u->out_source, source, sizeof(u->out_source)))
        return;
    udp_flush(u);
    memcpy(u->out_source, source, sizeof(u->out_source));
}

bool udp_lend(struct udp *u, const struct sockaddr_storage *to, const uint8_t *p, uint32_t octets, bool ect)
{
    if (!udp_make_space(u, to, octets, ect))
        return false;
    udp_add(u, p, octets);
    u->out_borrows = true;
    return true;
}
