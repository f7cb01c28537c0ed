/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_strangers.c - what those who were never spoken to make an rsocket for datagrams do: each comes from an
 * address of its own, as one who forges them does. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/verbs/lib/datagram_ends.h"

enum { STRANGERS = 200, GREETING = 16, DATA = 0, CONTROL = 7 };

static atomic_int reads; /* of all addresses of the host, which cost most of what a call can */

__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **list)
{
    static int (*real)(struct ifaddrs **);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getifaddrs");
    reads++;
    return real(list);
}

/* A greeting by UDP, from 127.1.0.0 and what follows. Returns the stranger. */
static int greet(uint32_t number, uint8_t what, const union address *to)
{
    const struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f010001 + number)};
    uint8_t octets[GREETING + 1] = {0x55, 0x55, 0x55, 0x55, 4, what, GREETING, 0, 0, 0xc0, 0, 1, 127, 0, 0, 1, 'x'};
    size_t n = what == DATA ? sizeof(octets) : GREETING;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(sendto(fd, octets, n, 0, (const struct sockaddr *)&to->v4, sizeof(to->v4)), (ssize_t)n);
    return fd;
}

/* A greeting that is not awaited changes nothing; the way to a sender is looked for when it is answered. */
static void greetings(void **state)
{
    union address name;
    int fd = datagram_bound(AF_INET, &name), before = reads;
    char octets[8];

    (void)state;
    for (uint32_t i = 0; i < STRANGERS; i++) {
        close(greet(i, CONTROL, &name));
        assert_int_equal(datagram_events(fd, POLLIN, 0), 0);
        close(greet(STRANGERS + i, DATA, &name));
        assert_int_equal(datagram_events(fd, POLLIN, DATAGRAM_WAIT_MS), POLLIN);
        assert_int_equal(rrecv(fd, octets, sizeof(octets), 0), 1);
    }
    assert_int_equal(reads, before);
    assert_int_equal(rclose(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(greetings)};

    return cmocka_run_group_tests_name("rsocket_strangers", tests, NULL, NULL);
}
