/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.c - what UDP carries with no transport above it, both ends polling.
 *     udp sink ADDRESS PORT            answers batches, until it is ended
 *     udp source ADDRESS PORT MTU SECONDS WALK
 *     udp echo ADDRESS PORT            answers packets, until it is ended
 *     udp ping ADDRESS PORT OCTETS SECONDS
 * Batches are those of RoCE: packets of the largest path MTU of InfiniBand that fits, as many as the kernel cuts. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/lib/ends.h"
#include "bench/lib/raw_udp.h"
#include "loop/udp.h"
#include "roce/bth.h"

enum { AHEAD = 64, ANSWER = 16, UDP_HEADS = 28, SAMPLES_MAX = 1 << 20 };

static const _Atomic bool never;

static struct sockaddr_in address_of(const char *address, const char *port)
{
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

    if (inet_pton(AF_INET, address, &result.sin_addr) != 1)
        ends_fail(address, -EINVAL);
    return result;
}

static void say_ready(void)
{
    printf("ready\n");
    fflush(stdout);
}

static void source(const struct sockaddr_in *to, uint32_t mtu, double seconds, size_t walk)
{
    uint32_t payload = BTH_MTU_MAX, space = (mtu < UINT16_MAX ? mtu : UINT16_MAX) - UDP_HEADS - BTH_HEAD_MAX, each, n;
    struct sockaddr_in own = {.sin_family = AF_INET};
    double batches;

    while (payload > space)
        payload /= 2;
    each = payload + BTH_OCTETS;
    n = UDP_BATCH_OCTETS / each < UDP_BATCH_PACKETS ? UDP_BATCH_OCTETS / each : UDP_BATCH_PACKETS;
    batches = raw_udp_batches(&own, to, each, n, AHEAD, walk, seconds);
    printf("{\"bytes_per_second\": %.6g}\n", batches * each * n / seconds);
}

/* --- one packet at a time ----------------------------------------------------------------------------------------- */

static int udp_socket(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (fd < 0)
        ends_fail("socket", 0);
    return fd;
}

_Noreturn static void echo(const struct sockaddr_in *own)
{
    static uint8_t buffer[UINT16_MAX];
    struct sockaddr_in from;
    int fd = udp_socket();

    if (bind(fd, (const struct sockaddr *)own, sizeof(*own)))
        ends_fail("bind", 0);
    say_ready();
    for (;;) {
        socklen_t length = sizeof(from);
        ssize_t n = recvfrom(fd, buffer, sizeof(buffer), MSG_DONTWAIT, (struct sockaddr *)&from, &length);

        if (n > 0)
            sendto(fd, buffer, (size_t)n, 0, (struct sockaddr *)&from, length);
    }
}

static void ping(const struct sockaddr_in *to, uint32_t octets, double seconds)
{
    static double half_us[SAMPLES_MAX];
    static uint8_t buffer[UINT16_MAX];
    int fd = udp_socket();
    uint64_t end_ns;
    size_t n = 0;

    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
        ends_fail("connect", 0);
    end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t before_ns; (before_ns = ends_now_ns()) < end_ns && n < SAMPLES_MAX;) {
        if (send(fd, buffer, octets, 0) < 0)
            ends_fail("send", 0);
        if (raw_udp_await(fd, buffer, sizeof(buffer), before_ns))
            half_us[n++] = (double)(ends_now_ns() - before_ns) / 2e3;
    }
    printf("{\"p50_us\": %.4g, \"p99_us\": %.4g}\n", ends_at(half_us, n, 0.5), ends_at(half_us, n, 0.99));
}

int main(int argc, char **argv)
{
    struct sockaddr_in address;

    if (argc < 4)
        return 2;
    address = address_of(argv[2], argv[3]);
    if (!strcmp(argv[1], "sink"))
        raw_udp_answer(&address, ANSWER, 1, say_ready, &never);
    else if (!strcmp(argv[1], "echo"))
        echo(&address);
    else if (!strcmp(argv[1], "source") && argc == 7)
        source(&address, (uint32_t)atoi(argv[4]), atof(argv[5]), (size_t)atoll(argv[6]));
    else if (!strcmp(argv[1], "ping") && argc == 6)
        ping(&address, (uint32_t)atoi(argv[4]), atof(argv[5]));
    else
        return 2;
    return 0;
}
