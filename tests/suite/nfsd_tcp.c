/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_tcp.c - the NFS server against TCP peers that send nonsense, stop, do not read or are too many; each of its
 * limits one below, at, and one above. */
#include "rpc/clock.h"
#include "tests/suite/lib/nfsd_fake.h"

#include <poll.h>
#include <sys/resource.h>

/* --- records ----------------------------------------------------------------------------------------------------- */

static void put_mark(int fd, uint32_t word)
{
    uint32_t mark = htonl(word);

    tcp_put(fd, &mark, sizeof(mark));
}

static void hostile_records(void **state)
{
    static const uint32_t marks[] = {0x7fffffff, 0xffffffff, 0, RECORD_LAST | (RECORD_MAX + 1), RECORD_MAX + 1};

    (void)state;
    start();
    for (unsigned i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        int fd = tcp_connect(nfsd_tcp_port(nfsd));

        put_mark(fd, marks[i]);
        assert_true(tcp_is_closed(fd));
        close(fd);
    }
    /* Many fragments of one octet. */
    int fd = tcp_connect(nfsd_tcp_port(nfsd));
    uint8_t one[] = {0, 0, 0, 1, 'x'};

    for (unsigned i = 0; i <= RECORD_FRAGMENTS; i++)
        if (send(fd, one, sizeof(one), MSG_NOSIGNAL) < 0)
            break;
    assert_true(tcp_is_closed(fd));
    close(fd);
    assert_int_equal(stats_now().tcp_connections, 0);
    assert_int_equal(stats_now().calls, 0);
}

/* A record that is no call is not answered, but the next one is. */
static void no_calls(void **state)
{
    int fd;

    (void)state;
    start();
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    put_mark(fd, RECORD_LAST);
    put_mark(fd, RECORD_LAST | 4);
    put_mark(fd, 77);
    build(NFS3_GETATTR, &some_file, false, NULL);
    for (size_t n = 1; n < 40; n++) {
        message_length = n;
        if (n < 12 || n > 16)
            tcp_put_message(fd);
    }
    build(NFS3_GETATTR, &some_file, false, NULL);
    message[7] = 1; /* a reply */
    tcp_put_message(fd);
    is_served(fd);
    close(fd);
}

/* A call in many fragments and many pieces. */
static void in_pieces(void **state)
{
    struct nfs3_result result;
    int fd;

    (void)state;
    start();
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    build(NFS3_GETATTR, &some_file, false, NULL);
    for (size_t at = 0; at < message_length; at++) {
        put_mark(fd, 1 | (at + 1 == message_length ? RECORD_LAST : 0));
        tcp_put(fd, message + at, 1);
        if (at % 16 == 0)
            usleep(1000);
    }
    tcp_get_answer(fd);
    check_answer(NFS3_GETATTR, &result, NULL, 0);
    close(fd);
}

static void longest_record(void **state)
{
    static uint8_t data[4096];
    union nfs3_args args = {.write = {.fh = some_file.fh, .count = 4096, .data = data, .length = 4096}};

    (void)state;
    build(NFS3_WRITE, &args, false, NULL);
    for (int more = -1; more <= 1; more++) {
        int fd;

        attr.record_max = (uint32_t)((int)message_length - more);
        start();
        fd = tcp_connect(nfsd_tcp_port(nfsd));
        tcp_put_message(fd);
        if (more <= 0)
            tcp_get_answer(fd);
        else
            assert_true(tcp_is_closed(fd));
        close(fd);
        finish_server();
    }
}

/* --- silence ----------------------------------------------------------------------------------------------------- */

static void half_a_record(void **state)
{
    int fd, idle;

    (void)state;
    attr.idle_ms = 200;
    start();
    idle = tcp_connect(nfsd_tcp_port(nfsd));
    for (int n = 1; n <= 3; n++) {
        fd = tcp_connect(nfsd_tcp_port(nfsd));
        tcp_put(fd, "\x80\x00\x00\x64half", (size_t)(2 * n));
        assert_true(tcp_is_closed(fd));
        close(fd);
    }
    /* Between records a connection may be silent. */
    usleep(600000);
    is_served(idle);
    close(idle);
}

/* A slow call is not a silent peer. */
static void slow_calls(void **state)
{
    int fd;

    (void)state;
    attr.idle_ms = 200;
    start();
    fake.slow = fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask(fd);
    usleep(600000);
    assert_int_equal(stats_now().tcp_connections, 1);
    fake.hold = false;
    tcp_get_answer(fd);
    close(fd);
}

/* Sends a call, and so much of another that 50 octets of its message are there. */
static void put_one_and_a_half(int fd)
{
    uint8_t piece[1024];

    build(NFS3_GETATTR, &some_file, false, NULL);
    record_mark(piece, message_length);
    memcpy(piece + RECORD_MARK, message, message_length);
    build(NFS3_GETATTR, &some_file, false, NULL);
    memcpy(piece + RECORD_MARK + message_length, piece, RECORD_MARK);
    memcpy(piece + 2 * RECORD_MARK + message_length, message, 50);
    tcp_put(fd, piece, 2 * RECORD_MARK + message_length + 50);
}

/* Returns false if this thread got no processor in time, so that the server was right to end the connection. */
static bool is_unread_peer_served(void)
{
    int fd = tcp_connect(nfsd_tcp_port(nfsd));
    bool in_time;
    uint64_t until;

    fake.hold = true;
    put_one_and_a_half(fd);
    eventually(fake.held == 1);
    usleep(attr.idle_ms * 3 / 2 * 1000);
    until = clock_ms() + attr.idle_ms;
    fake.hold = false;
    tcp_get_answer(fd);
    usleep(attr.idle_ms / 2 * 1000); /* the server looks for silent peers four times in idle_ms */
    in_time = clock_ms() + attr.idle_ms / 4 < until;
    if (in_time) {
        tcp_put(fd, message + 50, message_length - 50);
        tcp_get_answer(fd);
        assert_int_equal(answer_xid(), xid);
    }
    close(fd);
    return in_time;
}

/* A peer that we did not read was not silent. */
static void unread_peers(void **state)
{
    int tries = 20;

    (void)state;
    attr.idle_ms = 1000;
    attr.calls_max = 1;
    start();
    fake.slow = true;
    while (!is_unread_peer_served())
        assert_true(--tries);
}

/* A server that got no processor for longer than idle_ms reads what arrived meanwhile before it judges its peers. */
static void late_server(void **state)
{
    uint8_t mark[RECORD_MARK];
    int fd[3];

    (void)state;
    attr.idle_ms = 200;
    start();
    fake.stall = true;
    for (int i = 0; i < 3; i++)
        fd[i] = tcp_connect(nfsd_tcp_port(nfsd));
    build(NFS3_NULL, &some_file, false, NULL);
    tcp_put_message(fd[0]);
    eventually(fake.stalled == 1);
    /* Both arrive while the server is away, so that it reads half a record in the turn in which it goes away again. */
    build(NFS3_GETATTR, &some_file, false, NULL);
    record_mark(mark, message_length);
    tcp_put(fd[1], mark, sizeof(mark));
    tcp_put(fd[1], message, 50);
    build(NFS3_NULL, &some_file, false, NULL);
    tcp_put_message(fd[2]);
    fake.released = 1;
    eventually(fake.stalled == 2);
    usleep(attr.idle_ms * 3 * 1000);
    build(NFS3_GETATTR, &some_file, false, NULL);
    tcp_put(fd[1], message + 50, message_length - 50);
    fake.released = 2;
    tcp_get_answer(fd[1]);
    fake.stall = false;
    for (int i = 0; i < 3; i++)
        close(fd[i]);
}

/* --- many calls -------------------------------------------------------------------------------------------------- */

/* Replies come as they are ready; the XID identifies them. */
static void overtaking(void **state)
{
    uint32_t slow;
    int fd;

    (void)state;
    start();
    fake.slow = fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask(fd);
    slow = xid;
    build(NFS3_NULL, &some_file, false, NULL);
    tcp_put_message(fd);
    tcp_get_answer(fd);
    assert_int_equal(answer_xid(), xid);
    fake.hold = false;
    tcp_get_answer(fd);
    assert_int_equal(answer_xid(), slow);
    close(fd);
}

/* RPCR-8.2.2.1-01: more calls in one piece than a connection may have pending: all are answered, and never are more
 * pending. */
static void pipelined(void **state)
{
    enum { CALLS = 1000 };
    static uint8_t all[CALLS * 128], seen[CALLS];
    uint32_t first = xid + 1;
    size_t n = 0;
    int fd;

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        build(NFS3_GETATTR, &some_file, false, NULL);
        record_mark(all + n, message_length);
        memcpy(all + n + RECORD_MARK, message, message_length);
        n += RECORD_MARK + message_length;
    }
    for (attr.calls_max = 1; attr.calls_max <= 64; attr.calls_max *= 8) {
        attr.workers = 64;
        start();
        fake.slow = fake.hold = true;
        fd = tcp_connect(nfsd_tcp_port(nfsd));
        tcp_put(fd, all, n);
        eventually(fake.held == attr.calls_max);
        usleep(20000);
        assert_int_equal(fake.held, attr.calls_max);
        fake.hold = false;
        memset(seen, 0, sizeof(seen));
        for (int i = 0; i < CALLS; i++) {
            tcp_get_answer(fd);
            assert_in_range(answer_xid(), first, first + CALLS - 1);
            assert_int_equal(seen[answer_xid() - first]++, 0);
        }
        close(fd);
        finish_server();
    }
}

/* --- many connections -------------------------------------------------------------------------------------------- */

static void many_connections(void **state)
{
    enum { MANY = 256 };
    int fd[MANY], more;

    (void)state;
    attr.address_max = MANY;
    attr.rest_ms = UINT32_MAX;
    start();
    for (int i = 0; i < MANY; i++)
        fd[i] = tcp_connect(i % 2 ? nfsd_mount_port(nfsd) : nfsd_tcp_port(nfsd));
    for (int i = 0; i < MANY; i++)
        is_served(fd[i]);
    eventually(stats_now().tcp_connections == MANY);
    more = tcp_connect(nfsd_tcp_port(nfsd));
    assert_true(tcp_is_closed(more));
    close(more);
    close(fd[0]);
    eventually(stats_now().tcp_connections == MANY - 1);
    fd[0] = tcp_connect(nfsd_tcp_port(nfsd));
    for (int i = 0; i < MANY; i++) {
        is_served(fd[i]);
        close(fd[i]);
    }
}

/* A connection that has been silent for a while loses its place, even in the middle of a call. */
static void place_of_the_silent(void **state)
{
    int fd[3];

    (void)state;
    attr.connections_max = attr.address_max = 2;
    attr.rest_ms = 100;
    start();
    fd[0] = tcp_connect(nfsd_tcp_port(nfsd));
    is_served(fd[0]);
    tcp_put(fd[0], "\x80", 1);
    fd[1] = tcp_connect(nfsd_tcp_port(nfsd));
    usleep(150000);
    is_served(fd[1]);
    fd[2] = tcp_connect(nfsd_tcp_port(nfsd));
    is_served(fd[2]);
    is_served(fd[1]);
    assert_true(tcp_is_closed(fd[0]));
    for (int i = 0; i < 3; i++)
        close(fd[i]);
}

static double cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* While there are no descriptors new connections wait, and the server does not spin. */
static void no_descriptors(void **state)
{
    struct rlimit before, few;
    double cpu;
    int fd;

    (void)state;
    start();
    getrlimit(RLIMIT_NOFILE, &before);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    few = (struct rlimit){(rlim_t)fd + 1, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)nfsd_tcp_port(nfsd))};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    cpu = cpu_s();
    usleep(300000);
    cpu = cpu_s() - cpu;
    assert_int_equal(stats_now().tcp_connections, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true(cpu < 0.02);
    is_served(fd);
    close(fd);
}

/* --- ends -------------------------------------------------------------------------------------------------------- */

/* The peer closes its half of the connection: its calls are answered. */
static void half_closed(void **state)
{
    int fd;

    (void)state;
    start();
    fake.slow = fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask(fd);
    ask(fd);
    shutdown(fd, SHUT_WR);
    eventually(fake.held == 2);
    fake.hold = false;
    tcp_get_answer(fd);
    tcp_get_answer(fd);
    assert_true(tcp_is_closed(fd));
    close(fd);
    assert_int_equal(stats_now().tcp_connections, 0);
}

/* A server that is stopped answers the calls that it has begun. */
static void stopped_at_work(void **state)
{
    int fd;

    (void)state;
    start();
    fake.slow = fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask(fd);
    eventually(fake.held == 1);
    nfsd_stop(nfsd);
    usleep(20000);
    finish_server();
    tcp_get_answer(fd);
    assert_int_equal(answer_xid(), xid);
    assert_true(tcp_is_closed(fd));
    close(fd);
}

static void port_taken(void **state)
{
    char error[EXPORT_TEXT];
    struct nfsd *second;

    (void)state;
    start();
    attr.tcp_port = nfsd_tcp_port(nfsd);
    second = nfsd_open(&attr, error);
    assert_null(second);
    assert_int_equal(errno, EADDRINUSE);
    assert_non_null(strstr(error, "NFS over TCP"));
    attr.tcp_port = 0;
    attr.rdma_port = nfsd_rdma_port(nfsd);
    assert_null(nfsd_open(&attr, error));
    assert_non_null(strstr(error, "NFS over RDMA"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hostile_records), TEST(no_calls),    TEST(in_pieces),        TEST(longest_record),
        TEST(half_a_record),   TEST(slow_calls),  TEST(unread_peers),     TEST(late_server),
        TEST(overtaking),      TEST(pipelined),   TEST(many_connections), TEST(place_of_the_silent),
        TEST(no_descriptors),  TEST(half_closed), TEST(stopped_at_work),  TEST(port_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
