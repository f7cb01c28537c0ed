/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.c - failures, addresses, the clock, and network namespaces. */
#include "bench/lib/path.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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

static int new_namespace(void)
{
    int fd = unshare(CLONE_NEWNET) ? -1 : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        path_die("network namespace");
    return fd;
}

static void run_ip(const char *command)
{
    if (system(command))
        path_die(command);
}

void path_make_namespaces(uint32_t net, uint32_t mtu, int space[2])
{
    char command[256];

    space[1] = new_namespace();
    space[0] = new_namespace();
    snprintf(command, sizeof(command),
             "set -e; ip link add here mtu %u type veth peer name there mtu %u netns /proc/%d/fd/%d; "
             "ip addr add 10.%u.0.1/24 dev here; ip link set here up",
             mtu, mtu, getpid(), space[1], net);
    run_ip(command);
    if (setns(space[1], CLONE_NEWNET))
        path_die("setns");
    snprintf(command, sizeof(command), "ip addr add 10.%u.0.2/24 dev there && ip link set there up", net);
    run_ip(command);
}
