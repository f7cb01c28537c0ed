/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_capture.c - reads a pcap file of Ethernet frames, IPv4 or IPv6, UDP. */
#include "tests/lib/roce_capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "roce/bth.h"

enum {
    PCAP_HEAD = 24,
    RECORD_HEAD = 16,
    FRAME_MAX = 65536,
    ETHERNET = 14,
    PCAP_MAGIC = 0xd4c3b2a1 /* little endian */
};

static const uint8_t *take_ip(struct roce_captured *packet, const uint8_t *p)
{
    uint16_t type = get16(p + ETHERNET - 2);
    const uint8_t *ip = p + ETHERNET;

    packet->path.ipv6 = type == 0x86dd;
    if (packet->path.ipv6) {
        assert_int_equal(ip[6], 17);
        memcpy(packet->path.source, ip + 8, 16);
        memcpy(packet->path.destination, ip + 24, 16);
        return ip + 40;
    }
    assert_int_equal(type, 0x0800);
    assert_int_equal(ip[0], 0x45);
    assert_int_equal(ip[9], 17);
    assert_int_equal(get16(ip + 6), 0x4000);
    packet->identification = get16(ip + 4);
    memcpy(packet->path.source, ip + 12, 4);
    memcpy(packet->path.destination, ip + 16, 4);
    return ip + 20;
}

static void take_frame(const uint8_t *p, uint32_t n, void (*take)(const struct roce_captured *packet))
{
    struct roce_captured packet = {.identification = 0};
    const uint8_t *udp = take_ip(&packet, p);

    packet.path.source_port = get16(udp);
    packet.path.destination_port = get16(udp + 2);
    assert_int_equal(packet.path.destination_port, ROCE_PORT);
    packet.at = udp + 8;
    packet.octets = get16(udp + 4) - 8u;
    assert_true(packet.at + packet.octets <= p + n);
    take(&packet);
}

unsigned roce_capture_each(const char *name, void (*take)(const struct roce_captured *packet))
{
    static uint8_t frame[FRAME_MAX];
    uint8_t head[PCAP_HEAD];
    char path[512];
    unsigned packets = 0;
    FILE *file;

    snprintf(path, sizeof(path), RDDP_SOURCE_DIR "/tests/captures/roce/%s.pcap", name);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, PCAP_HEAD, file), PCAP_HEAD);
    assert_int_equal(get32(head), PCAP_MAGIC);
    while (fread(head, 1, RECORD_HEAD, file) == RECORD_HEAD) {
        uint32_t n = get32le(head + 8);

        assert_true(n == get32le(head + 12) && n <= FRAME_MAX);
        assert_int_equal(fread(frame, 1, n, file), n);
        take_frame(frame, n, take);
        packets++;
    }
    fclose(file);
    return packets;
}
