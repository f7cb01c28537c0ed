/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.c - failures, addresses and the clock. */
#include "bench/lib/path.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

_Noreturn void path_die(const char *what)
{
    perror(what);
    exit(1);
}

struct sockaddr_in path_address(uint32_t net, uint32_t host, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(10U << 24 | net << 16 | host), .sin_port = htons(port)};
}

static cpu_set_t allowed;

void path_pin(unsigned processor)
{
    cpu_set_t one;

    if (!CPU_COUNT(&allowed) && sched_getaffinity(0, sizeof(allowed), &allowed))
        path_die("sched_getaffinity");
    processor %= (unsigned)CPU_COUNT(&allowed);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && !processor--) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
        }
    if (sched_setaffinity(0, sizeof(one), &one))
        path_die("sched_setaffinity");
}

void path_unpin(void)
{
    if (CPU_COUNT(&allowed) && sched_setaffinity(0, sizeof(allowed), &allowed))
        path_die("sched_setaffinity");
}

uint64_t path_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
