/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_share.c - the memory that calls of the NFS server may hold: the total limit one octet below, at, and one above;
 * the share of a connection; and peers that do not receive replies. */
#include "tests/suite/lib/nfsd_fake.h"

/* --- memory ------------------------------------------------------------------------------------------------------ */

enum { COUNT = 65536 };

/* Exactly as much as the READs of three connections hold, and one octet less and more. */
static void memory_of_all(void **state)
{
    enum { PEERS = 4 };
    union nfs3_args args = {.range = {.fh = some_file.fh, .count = COUNT}};
    uint64_t one;
    int fd[PEERS];

    (void)state;
    build(NFS3_READ, &args, false, NULL);
    one = sizeof(struct nfsd_job) + message_length + COUNT;
    for (int more = -1; more <= 1; more++) {
        attr.memory_max = 3 * one + (uint64_t)more;
        start();
        fake.slow = fake.hold = true;
        for (int i = 0; i < PEERS; i++) {
            fd[i] = tcp_connect(nfsd_tcp_port(nfsd));
            ask_to_read(fd[i], COUNT);
        }
        eventually(fake.held == (more < 0 ? 2 : 3));
        usleep(20000);
        assert_int_equal(fake.held, more < 0 ? 2 : 3);
        fake.hold = false;
        for (int i = 0; i < PEERS; i++) {
            tcp_get_answer(fd[i]);
            assert_in_range(answer_length, COUNT, COUNT + 200);
            close(fd[i]);
        }
        finish_server();
    }
}

/* A connection has its share; those below it are served meanwhile. */
static void memory_of_one(void **state)
{
    union nfs3_args args = {.range = {.fh = some_file.fh, .count = COUNT}};
    int greedy, modest;

    (void)state;
    build(NFS3_READ, &args, false, NULL);
    attr.memory_max = BUDGET_SHARES * 2 * (sizeof(struct nfsd_job) + message_length + COUNT);
    start();
    fake.slow = fake.hold = true;
    greedy = tcp_connect(nfsd_tcp_port(nfsd));
    for (int i = 0; i < 10; i++)
        ask_to_read(greedy, COUNT);
    eventually(fake.held == 2);
    usleep(20000);
    assert_int_equal(fake.held, 2);
    modest = tcp_connect(nfsd_tcp_port(nfsd));
    ask_to_read(modest, COUNT);
    eventually(fake.held == 3);
    fake.hold = false;
    tcp_get_answer(modest);
    for (int i = 0; i < 10; i++)
        tcp_get_answer(greedy);
    close(greedy);
    close(modest);
}

/* DIGEST of the longest range, `n` times. */
static void ask_for_digests(int fd, unsigned n)
{
    union nfs3_args args = {.range = {.fh = some_file.fh, .count = NFS3_DIGEST_MAX}};
    struct rpc_call call = header(DIGEST_PROGRAM, DIGEST_VERSION, 1);
    struct coder c;
    bool bad;

    coder_write(&c, message, sizeof(message));
    rpc_code_call(&c, &call, &bad);
    nfs3_code_args(&c, NFS3_DIGEST, &args);
    message_length = coder_length(&c);
    for (unsigned i = 0; i < n; i++)
        tcp_put_message(fd);
}

/* Calls of few octets that make the server read many: what one client, or all of them, can let others wait for. */
static void digests_of_all(void **state)
{
    enum { PEERS = 12, EACH = 16, OF_ONE = NFSD_DIGESTS / BUDGET_SHARES };
    int fd[PEERS];

    (void)state;
    attr.workers = WORKERS_MAX;
    start();
    fake.slow = fake.hold = true;
    fd[0] = tcp_connect(nfsd_tcp_port(nfsd));
    ask_for_digests(fd[0], EACH);
    eventually(fake.held >= OF_ONE - 1);
    usleep(20000);
    assert_in_range(fake.held, OF_ONE - 1, OF_ONE);
    for (int i = 1; i < PEERS; i++) {
        fd[i] = tcp_connect(nfsd_tcp_port(nfsd));
        ask_for_digests(fd[i], EACH);
    }
    eventually(fake.held >= PEERS);
    usleep(20000);
    assert_in_range(fake.held, PEERS, NFSD_DIGESTS);
    fake.hold = false;
    for (int i = 0; i < PEERS; i++) {
        for (int k = 0; k < EACH; k++)
            tcp_get_answer(fd[i]);
        close(fd[i]);
    }
}

/* A peer that does not receive replies holds its share until its time is over; others are not affected. */
static void deaf_peer(void **state)
{
    int deaf, fd;

    (void)state;
    attr.memory_max = 64 << 20;
    attr.idle_ms = 1000;
    start();
    deaf = tcp_connect(nfsd_tcp_port(nfsd));
    for (int i = 0; i < 100; i++)
        ask_to_read(deaf, NFS3_IO_MAX);
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    for (int i = 0; i < 20; i++) {
        ask_to_read(fd, NFS3_IO_MAX);
        tcp_get_answer(fd);
    }
    assert_in_range(stats_now().calls, 21, 20 + 32);
    eventually(stats_now().tcp_connections == 1);
    is_served(fd);
    close(fd);
    close(deaf);
}

/* This many READs over RDMA are executed for a client that does not receive replies. */
enum { READS = 24 };
static uint64_t calls_of_deaf_rdma_peer(void)
{
    static struct request q[READS];
    static uint8_t call[READS][256], reply[READS][512];
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct requester_attr requester_attr;
    struct requester *requester;
    uint8_t *data = malloc((size_t)READS * NFS3_IO_MAX);
    uint64_t calls;

    attr.memory_max = 64 << 20;
    attr.idle_ms = 1000;
    start();
    addr.sin_port = htons((uint16_t)nfsd_rdma_port(nfsd));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    requester_attr_init(&requester_attr);
    requester = requester_open((struct sockaddr *)&addr, sizeof(addr), &requester_attr, WAIT_MS);
    assert_non_null(requester);
    for (int i = 0; i < READS; i++) {
        union nfs3_args args = {.range = {.fh = some_file.fh, .count = NFS3_IO_MAX}};

        build(NFS3_READ, &args, false, NULL);
        memcpy(call[i], message, message_length);
        q[i] = (struct request){.call = call[i], .call_length = message_length, .reply = reply[i], .reply_size = 512};
        q[i].timeout_ms = -1;
        q[i].results = 1;
        q[i].result[0] = (struct request_item){.data = data + (size_t)i * NFS3_IO_MAX, .length = NFS3_IO_MAX};
    }
    /* The first reply tells it how many calls it may send. It sends the others, and then it does nothing. */
    assert_int_equal(requester_run(requester, &q[0]), REQUEST_OK);
    requester_gather(requester);
    for (int i = 1; i < READS; i++)
        requester_start(requester, &q[i]);
    requester_send(requester);
    eventually(stats_now().calls > 5);
    usleep(100000);
    calls = stats_now().calls;
    eventually(stats_now().rdma_connections == 0);
    free(data);
    requester_close(requester);
    return calls;
}

/* The memory of the replies is freed at the end of the connection. */
static void deaf_rdma_peer(void **state)
{
    (void)state;
    assert_in_range(calls_of_deaf_rdma_peer(), 6, READS - 1);
}

/* Replies of views hold no memory; after the end of the connection there are as many views as before. */
static void deaf_rdma_peer_of_views(void **state)
{
    static struct view *view[VIEWS_MAX];
    int fd = memfd_create("view", MFD_CLOEXEC);

    (void)state;
    fake.slow = fake.views = true;
    calls_of_deaf_rdma_peer();
    assert_in_range(fake.charged, NFS3_IO_MAX, NFS3_IO_MAX + READS * (sizeof(struct nfsd_job) + 512));
    for (int i = 0; i < VIEWS_MAX; i++) {
        view[i] = view_open(fd, 0);
        assert_non_null(view[i]);
    }
    for (int i = 0; i < VIEWS_MAX; i++)
        view_put(view[i]);
    close(fd);
    /* If no view can be had, the server works as without views. */
    finish_server();
    fake.views = false;
    assert_in_range(calls_of_deaf_rdma_peer(), 6, READS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(memory_of_all), TEST(memory_of_one),  TEST(digests_of_all),
                                       TEST(deaf_peer),     TEST(deaf_rdma_peer), TEST(deaf_rdma_peer_of_views)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
