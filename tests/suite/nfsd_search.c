/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_search.c - slow calls of the NFS server: a search for a handle delays no other client, and calls that wait for
 * the disk do not delay MOUNT. */
#include "tests/suite/lib/nfsd_fake.h"

enum { MANY = 40, LOST = 9 };

static const union nfs3_args lost_file = {.fh = {8, {LOST, 2, 3, 4, 5, 6, 7, 8}}};

static uint32_t ask_for(int fd, enum nfs3_proc proc, const union nfs3_args *args)
{
    build(proc, args, false, NULL);
    tcp_put_message(fd);
    return xid;
}

/* Many searches of one client: never more than one at a time, and everything else is answered, slow or not. */
static void searches_hold_up_nobody(void **state)
{
    union nfs3_args write = {.write = {.fh = some_file.fh, .count = 4, .length = 4, .data = (const uint8_t *)"abcd"}};
    uint32_t first;
    int fd, other;

    (void)state;
    attr.workers = 1;
    start();
    fake.searches = LOST;
    fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    other = tcp_connect(nfsd_tcp_port(nfsd));
    first = ask_for(fd, NFS3_GETATTR, &lost_file);
    for (int i = 1; i < MANY; i++)
        ask_for(fd, i % 2 ? NFS3_WRITE : NFS3_GETATTR, &lost_file);
    eventually(fake.held == 1);
    for (int slow = 0; slow < 2; slow++) {
        fake.slow = slow;
        is_served(other);
        ask_for(other, NFS3_WRITE, &write);
        tcp_get_answer(other);
        is_served(fd);
        assert_int_equal(fake.held, 1);
        assert_int_equal(fake.searched, 1);
    }
    fake.hold = false;
    for (uint32_t i = 0; i < MANY; i++) {
        tcp_get_answer(fd);
        assert_int_equal(answer_xid(), first + i);
    }
    assert_int_equal(fake.searched, MANY);
    close(fd);
    close(other);
}

/* Two clients take turns, however many searches the first has. */
static void in_turn(void **state)
{
    struct nfs3_result result;
    uint32_t asked;
    int fd, other;

    (void)state;
    start();
    fake.searches = LOST;
    fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    other = tcp_connect(nfsd_tcp_port(nfsd));
    for (int i = 0; i < MANY; i++)
        ask_for(fd, NFS3_GETATTR, &lost_file);
    eventually(fake.held == 1);
    is_served(fd); /* so that all of them wait */
    asked = ask_for(other, NFS3_GETATTR, &lost_file);
    is_served(other);
    fake.hold = false;
    tcp_get_answer(other);
    xid = asked;
    check_answer(NFS3_GETATTR, &result, NULL, 0);
    xid = asked + 1;
    /* The fourth that was executed: after two that needed no search, and the one that was running. */
    assert_int_equal(result.attr.attr.fileid, 4);
    for (int i = 0; i < MANY; i++)
        tcp_get_answer(fd);
    close(fd);
    close(other);
}

/* Nothing is searched for a client that is gone, and the server ends during a search. */
static void for_nobody(void **state)
{
    const struct linger at_once = {1, 0};
    int fd;

    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        start();
        fake.searched = 0;
        fake.searches = LOST;
        fake.hold = true;
        fd = tcp_connect(nfsd_tcp_port(nfsd));
        for (int i = 0; i < MANY; i++)
            ask_for(fd, i % 2 ? NFS3_WRITE : NFS3_GETATTR, &lost_file);
        eventually(fake.held == 1);
        is_served(fd);
        if (!ends) {
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
            close(fd);
            eventually(stats_now().tcp_connections == 0);
            fake.hold = false;
            eventually(fake.held == 0);
        }
        finish_server();
        assert_in_range(fake.searched, 1, ends ? 2 : 1);
        if (ends)
            close(fd);
    }
}

/* MOUNT does not wait for calls that wait for the disk. */
static void mount_while_others_wait(void **state)
{
    struct nfs3_text path = {"/srv", 4};
    struct rpc_call call;
    struct coder c;
    bool bad;
    int fd, other;

    (void)state;
    attr.workers = 2;
    start();
    fake.slow = fake.hold = true;
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    other = tcp_connect(nfsd_mount_port(nfsd));
    for (int i = 0; i < MANY; i++)
        ask(fd);
    eventually(fake.held == 2);
    call = header(MOUNT_PROGRAM, 3, MOUNT3_MNT);
    coder_write(&c, message, sizeof(message));
    rpc_code_call(&c, &call, &bad);
    mount3_code_args(&c, MOUNT3_MNT, &path);
    assert_false(c.bad);
    message_length = coder_length(&c);
    tcp_put_message(other);
    tcp_get_answer(other);
    assert_int_equal(answer_xid(), xid);
    assert_int_equal(fake.held, 2);
    fake.hold = false;
    for (int i = 0; i < MANY; i++)
        tcp_get_answer(fd);
    close(fd);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(mount_while_others_wait), TEST(searches_hold_up_nobody), TEST(in_turn),
                                       TEST(for_nobody)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
