/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_once.c - repeated calls: what must not be executed twice is not, over both transports. */
#include "tests/suite/lib/nfsd_fake.h"

static void build_mkdir(void)
{
    union nfs3_args args = {.make = {.where = {.dir = some_file.fh, .name = {"new", 3}}}};

    build(NFS3_MKDIR, &args, false, NULL);
}

static uint64_t done_before(void)
{
    struct nfs3_result result;

    check_answer(NFS3_MKDIR, &result, NULL, 0);
    return result.attr.attr.fileid;
}

/* The same call over a new connection gets the first reply. */
static void retransmitted(void **state)
{
    (void)state;
    start();
    for (int rdma = 0; rdma < 2; rdma++) {
        fake.done = 0;
        call_open(rdma);
        build_mkdir();
        plain_exchange();
        assert_int_equal(done_before(), 1);
        call_close();
        call_open(rdma);
        plain_exchange();
        assert_int_equal(done_before(), 1);
        /* The XID alone does not make a call the same. */
        message[message_length - 28] ^= 1;
        plain_exchange();
        assert_int_equal(done_before(), 2);
        eventually(stats_now().replayed == (uint64_t)rdma + 1);
        call_close();
    }
}

/* A client that starts again may use an XID again, with a call that differs in the data alone: wherever the data are,
 * they are written. */
static void other_data(void **state)
{
    enum { OCTETS = 8192 };
    static uint8_t data[OCTETS];
    union nfs3_args args = {.write = {.fh = some_file.fh, .count = OCTETS, .data = data, .length = OCTETS}};
    struct stream_item item;
    uint32_t came;

    (void)state;
    start();
    for (int rdma = 0; rdma < 2; rdma++) {
        unsigned done = fake.done;

        for (unsigned k = 0; k < 4; k++) {
            memset(data, 'a', OCTETS);
            data[OCTETS - 1] = (uint8_t)(k / 2);
            xid = 7;
            build(NFS3_WRITE, &args, rdma, &item);
            call_open(rdma);
            assert_int_equal(exchange(rdma ? &item : NULL, NULL, 0, &came), REQUEST_OK);
            call_close();
            assert_int_equal(fake.sum, sum_of(data, OCTETS));
            assert_int_equal(fake.done, done + k / 2 + 1);
        }
    }
}

/* The connection is cut while the call is executed; a second one repeats it, and a third. */
static void retransmitted_at_work(void **state)
{
    struct linger at_once = {.l_onoff = 1};
    int second, third;

    (void)state;
    start();
    fake.slow = fake.hold = true;
    call_open(false);
    build_mkdir();
    tcp_put_message(caller.fd);
    eventually(fake.held == 1);
    setsockopt(caller.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    call_close();
    eventually(stats_now().tcp_connections == 0);
    second = tcp_connect(nfsd_tcp_port(nfsd));
    tcp_put_message(second);
    eventually(stats_now().tcp_connections == 1);
    third = tcp_connect(nfsd_tcp_port(nfsd));
    tcp_put_message(third);
    eventually(stats_now().tcp_connections == 2);
    usleep(20000);
    assert_int_equal(fake.held, 1);
    fake.hold = false;
    /* The last connection gets the reply; the one before has given up. */
    tcp_get_answer(third);
    assert_int_equal(done_before(), 1);
    assert_int_equal(fake.done, 1);
    tcp_put_message(second);
    tcp_get_answer(second);
    assert_int_equal(done_before(), 1);
    close(second);
    close(third);
}

/* The same over RDMA: a call whose connection is gone is executed once and answered over the next connection. */
static void cut_at_work(void **state)
{
    (void)state;
    start();
    fake.slow = fake.hold = true;
    for (int asks = 0; asks < 2; asks++) {
        struct request q = {.call = message, .reply = answer, .reply_size = sizeof(answer), .timeout_ms = -1};

        call_open(true);
        if (asks == 0)
            build_mkdir();
        q.call_length = message_length;
        requester_start(caller.requester, &q);
        for (int i = 0; i < 50 || (fake.held == 0 && i < 500); i++)
            requester_wait(caller.requester, 1);
        assert_int_equal(fake.held, 1);
        if (asks == 1) {
            fake.hold = false;
            while (q.state != REQUEST_DONE)
                requester_wait(caller.requester, 10);
            answer_length = q.reply_length;
            assert_int_equal(q.status, REQUEST_OK);
            assert_int_equal(done_before(), 1);
        }
        call_close();
    }
}

/* Idempotent calls are executed again: an old reply would be wrong. */
static void repeated_reads(void **state)
{
    union nfs3_args args = {.fh = some_file.fh};
    struct nfs3_result result;

    (void)state;
    start();
    for (int rdma = 0; rdma < 2; rdma++) {
        fake.done = 0;
        call_open(rdma);
        build(NFS3_GETATTR, &args, false, NULL);
        for (unsigned i = 1; i <= 3; i++) {
            plain_exchange();
            check_answer(NFS3_GETATTR, &result, NULL, 0);
            assert_int_equal(result.attr.attr.fileid, i);
        }
        call_close();
    }
}

/* The reply of a non-idempotent call is kept, however many idempotent ones come in between. */
static void kept_among_reads(void **state)
{
    union nfs3_args args = {.fh = some_file.fh};
    static uint8_t first[sizeof(message)];
    uint32_t first_xid;
    size_t length;

    (void)state;
    start();
    for (int rdma = 0; rdma < 2; rdma++) {
        fake.done = 0;
        call_open(rdma);
        build_mkdir();
        plain_exchange();
        memcpy(first, message, length = message_length);
        first_xid = xid;
        for (unsigned i = 0; i < NFSD_REPLAYS + 100; i++) {
            build(NFS3_GETATTR, &args, false, NULL);
            plain_exchange();
        }
        memcpy(message, first, message_length = length);
        xid = first_xid;
        plain_exchange();
        assert_int_equal(done_before(), 1);
        call_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(retransmitted), TEST(other_data),     TEST(retransmitted_at_work),
                                       TEST(cut_at_work),   TEST(repeated_reads), TEST(kept_among_reads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
