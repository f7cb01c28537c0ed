/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.c - failures, addresses and the clock. */
#include "bench/lib/path.h"

#include <arpa/inet.h>
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

uint64_t path_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
