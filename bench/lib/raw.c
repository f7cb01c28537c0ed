/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw.c - one thread writes packets to a TUN device, another reads them from a second. */
#include "bench/lib/raw.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/container.h"
#include "base/spin.h"
#include "bench/lib/path.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"
#include "tcp/packet.h"

enum { SPAN_US = 300000, LOOK_US = 5, PORT = 700, OPTIONS = 32, HEADS = 40 + OPTIONS, CHECKSUM_AT = 16 };

struct raw {
    int from, to;
    uint32_t ahead; /* packets */
    uint64_t end_us;
    _Atomic uint64_t written, read;
    atomic_bool over;
};

static int raw_open(uint32_t net, uint32_t mtu)
{
    struct sockaddr_in own = path_address(net, 1, 0);
    int fd = tun_set_up(NULL, (struct sockaddr *)&own, 24, mtu, TUN_CHECKSUMS, NULL);

    if (fd < 0) {
        errno = -fd;
        path_die("tun_set_up");
    }
    return fd;
}

static void raw_wait(void)
{
    for (uint64_t end_us = path_now_us() + LOOK_US; path_now_us() < end_us;)
        spin_pause();
}

static void *read_all(void *of)
{
    static uint8_t packet[TUN_PACKET_MAX];
    struct iovec whole = {packet, sizeof(packet)};
    struct tun_note note;
    struct raw *raw = of;

    path_pin(1);
    while (!raw->over)
        if (tun_recv(raw->to, &whole, 1, &note) > HEADS)
            raw->read++;
        else
            raw_wait();
    return NULL;
}

static struct utcp_name raw_name(uint32_t net)
{
    struct utcp_name name = {.ip = {[10] = 0xff, [11] = 0xff}, .port = PORT};
    struct sockaddr_in address = path_address(net, 2, PORT);

    memcpy(name.ip + 12, &address.sin_addr, sizeof(address.sin_addr));
    return name;
}

static void write_all(struct raw *raw, uint32_t mtu)
{
    static const uint8_t payload[TUN_PACKET_MAX];
    struct utcp_name from = raw_name(1), to = raw_name(2);
    struct utcp_head head = {.flags = UTCP_ACK, .options = OPTIONS};
    struct utcp_packet p = {.span = {{payload, mtu - HEADS}}, .spans = 1, .length = mtu - HEADS, .partial = true};
    struct tun_note note = {.partial = true, .offset = CHECKSUM_AT};
    struct span span[2];

    memset(head.option, 1, OPTIONS);
    utcp_packet_write(&p, &from, &to, &head);
    note.start = (uint16_t)p.ip_length;
    span[0] = (struct span){p.head, p.head_length};
    span[1] = p.span[0];
    while (path_now_us() < raw->end_us)
        if (raw->written - raw->read >= raw->ahead)
            raw_wait();
        else if (!tun_send(raw->from, span, countof(span), &note))
            raw->written++;
}

double raw_goodput(uint32_t mtu, uint32_t ahead)
{
    struct raw raw = {.ahead = ahead / mtu};
    pthread_t reader;
    uint64_t read;

    raw.from = raw_open(1, mtu);
    raw.to = raw_open(2, mtu);
    raw.end_us = path_now_us() + SPAN_US;
    if (pthread_create(&reader, NULL, read_all, &raw))
        path_die("pthread_create");
    path_pin(0);
    write_all(&raw, mtu);
    read = raw.read;
    raw.over = true;
    pthread_join(reader, NULL);
    path_unpin();
    close(raw.from);
    close(raw.to);
    return (double)read * (mtu - HEADS) * 8 / SPAN_US / 1e3;
}
