/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* repair.c - sockets that are not taken over, and a process that is killed while it takes one over. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/ipv6.h>
#include <linux/seccomp.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/container.h"
#include "tcp/io/hindrance.h"
#include "tcp/io/repair.h"
#include "tests/suite/lib/network.h"

enum { TIME_WAIT = 6, LOOKS = 500, LOOK_US = 10000, AO_INFO = 40, MORE = 4096 };

/* getsockopt() replaces the C library's function. It answers for a kernel that has the option `plays`. */
static int plays;

static int play_ao(const void *value, socklen_t length)
{
    const uint8_t *octets = value;

    /* Linux takes any length from one octet to a page, in which all that it does not know is 0. */
    for (socklen_t i = 0; i < length; i++)
        if (octets[i])
            return EINVAL;
    return length && length <= MORE ? 0 : EINVAL;
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict length)
{
    if (level != IPPROTO_TCP || !plays || name != plays)
        return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
    if (name == TCP_ULP) {
        *length = *length < sizeof("tls") ? *length : sizeof("tls");
        memcpy(value, "tls", *length);
        return 0;
    }
    errno = play_ao(value, *length);
    return errno ? -1 : 0;
}

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

static int listening(struct sockaddr_in *addr)
{
    socklen_t length = sizeof(*addr);
    int fd = new_socket();

    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &length), 0);
    return fd;
}

/* What does it say of a connection whose socket was given this option? */
static const char *said_of(int level, int name, const void *value, socklen_t length)
{
    struct sockaddr_in addr;
    int listener = listening(&addr), fd = new_socket();
    const char *said;

    assert_int_equal(setsockopt(fd, level, name, value, length), 0);
    if (name == TCP_MD5SIG && level == IPPROTO_TCP)
        assert_int_equal(setsockopt(listener, level, name, value, length), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(write(fd, "", 1), 1);
    said = hindrance_of(fd);
    close(fd);
    close(listener);
    return said;
}

/* Options that the kernel alone implements are found. */
static void hindrances(void **state)
{
    struct tcp_md5sig key = {.tcpm_keylen = 3, .tcpm_key = "key"};
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, tos = 0x28, ect = 2, rate = 1000000, unlimited = -1, ttl = 255;
    const uint8_t no_operations[4] = {1, 1, 1, 1};

    (void)state;
    memcpy(&key.tcpm_addr, &addr, sizeof(addr));
    assert_null(said_of(IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
    assert_null(said_of(IPPROTO_IP, IP_TOS, &ect, sizeof(ect)));
    assert_null(said_of(IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)));
    assert_null(said_of(SOL_SOCKET, SO_MAX_PACING_RATE, &unlimited, sizeof(unlimited)));
    assert_string_equal(said_of(SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)), "SO_MAX_PACING_RATE");
    assert_string_equal(said_of(SOL_SOCKET, SO_PRIORITY, &one, sizeof(one)), "SO_PRIORITY");
    assert_string_equal(said_of(IPPROTO_IP, IP_OPTIONS, no_operations, sizeof(no_operations)), "IP_OPTIONS");
    assert_string_equal(said_of(SOL_SOCKET, SO_MARK, &one, sizeof(one)), "SO_MARK");
    assert_string_equal(said_of(SOL_SOCKET, SO_BINDTODEVICE, "lo", 3), "SO_BINDTODEVICE");
    assert_string_equal(said_of(IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), "IP_TOS or IPV6_TCLASS");
    assert_string_equal(said_of(IPPROTO_IP, IP_MINTTL, &one, sizeof(one)), "IP_MINTTL or IPV6_MINHOPCOUNT");
    assert_string_equal(said_of(IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)), "TCP_MD5SIG");
}

/* Where the kernel's TCP takes part in explicit congestion notification it sets the bits for it in IP_TOS itself, with
 * the first octet. */
static void with_ecn(void **state)
{
    int one = 1, fd = open("/proc/sys/net/ipv4/tcp_ecn", O_WRONLY | O_CLOEXEC);

    (void)state;
    if (fd < 0)
        skip();
    assert_int_equal(write(fd, "1", 1), 1);
    assert_null(said_of(IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
    assert_int_equal(write(fd, "2", 1), 1);
    close(fd);
}

/* What is not in every kernel is played here. */
static void newer_hindrances(void **state)
{
    int one = 1;

    (void)state;
    plays = AO_INFO;
    assert_string_equal(said_of(IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_AO_ADD_KEY");
    plays = TCP_ULP;
    assert_string_equal(said_of(IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_ULP");
    plays = 0;
    assert_null(said_of(IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
}

/* Gives the loopback device a link-local address. */
static bool local_address(struct sockaddr_in6 *addr)
{
    struct in6_ifreq request = {.ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex("lo")};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done;

    request.ifr6_addr.s6_addr[0] = 0xfe;
    request.ifr6_addr.s6_addr[1] = 0x80;
    request.ifr6_addr.s6_addr[15] = 1;
    *addr = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = request.ifr6_addr};
    addr->sin6_scope_id = (uint32_t)request.ifr6_ifindex;
    if (fd < 0)
        return false;
    done = !ioctl(fd, SIOCSIFADDR, &request) || errno == EEXIST;
    close(fd);
    return done;
}

/* A socket at a link-local address belongs to a device, and is asked for by it. */
static void keys_at_a_device(void **state)
{
    struct tcp_md5sig key = {.tcpm_keylen = 3, .tcpm_key = "key"};
    int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0),
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 addr;
    socklen_t length = sizeof(addr);
    int looks = LOOKS;

    (void)state;
    if (listener < 0 || !local_address(&addr))
        skip();
    memcpy(&key.tcpm_addr, &addr, sizeof(addr));
    while (bind(listener, (struct sockaddr *)&addr, sizeof(addr))) { /* the kernel is not done with the new address */
        assert_true(errno == EADDRNOTAVAIL && looks--);
        usleep(LOOK_US);
    }
    assert_int_equal(setsockopt(listener, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &length), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_string_equal(hindrance_of(fd), "TCP_MD5SIG");
    close(fd);
    close(listener);
}

/* The time to live is the socket's, of the family that its packets are of: a peer may take no others. */
static void hops(void **state)
{
    int v4 = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int most = 255, few = 3;

    (void)state;
    assert_in_range(repair_hops(v4, true), 1, 254);
    assert_int_equal(setsockopt(v4, IPPROTO_IP, IP_TTL, &most, sizeof(most)), 0);
    assert_int_equal(repair_hops(v4, true), 255);
    if (v6 >= 0) {
        assert_int_equal(setsockopt(v6, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &most, sizeof(most)), 0);
        assert_int_equal(setsockopt(v6, IPPROTO_IP, IP_TTL, &few, sizeof(few)), 0);
        assert_int_equal(repair_hops(v6, false), 255);
        assert_int_equal(repair_hops(v6, true), 3);
        close(v6);
    }
    close(v4);
}

/* From here on the process is killed by the kernel when it sets this option. */
static void be_killed_at(int level, int name)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)level, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)name, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {countof(steps), steps};
    struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(2);
}

static void take_over_and_die(const struct sockaddr_in *addr, int level, int name)
{
    struct repair_state taken;
    uint8_t octets[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
        _exit(3);
    be_killed_at(level, name);
    (void)repair_take(fd, &taken, octets, sizeof(octets));
    _exit(1);
}

/* Has the kernel a socket at this port, other than what a clean end leaves? */
static bool is_left(uint16_t port)
{
    unsigned local, state;
    char line[256];
    bool left = false;
    FILE *f = fopen("/proc/self/net/tcp", "r");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        left |= sscanf(line, " %*u: %*x:%x %*x:%*x %x", &local, &state) == 2 && local == port && state != TIME_WAIT;
    (void)fclose(f);
    return left;
}

/* Whenever the process is killed: when the peer has closed its end, nothing stays behind. */
static void killed(void **state)
{
    static const struct {
        int level, name;
    } steps[] = {
        {SOL_SOCKET, SO_KEEPALIVE},     {IPPROTO_TCP, TCP_QUICKACK},     {IPPROTO_TCP, TCP_REPAIR},
        {SOL_SOCKET, SO_ATTACH_FILTER}, {IPPROTO_TCP, TCP_REPAIR_QUEUE},
    };

    (void)state;
    for (size_t i = 0; i < countof(steps); i++) {
        struct sockaddr_in addr, peer;
        socklen_t length = sizeof(peer);
        int listener = listening(&addr), fd, status, looks = LOOKS;
        pid_t child = fork();

        if (!child)
            take_over_and_die(&addr, steps[i].level, steps[i].name);
        fd = accept(listener, (struct sockaddr *)&peer, &length);
        assert_true(fd >= 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
        close(fd);
        close(listener);
        while (is_left(ntohs(peer.sin_port)) && looks--)
            usleep(LOOK_US);
        assert_false(is_left(ntohs(peer.sin_port)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hindrances), cmocka_unit_test(newer_hindrances),
                                       cmocka_unit_test(with_ecn),   cmocka_unit_test(keys_at_a_device),
                                       cmocka_unit_test(hops),       cmocka_unit_test(killed)};
    int error = network_own() ? repair_allowed() : -ENOSYS;

    if (error) {
        printf("connections cannot be taken over here: %s\n", strerror(-error));
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
