/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_peers.c - unwanted peers of the NFS server: those that no export allows, and those that occupy places without
 * using them. */
#include "tests/suite/lib/nfsd_fake.h"

#include <poll.h>
#include <sys/resource.h>

static char lines[64][256];
static atomic_uint line_count;

static void note(void *user, const char *line)
{
    assert_ptr_equal(user, lines);
    if (line_count < 64)
        strncpy(lines[line_count], line, sizeof(lines[0]) - 1);
    line_count++;
}

static struct requester *rdma_connect(int wait_ms)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)nfsd_rdma_port(nfsd))};
    struct requester_attr requester_attr;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    requester_attr_init(&requester_attr);
    return requester_open((struct sockaddr *)&addr, sizeof(addr), &requester_attr, wait_ms);
}

static bool rdma_is_served(struct requester *requester)
{
    static uint8_t reply[512];
    struct request q = {.call = message, .reply = reply, .reply_size = sizeof(reply), .timeout_ms = WAIT_MS};

    build(NFS3_GETATTR, &some_file, false, NULL);
    q.call_length = message_length;
    requester_start(requester, &q);
    while (q.state != REQUEST_DONE)
        requester_wait(requester, WAIT_MS);
    return q.status == REQUEST_OK;
}

/* --- strangers ----------------------------------------------------------------------------------------------- */

/* An export for other clients than us. */
static void for_others(struct export *others)
{
    static const char *const clients[] = {"10.0.0.0/8", "fd77::1", NULL};
    struct export_attr export_attr;
    char error[EXPORT_TEXT];

    export_attr_init(&export_attr);
    export_attr.clients = clients;
    assert_int_equal(export_open(others, "/", &export_attr, error), 0);
    export[0].clients = others->clients;
    attr.log = note;
    attr.user = lines;
    line_count = 0;
}

/* MOUNT says no; NFS does not answer at all, over RDMA not even with a connection. */
static void strangers(void **state)
{
    struct requester *requester;
    struct rpc_reply reply;
    struct export others;
    struct coder c;
    int fd;

    (void)state;
    for_others(&others);
    start();
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask(fd);
    tcp_get_answer(fd);
    coder_read(&c, answer, answer_length);
    rpc_code_reply(&c, &reply);
    assert_int_equal(reply.result, RPC_AUTH_ERROR);
    assert_int_equal(reply.auth_status, RPC_AUTH_TOOWEAK);
    assert_int_equal(fake.done, 0);
    build(NFS3_NULL, &some_file, false, NULL);
    tcp_put_message(fd);
    tcp_get_answer(fd);
    assert_int_equal(answer_xid(), xid);
    assert_int_equal(stats_now().tcp_connections, 0);
    assert_int_equal(line_count, 1);
    assert_string_equal(lines[0], "refused 127.0.0.1: no export allows this address");
    requester = rdma_connect(2000);
    assert_null(requester);
    assert_int_equal(stats_now().rdma_connections, 0);
    /* Their WRITE is not even read. */
    build(NFS3_WRITE, &(union nfs3_args){.write = {.fh = some_file.fh, .count = 8192, .length = 8192, .data = answer}},
          false, NULL);
    tcp_put_message(fd);
    assert_true(tcp_is_closed(fd));
    close(fd);
    finish_server();
    export_close(&others);
    export[0].clients = (struct clients){0};
}

/* Strangers have their own places, in which one gives way to the next: one less, as many, one more. */
static void many_strangers(void **state)
{
    int fd[NFSD_UNADMITTED_MAX + 1];
    struct export others;

    (void)state;
    for_others(&others);
    start();
    for (int i = 0; i <= NFSD_UNADMITTED_MAX; i++) {
        fd[i] = tcp_connect(nfsd_mount_port(nfsd));
        build(NFS3_NULL, &some_file, false, NULL);
        tcp_put_message(fd[i]);
        tcp_get_answer(fd[i]);
    }
    assert_true(tcp_is_closed(fd[0]));
    build(NFS3_NULL, &some_file, false, NULL);
    tcp_put_message(fd[1]);
    tcp_get_answer(fd[1]);
    for (int i = 0; i <= NFSD_UNADMITTED_MAX; i++)
        close(fd[i]);
    finish_server();
    export_close(&others);
    export[0].clients = (struct clients){0};
}

/* The number of log lines is limited however many come, and omitted lines are counted. */
static void lines_are_limited(void **state)
{
    struct export others;

    (void)state;
    for_others(&others);
    start();
    for (int i = 0; i < RPC_LOG_BURST + 10; i++) {
        int fd = tcp_connect(nfsd_mount_port(nfsd));

        build(NFS3_NULL, &some_file, false, NULL);
        tcp_put_message(fd);
        tcp_get_answer(fd);
        close(fd);
    }
    /* One more line is earned now and then. */
    assert_in_range(line_count, RPC_LOG_BURST, RPC_LOG_BURST + 9);
    finish_server();
    export_close(&others);
    export[0].clients = (struct clients){0};
}

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Over RDMA: idle peers have taken all places, and one more comes. */
static void places_over_rdma(void **state)
{
    enum { MAX = 3 };
    struct requester *requester[MAX + 1];

    (void)state;
    attr.connections_max = attr.address_max = MAX;
    attr.rest_ms = 100;
    start();
    for (int i = 0; i < MAX; i++) {
        requester[i] = rdma_connect(WAIT_MS);
        if (!requester[i])
            fail_msg("connection %d: %s", i, strerror(errno));
    }
    eventually(stats_now().rdma_connections == MAX);
    usleep(150000);
    requester[MAX] = rdma_connect(WAIT_MS);
    assert_non_null(requester[MAX]);
    assert_true(rdma_is_served(requester[MAX]));
    eventually(stats_now().rdma_connections == MAX);
    /* A peer that gave way reconnects when it has a call. */
    for (int i = 0; i < MAX; i++) {
        usleep(150000);
        assert_true(rdma_is_served(requester[i]));
    }
    for (int i = 0; i <= MAX; i++)
        requester_close(requester[i]);
}

/* As many clients at once over RDMA as over TCP, each with a pending call; one more finds no place. */
static void many_over_rdma(void **state)
{
    enum { MANY = 256, FDS = 10 * MANY };
    static struct requester *requester[MANY];
    static struct request q[MANY];
    static uint8_t call[MANY][256], reply[MANY][512];
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < FDS)
        skip(); /* the descriptors of both ends belong to this process */
    limit.rlim_cur = limit.rlim_cur < FDS ? FDS : limit.rlim_cur;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    attr.credits = 4;
    attr.connections_max = attr.address_max = MANY;
    attr.rest_ms = UINT32_MAX;
    start();
    for (int i = 0; i < MANY; i++) {
        requester[i] = rdma_connect(WAIT_MS);
        assert_non_null(requester[i]);
        build(NFS3_GETATTR, &some_file, false, NULL);
        memcpy(call[i], message, message_length);
        q[i] = (struct request){.call = call[i], .call_length = message_length, .reply = reply[i], .reply_size = 512};
        q[i].timeout_ms = 10 * WAIT_MS;
        requester_start(requester[i], &q[i]);
    }
    assert_null(rdma_connect(WAIT_MS));
    assert_int_equal(errno, ECONNREFUSED);
    for (int i = 0; i < MANY; i++) {
        while (q[i].state != REQUEST_DONE)
            requester_wait(requester[i], WAIT_MS);
        assert_int_equal(q[i].status, REQUEST_OK);
    }
    eventually(stats_now().rdma_connections == MANY);
    eventually(stats_now().calls == MANY);
    for (int i = 0; i < MANY; i++)
        requester_close(requester[i]);
}

static int connect_from(uint8_t host)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 | host)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)nfsd_tcp_port(nfsd))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Two addresses have all places, and are never silent for long: a third gets one of whoever has more. */
static void places_are_shared(void **state)
{
    enum { MAX = 5, FROM = 2 };
    static const uint8_t host[MAX] = {FROM, FROM, FROM, FROM + 1, FROM + 1};
    int fd[MAX], more;
    unsigned closed = 0;

    (void)state;
    attr.connections_max = MAX;
    attr.address_max = 3;
    attr.rest_ms = UINT32_MAX;
    start();
    for (int i = 0; i < MAX; i++) {
        fd[i] = connect_from(host[i]);
        is_served(fd[i]);
    }
    more = connect_from(FROM); /* beyond its own limit */
    assert_true(tcp_is_closed(more));
    close(more);
    more = connect_from(FROM + 2);
    is_served(more);
    for (int i = 0; i < MAX; i++) {
        struct pollfd end = {fd[i], POLLIN, 0};

        closed += poll(&end, 1, 0) > 0;
        assert_true(!end.revents || host[i] == FROM);
        close(fd[i]);
    }
    assert_int_equal(closed, 1);
    close(more);
}

/* A pending call keeps its place. */
static void work_keeps_its_place(void **state)
{
    int fd, other;

    (void)state;
    attr.connections_max = attr.address_max = 1;
    attr.rest_ms = 50;
    start();
    fake.slow = fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask(fd);
    eventually(fake.held == 1);
    usleep(100000);
    other = tcp_connect(nfsd_tcp_port(nfsd));
    assert_true(tcp_is_closed(other));
    close(other);
    fake.hold = false;
    tcp_get_answer(fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(strangers),        TEST(many_strangers), TEST(lines_are_limited),
                                       TEST(places_over_rdma), TEST(many_over_rdma), TEST(work_keeps_its_place),
                                       TEST(places_are_shared)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
