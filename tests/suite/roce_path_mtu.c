/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_path_mtu.c - the largest path MTU that fits into the packets of a route, one octet more and one less. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <rddp/rddp.h>

#include "tests/suite/lib/network.h"

/* Octets of a packet beside the payload: IP, UDP, BTH, RETH, immediate data, ICRC. */
enum { HEADS_IPV4 = 20 + 8 + 12 + 16 + 4 + 4, HEADS_IPV6 = HEADS_IPV4 + 20 };

static const struct sockaddr_in ipv4 = {.sin_family = AF_INET};
static const struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

static void set_mtu_of_loopback(int mtu)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_mtu = mtu};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCSIFMTU, &request), 0);
    close(fd);
}

static int mtu_of_ipv4(const char *host)
{
    struct sockaddr_in address = ipv4;

    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    return rddp_path_mtu((const struct sockaddr *)&address, sizeof(address));
}

static int mtu_of_ipv6(void)
{
    return rddp_path_mtu((const struct sockaddr *)&ipv6, sizeof(ipv6));
}

static void it_fits_into_packets_of_the_route(void **state)
{
    (void)state;
    for (int mtu = 4096; mtu >= 512; mtu /= 2) {
        set_mtu_of_loopback(mtu + HEADS_IPV4);
        assert_int_equal(mtu_of_ipv4("127.0.0.1"), mtu);
        set_mtu_of_loopback(mtu + HEADS_IPV4 - 1);
        assert_int_equal(mtu_of_ipv4("127.0.0.1"), mtu / 2);
    }
    set_mtu_of_loopback(65536);
    assert_int_equal(mtu_of_ipv4("127.0.0.1"), 4096);
}

/* IPv6 needs packets of 1280 octets, and leaves a device that becomes narrower: this test comes first. */
static void it_fits_into_packets_of_ipv6(void **state)
{
    (void)state;
    for (int mtu = 4096; mtu >= 2048; mtu /= 2) {
        set_mtu_of_loopback(mtu + HEADS_IPV6);
        assert_int_equal(mtu_of_ipv6(), mtu);
        set_mtu_of_loopback(mtu + HEADS_IPV6 - 1);
        assert_int_equal(mtu_of_ipv6(), mtu / 2);
    }
    set_mtu_of_loopback(65536);
}

static void errors_say_what_is_wrong(void **state)
{
    const struct sockaddr other = {.sa_family = AF_UNIX};
    struct sockaddr_storage large = {.ss_family = AF_INET};

    (void)state;
    assert_int_equal(mtu_of_ipv4("192.0.2.1"), -ENETUNREACH);
    assert_int_equal(rddp_path_mtu(&other, sizeof(other)), -EAFNOSUPPORT);
    assert_int_equal(rddp_path_mtu((const struct sockaddr *)&ipv4, sizeof(ipv4) - 1), -EINVAL);
    assert_int_equal(rddp_path_mtu((const struct sockaddr *)&ipv6, sizeof(ipv6) - 1), -EINVAL);
    assert_int_equal(rddp_path_mtu((const struct sockaddr *)&large, sizeof(large) + 1), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_fits_into_packets_of_ipv6),
        cmocka_unit_test(it_fits_into_packets_of_the_route),
        cmocka_unit_test(errors_say_what_is_wrong),
    };

    if (!network_alone()) {
        puts("no namespace with addresses of its own here");
        return 77;
    }
    return cmocka_run_group_tests_name("roce_path_mtu", tests, NULL, NULL);
}
