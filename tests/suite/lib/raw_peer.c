/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_peer.c - a TCP peer of the tests' own, segment by segment. */
#include "tests/suite/lib/raw_peer.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tcp/io/packet_name.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"
#include "tests/suite/lib/network.h"

enum { MTU = 1500, MSS = 1460, PREFIX = 24, PACKETS = 100000 };

int raw_peer_device(uint32_t net)
{
    struct sockaddr_storage neighbor;
    int fd;

    network_address(&neighbor, net, 1, 0);
    fd = tun_set_up(NULL, (struct sockaddr *)&neighbor, PREFIX, MTU, 0, NULL);
    assert_true(fd >= 0);
    return fd;
}

static void raw_peer_write(struct raw_peer *peer, const struct utcp_head *head, const void *octets, uint32_t n)
{
    struct utcp_packet p = {.span = {{octets, n}}, .spans = n != 0, .length = n};
    struct tun_note note = {.partial = false};

    utcp_packet_write(&p, &peer->own, &peer->other, head);
    (void)tun_send(peer->fd, (struct span[]){{p.head, p.head_length}, {octets, n}}, 1 + p.spans, &note);
}

void raw_peer_say(struct raw_peer *peer, uint8_t flags, const void *octets, uint32_t n)
{
    struct utcp_head head = {.seq = peer->next, .ack = peer->acked, .window = peer->window, .flags = flags};

    raw_peer_write(peer, &head, octets, n);
    peer->next += n;
}

/* Reads one packet. Returns false if there is none. *ours: it is a segment of this connection. */
static bool raw_peer_read(const struct raw_peer *peer, struct utcp_segment *s, bool *ours)
{
    static uint8_t packet[TUN_PACKET_MAX];
    struct iovec whole = {packet, sizeof(packet)};
    struct tun_note note;
    struct utcp_too_big big;
    ssize_t n = tun_recv(peer->fd, &whole, 1, &note);

    if (n < 0)
        return false;
    *ours = utcp_packet_read(packet, (uint32_t)n, note.checked, 0, s, &big) == UTCP_KIND_SEGMENT &&
            utcp_same_name(&s->to, &peer->own) && utcp_same_name(&s->from, &peer->other);
    return true;
}

static void note(struct raw_peer *peer, const struct utcp_segment *s)
{
    uint32_t end = s->seq + s->length;

    peer->heard++;
    if (s->flags & (UTCP_FIN | UTCP_RST))
        peer->over = true;
    if (s->flags & UTCP_SYN)
        peer->received = peer->acked = s->seq + 1;
    else if ((int32_t)(peer->received - s->seq) >= 0 && (int32_t)(end - peer->received) > 0)
        peer->received = end;
}

bool raw_peer_hear(struct raw_peer *peer, struct utcp_segment *s, int limit_ms)
{
    struct pollfd fd = {.fd = peer->fd, .events = POLLIN};
    bool ours = false;

    for (int i = 0; i < PACKETS; i++) {
        if (!raw_peer_read(peer, s, &ours)) {
            if (poll(&fd, 1, limit_ms) != 1)
                return false;
            continue;
        }
        if (ours) {
            note(peer, s);
            return true;
        }
    }
    return false;
}

bool raw_peer_connect(struct raw_peer *peer, int fd, uint32_t net, uint16_t port, const struct sockaddr_storage *to,
                      uint16_t window, int limit_ms)
{
    struct utcp_head head = {.seq = (uint32_t)port << 16, .flags = UTCP_SYN, .window = window};
    struct utcp_syn_options options = {.mss = MSS};
    struct sockaddr_storage own;
    struct utcp_segment s;

    *peer = (struct raw_peer){.fd = fd, .next = head.seq + 1, .window = window};
    network_address(&own, net, 2, port);
    assert_int_equal(packet_name_of(&peer->own, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(packet_name_of(&peer->other, (const struct sockaddr *)to, sizeof(*to)), 0);
    utcp_syn_options_write(&head, &options);
    raw_peer_write(peer, &head, NULL, 0);
    if (!raw_peer_hear(peer, &s, limit_ms) || (s.flags & (UTCP_SYN | UTCP_ACK | UTCP_RST)) != (UTCP_SYN | UTCP_ACK))
        return false;
    raw_peer_say(peer, UTCP_ACK, NULL, 0);
    return true;
}
