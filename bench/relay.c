/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* relay.c - a path between two network namespaces: what enters a TUN device in one leaves a TUN device in the other,
 * later, if it is not lost.
 *
 * relay NAMESPACE DEVICE NAMESPACE DEVICE DELAY_US LOSS [MBIT QUEUE_US] - each way has this delay; LOSS of 100000
 * packets are lost each way. With MBIT no more passes each way, and what would wait longer than QUEUE_US for its turn
 * is lost. The devices must be there. Prints "ready"; ends on SIGTERM, and prints then what passed and what was lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 17, PACKET = 2048, BATCH = 64, CHANCES = 100000, WAIT_NS = 100000000 };

#define SECOND_NS 1000000000ULL

struct slot {
    uint64_t due_ns;
    uint32_t length;
    uint8_t octets[PACKET];
};

/* One direction. What finds all slots taken is lost, too. */
struct way {
    int in, out;
    struct slot *slot;
    uint32_t first, count;
    uint64_t passed, lost, full;
    uint64_t free_ns; /* when all that waits has had its turn */
};

static volatile sig_atomic_t stopped;
static uint64_t delay_ns, loss, mbit, queue_ns, chance = 88172645463325252ULL;

static void relay_on_signal(int number)
{
    stopped = number;
}

static uint64_t relay_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static bool is_lost(void)
{
    chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
    return (chance >> 33) % CHANCES < loss;
}

/* The turn of a packet in the queue. Returns the time at which it has passed, or 0: the queue is full. */
static uint64_t turn_ns(struct way *way, uint64_t octets, uint64_t now_ns)
{
    uint64_t start_ns = way->free_ns > now_ns ? way->free_ns : now_ns;

    if (!mbit)
        return now_ns;
    if (start_ns - now_ns > queue_ns)
        return 0;
    way->free_ns = start_ns + octets * 8000 / mbit;
    return way->free_ns;
}

static int relay_open(const char *space, const char *device)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "/run/netns/%s", space);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET)) {
        perror(path);
        exit(77);
    }
    close(fd);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request)) {
        perror(device);
        exit(77);
    }
    return fd;
}

static bool take_packets(struct way *way, uint64_t now_ns)
{
    bool took = false;

    for (int i = 0; i < BATCH; i++) {
        static uint8_t spare[PACKET];
        struct slot *slot = &way->slot[(way->first + way->count) % SLOTS];
        bool space = way->count < SLOTS;
        ssize_t n = read(way->in, space ? slot->octets : spare, PACKET);

        uint64_t out_ns;

        if (n <= 0)
            break;
        took = true;
        if (is_lost()) {
            way->lost++;
        } else if (!space || !(out_ns = turn_ns(way, (uint64_t)n, now_ns))) {
            way->full++;
        } else {
            slot->due_ns = out_ns + delay_ns;
            slot->length = (uint32_t)n;
            way->count++;
        }
    }
    return took;
}

static bool pass_packets(struct way *way, uint64_t now_ns)
{
    bool passed = false;

    while (way->count && way->slot[way->first % SLOTS].due_ns <= now_ns) {
        const struct slot *slot = &way->slot[way->first % SLOTS];

        way->passed += write(way->out, slot->octets, slot->length) == (ssize_t)slot->length;
        way->first = (way->first + 1) % SLOTS;
        way->count--;
        passed = true;
    }
    return passed;
}

static uint64_t wait_ns(const struct way *way, uint64_t now_ns, uint64_t most_ns)
{
    uint64_t due_ns = way->count ? way->slot[way->first % SLOTS].due_ns : UINT64_MAX;

    if (due_ns <= now_ns)
        return 0;
    return due_ns - now_ns < most_ns ? due_ns - now_ns : most_ns;
}

static void run_relay(struct way way[2])
{
    while (!stopped) {
        uint64_t now_ns = relay_now_ns(), most_ns = WAIT_NS;
        bool busy = false;

        for (int i = 0; i < 2; i++) {
            busy |= take_packets(&way[i], now_ns);
            busy |= pass_packets(&way[i], now_ns);
            most_ns = wait_ns(&way[i], now_ns, most_ns);
        }
        if (!busy) {
            struct pollfd ready[2] = {{way[0].in, POLLIN, 0}, {way[1].in, POLLIN, 0}};
            struct timespec wait = {.tv_nsec = (long)most_ns};

            ppoll(ready, 2, &wait, NULL);
        }
    }
}

int main(int argc, char **argv)
{
    struct way way[2];

    if (argc != 7 && argc != 9) {
        fprintf(stderr, "usage: relay NAMESPACE DEVICE NAMESPACE DEVICE DELAY_US LOSS [MBIT QUEUE_US]\n");
        return 2;
    }
    if (argc == 9) {
        mbit = strtoull(argv[7], NULL, 10);
        queue_ns = strtoull(argv[8], NULL, 10) * 1000;
    }
    delay_ns = strtoull(argv[5], NULL, 10) * 1000;
    loss = strtoull(argv[6], NULL, 10);
    int a = relay_open(argv[1], argv[2]), b = relay_open(argv[3], argv[4]);

    way[0] = (struct way){.in = a, .out = b, .slot = calloc(SLOTS, sizeof(struct slot))};
    way[1] = (struct way){.in = b, .out = a, .slot = calloc(SLOTS, sizeof(struct slot))};
    if (!way[0].slot || !way[1].slot)
        return 1;
    signal(SIGTERM, relay_on_signal);
    signal(SIGINT, relay_on_signal);
    puts("ready");
    fflush(stdout);
    run_relay(way);
    for (int i = 0; i < 2; i++) {
        printf("%s passed %" PRIu64 " lost %" PRIu64 " full %" PRIu64 "\n", i ? "back" : "there", way[i].passed,
               way[i].lost, way[i].full);
        free(way[i].slot);
    }
    return 0;
}
