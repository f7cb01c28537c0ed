/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_peer.c - is the peer of an association over Linux's SCTP sockets. It implements the DDP/RDMA adaptation a second
 * time from sctp-ddp-rdma.txt and doc/sctp-negotiation.md, and uses no code of rddp.
 *
 *     sctp_peer listen|connect OWN-ADDRESS PEER-ADDRESS PORT INDICATION [WRONG [MODE]]
 *
 * It does what interop/sctp_talk.c does and prints the same lines, with the number of signals that had to wait. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sctp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { OCTETS = 200000, TAG = 0x1234, STREAM = 3, SECONDS = 100, NUMBERS = 65536, BUFFER = 70000 };
enum { NOTIFY = 0x40, HELLO = 1, SEND = 2 };

static int fd, kind;
static bool active, up, told, over, started, greeted, finished;
static sctp_assoc_t id;
static uint8_t in[OCTETS], out[OCTETS], buffer[BUFFER];
static uint32_t sent, piece, aws, peer_indication;

/* The peer's sequence: the numbers received, the number up to which all are received, and the number a signal awaits.
 */
static bool here[NUMBERS];
static uint32_t cumulative, wait_for, signals_held;
static bool any, waiting;

static uint8_t octet_at(uint32_t i, bool of_active)
{
    return (uint8_t)(i * 7 + (i >> 8) + (of_active ? 1 : 2));
}

static void die(const char *what)
{
    fprintf(stderr, "sctp_peer: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(uint8_t *p, uint64_t v, int octets)
{
    while (octets--) {
        p[octets] = (uint8_t)v;
        v >>= 8;
    }
}

static uint64_t get(const uint8_t *p, int octets)
{
    uint64_t v = 0;

    while (octets--)
        v = v << 8 | *p++;
    return v;
}

/* --- out ----------------------------------------------------------------------------------------------------- */

static ssize_t transmit(const void *data, size_t n, uint16_t stream, uint16_t flags)
{
    union {
        struct cmsghdr align;
        char buffer[CMSG_SPACE(sizeof(struct sctp_sndrcvinfo))];
    } control = {0};
    struct sctp_sndrcvinfo info = {.sinfo_stream = stream, .sinfo_flags = flags, .sinfo_assoc_id = id};
    struct iovec iov = {(void *)(uintptr_t)data, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = IPPROTO_SCTP;
    c->cmsg_type = SCTP_SNDRCV;
    c->cmsg_len = CMSG_LEN(sizeof(info));
    memcpy(CMSG_DATA(c), &info, sizeof(info));
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void abort_for(const char *text)
{
    if (over)
        return;
    printf("aborted: %s\n", text);
    transmit(text, strlen(text), 0, SCTP_ABORT);
    over = true;
}

/* Returns false if the send buffer has no room now. */
static bool chunk(uint32_t mode, uint8_t flags, uint32_t tag, uint64_t offset, const void *data, uint32_t n)
{
    uint8_t p[BUFFER];
    uint32_t head = kind <= 2 ? 16 : 20;

    put(p, mode, 3);
    p[3] = flags;
    put(p + 4, tag, 4);
    put(p + 8, offset, 8);
    if (head == 20)
        put(p + 16, aws, 4);
    memcpy(p + head, data, n);
    if (transmit(p, head + n, kind == 1 && mode == 1 ? STREAM : 0, SCTP_UNORDERED) < 0) {
        if (errno != EAGAIN)
            die("send");
        return false;
    }
    aws++;
    return true;
}

static bool say_hello(bool reply)
{
    uint8_t p[12] = {1, HELLO, 0, reply};

    return chunk(0, 0, 0, 0, p, sizeof(p));
}

static bool say_done(void)
{
    uint8_t p[20] = {1, SEND, 0, 1, 0, 0, 0, 1};

    memcpy(p + 16, "done", 4);
    return chunk(0, 0, 0, 0, p, sizeof(p));
}

static void find_piece(void)
{
    struct sctp_status status = {.sstat_assoc_id = id};
    socklen_t n = sizeof(status);

    if (getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &n))
        die("SCTP_STATUS");
    piece = status.sstat_fragmentation_point - 20;
}

/* Sends as much as the send buffer has room for. */
static void send_more(void)
{
    uint32_t mode = kind <= 2 ? (uint32_t)kind : 3;

    while (kind != 5 && sent < OCTETS) {
        uint32_t left = OCTETS - sent, n = left < piece ? left : piece;
        uint8_t flags = n == left && kind < 4 ? NOTIFY : 0;

        if (!chunk(mode, flags, kind == 1 ? 0 : TAG, sent, out + sent, n))
            return;
        sent += n;
    }
    if (kind >= 4 && !say_done())
        return;
    finished = true;
}

static void be_wrong(const char *how, const char *number)
{
    uint32_t mode = number ? (uint32_t)atoi(number) : kind <= 2 ? (uint32_t)kind : 3;

    chunk(mode, 0, TAG + (strcmp(how, "tag") == 0), strcmp(how, "offset") == 0 ? OCTETS : 0, "x", 1);
}

/* --- in ------------------------------------------------------------------------------------------------------ */

/* If every chunk up to the signal is placed, checks that all octets have arrived. */
static void check_told(void)
{
    if (!waiting || (int32_t)(cumulative - wait_for) < 0)
        return;
    told = true;
    waiting = false;
    for (uint32_t i = 0; kind != 5 && i < OCTETS; i++)
        if (in[i] != octet_at(i, !active)) {
            fprintf(stderr, "sctp_peer: octet %u is not what was sent when the signal came\n", i);
            exit(1);
        }
}

static void count(uint32_t number, bool signal)
{
    here[number % NUMBERS] = true;
    while (here[(cumulative + 1) % NUMBERS]) {
        cumulative++;
        here[cumulative % NUMBERS] = false;
    }
    if (signal) {
        waiting = true;
        wait_for = number;
        signals_held += (int32_t)(cumulative - number) < 0;
    }
    check_told();
}

static const char *judge(uint32_t mode)
{
    if (mode == 0 && peer_indication == 3)
        return "R1: not placed, from RDMA_ONLY";
    if (mode == 1 && peer_indication != 1)
        return "R2: DDP_MODE";
    if (mode == 2 && peer_indication != 2)
        return "R3: DDP_WITH_TAG_MODE";
    if (mode == 3 && peer_indication != 3 && peer_indication != 4)
        return "R4: RDMA_PLACEMENT_MODE";
    return mode > 3 ? "an unknown mode" : NULL;
}

static bool negotiate(const uint8_t *p, uint32_t n)
{
    if (n < 8 || p[0] != 1) {
        abort_for("not a negotiation message");
        return false;
    }
    if (p[1] == HELLO)
        greeted = true;
    return p[1] == SEND;
}

static void take(const uint8_t *p, uint32_t n, const struct sctp_sndrcvinfo *info)
{
    uint32_t head = peer_indication <= 2 ? 16 : 20, mode, tag, length;
    uint64_t offset;
    bool signal;

    if (n < head) {
        abort_for("short");
        return;
    }
    mode = (uint32_t)get(p, 3);
    tag = (uint32_t)get(p + 4, 4);
    offset = get(p + 8, 8);
    length = n - head;
    if (judge(mode)) {
        abort_for(judge(mode));
        return;
    }
    signal = p[3] & NOTIFY;
    if (mode == 0) {
        signal |= peer_indication >= 4 && negotiate(p + head, length);
    } else if (mode == 1 ? info->sinfo_stream != STREAM : tag != TAG) {
        abort_for("R5: no such buffer");
    } else if (offset > OCTETS || length > OCTETS - offset) {
        abort_for("R5: outside the buffer");
    } else {
        memcpy(in + offset, p + head, length);
    }
    if (over)
        return;
    if (head == 20 && !any) {
        any = true;
        cumulative = UINT32_MAX;
    } else if (!any) {
        any = true; /* the first chunk read may not be the first chunk sent */
        cumulative = (int32_t)(info->sinfo_cumtsn - info->sinfo_tsn) < 0 ? info->sinfo_cumtsn : info->sinfo_tsn - 1;
    }
    count(head == 20 ? (uint32_t)get(p + 16, 4) : info->sinfo_tsn, signal);
}

/* Prints the reason in the ABORT that comes with the notification (RFC 9260 3.3.7). */
static void lost(const struct sctp_assoc_change *change, size_t n)
{
    const uint8_t *p = change->sac_info;
    size_t octets = n > sizeof(*change) ? n - sizeof(*change) : 0;

    over = true;
    for (size_t at = 0; at + 4 <= octets; at++) {
        size_t length = get(p + at + 2, 2);

        if (get(p + at, 2) == 12 && length > 4 && length <= octets - at) {
            printf("aborted by the peer: %.*s\n", (int)(length - 4), p + at + 4);
            return;
        }
    }
    printf("aborted by the peer: (no reason)\n");
}

static void notified(const union sctp_notification *note, size_t n)
{
    switch (note->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE:
        if (note->sn_assoc_change.sac_state == SCTP_COMM_UP) {
            id = note->sn_assoc_change.sac_assoc_id;
            up = true;
        } else if (note->sn_assoc_change.sac_state == SCTP_SHUTDOWN_COMP) {
            over = true;
        } else if (!over) {
            lost(&note->sn_assoc_change, n);
        }
        break;
    case SCTP_ADAPTATION_INDICATION:
        peer_indication = note->sn_adaptation_event.sai_adaptation_ind;
        break;
    default:
        break;
    }
}

static void receive(void)
{
    char control[256];
    struct iovec iov = {buffer, sizeof(buffer)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct sctp_sndrcvinfo info = {0};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

    if (n < 0) {
        if (errno != EAGAIN && !over)
            die("receive");
        return;
    }
    if (m.msg_flags & MSG_NOTIFICATION) {
        notified((const void *)buffer, (size_t)n);
        return;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_SNDRCV)
            memcpy(&info, CMSG_DATA(c), sizeof(info));
    if (n > 0 && !over)
        take(buffer, (uint32_t)n, &info);
}

/* --- set-up -------------------------------------------------------------------------------------------------- */

static void set(int option, const void *value, socklen_t n, const char *what)
{
    if (setsockopt(fd, IPPROTO_SCTP, option, value, n))
        die(what);
}

/* Linux 6.1 loses SCTP packets over UDP that it leaves to GSO for segmentation. */
static void stop_gso(void)
{
    struct ethtool_value off = {.cmd = ETHTOOL_SGSO};
    struct ifreq request = {.ifr_name = "eth0", .ifr_data = (void *)&off};
    int other = socket(AF_INET, SOCK_DGRAM, 0);

    if (other < 0 || ioctl(other, SIOCETHTOOL, &request))
        perror("sctp_peer: segmentation stays on");
    close(other);
}

static void open_socket(const char *own)
{
    struct sockaddr_in local = {.sin_family = AF_INET};
    struct sctp_event_subscribe events = {
        .sctp_data_io_event = 1, .sctp_association_event = 1, .sctp_shutdown_event = 1};
    struct sctp_setadaptation adaptation = {.ssb_adaptation_ind = (uint32_t)kind};
    int on = 1, large = 4 << 20;

    events.sctp_adaptation_layer_event = 1;
    fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    if (fd < 0)
        die("socket");
    inet_pton(AF_INET, own, &local.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
    set(SCTP_EVENTS, &events, sizeof(events), "SCTP_EVENTS");
    set(SCTP_ADAPTATION_LAYER, &adaptation, sizeof(adaptation), "SCTP_ADAPTATION_LAYER");
    set(SCTP_DISABLE_FRAGMENTS, &on, sizeof(on), "SCTP_DISABLE_FRAGMENTS");
    set(SCTP_NODELAY, &on, sizeof(on), "SCTP_NODELAY");
    if (!active)
        local.sin_port = htons(5001);
    if (bind(fd, (struct sockaddr *)&local, sizeof(local)))
        die("bind");
}

static void begin(const char *peer, const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

    inet_pton(AF_INET, peer, &to.sin_addr);
    if (!active && listen(fd, 1))
        die("listen");
    if (!active)
        fprintf(stderr, "listening\n");
    if (active && connect(fd, (struct sockaddr *)&to, sizeof(to)))
        die("connect");
}

/* If both ends negotiate, a HELLO and its answer come first. */
static void greet(void)
{
    if (!up || !peer_indication || started)
        return;
    if (!piece)
        find_piece();
    if (kind < 4) {
        started = true;
    } else if (active && !aws) {
        say_hello(false);
    } else if (greeted) {
        started = active || say_hello(true);
    }
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + SECONDS;
    bool ended = false, wrong = argc > 6;

    if (argc < 6)
        return 2;
    active = strcmp(argv[1], "connect") == 0;
    kind = atoi(argv[5]);
    for (uint32_t i = 0; i < OCTETS; i++)
        out[i] = octet_at(i, active);
    stop_gso();
    open_socket(argv[2]);
    begin(argv[3], argv[4]);
    while (!over && time(NULL) < end) {
        struct pollfd p = {fd, (short)(POLLIN | (started && !finished && !wrong ? POLLOUT : 0)), 0};

        poll(&p, 1, 100);
        receive();
        greet();
        if (started && wrong && !finished) {
            be_wrong(argv[6], argc > 7 ? argv[7] : NULL);
            finished = true;
        } else if (started && !finished) {
            send_more();
        }
        if (active && told && finished && !ended && !wrong) {
            transmit(NULL, 0, 0, SCTP_EOF);
            ended = true;
        }
    }
    if (!over)
        printf("too slow: up %d, peer %u, sent %u, told %d, cumulative %u, waits for %u\n", up, peer_indication, sent,
               told, cumulative, wait_for);
    else if (told && finished && !wrong)
        printf("ok\n");
    fprintf(stderr, "held %u\n", signals_held);
    return 0;
}
