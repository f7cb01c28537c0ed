/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_silent.c - an export whose file system does not answer: calls of other exports are served, and the server
 * ends. */
#include <sys/wait.h>

#include "tests/suite/lib/nfsd_fake.h"

#include "rpc/clock.h"

static const union nfs3_args silent_file = {.fh = {8, {SILENT, 2, 3, 4, 5, 6, 7, 8}}};

static int two_exports(void **state)
{
    static char path[] = "/silent";

    set_up(state);
    export[1] = (struct export){.path = path};
    exports = EXPORTS;
    fake.silent = true;
    return 0;
}

static int one_export(void **state)
{
    int error;

    fake.silent = false;
    error = tear_down(state);
    exports = 1;
    return error;
}

static void ask_for(int fd, enum nfs3_proc proc, const union nfs3_args *args)
{
    build(proc, args, false, NULL);
    tcp_put_message(fd);
}

/* Every procedure, and more calls than the export has threads. */
static void ask_the_silent_one(int fd)
{
    static const enum nfs3_proc proc[] = {NFS3_GETATTR, NFS3_ACCESS, NFS3_READLINK, NFS3_READ,
                                          NFS3_FSSTAT,  NFS3_FSINFO, NFS3_PATHCONF, NFS3_COMMIT};
    enum { PROCS = sizeof(proc) / sizeof(*proc) };

    for (unsigned i = 0; i < PROCS; i++)
        ask_for(fd, proc[i], &silent_file);
    eventually(fake.waiting == attr.workers);
}

/* MNT of "/silent" or of another path. */
static void ask_to_mount(int fd, const char *path)
{
    struct rpc_call call = header(MOUNT_PROGRAM, 3, MOUNT3_MNT);
    struct nfs3_text text = {path, (uint32_t)strlen(path)};
    struct coder c;
    bool bad;

    coder_write(&c, message, sizeof(message));
    rpc_code_call(&c, &call, &bad);
    mount3_code_args(&c, MOUNT3_MNT, &text);
    message_length = coder_length(&c);
    tcp_put_message(fd);
}

static void others_are_served(void **state)
{
    union nfs3_args write = {.write = {.fh = some_file.fh, .count = 4, .length = 4, .data = (const uint8_t *)"abcd"}};
    int stuck, fd;

    (void)state;
    attr.workers = 2;
    start();
    stuck = tcp_connect(nfsd_tcp_port(nfsd));
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask_the_silent_one(stuck);
    for (int slow = 0; slow < 2; slow++) {
        fake.slow = slow;
        is_served(fd);
        ask_for(fd, NFS3_WRITE, &write);
        tcp_get_answer(fd);
        is_served(stuck); /* the same client, too */
    }
    ask_to_mount(stuck, "/silent");
    eventually(fake.waiting == attr.workers + 1);
    ask_to_mount(fd, "/srv");
    tcp_get_answer(fd);
    assert_int_equal(answer_xid(), xid);
    fake.silent = false;
    for (int i = 0; i < 9; i++)
        tcp_get_answer(stuck);
    close(stuck);
    close(fd);
}

/* The calls of one of several exports hold at most half of the memory. */
static void memory_is_left(void **state)
{
    enum { PEERS = 4, COUNT = 65536 };
    union nfs3_args args = {.range = {.fh = silent_file.fh, .count = COUNT}};
    int stuck[PEERS], fd;
    uint64_t one;

    (void)state;
    build(NFS3_READ, &args, false, NULL);
    one = sizeof(struct nfsd_job) + message_length + COUNT;
    for (int more = -1; more <= 1; more++) {
        fake.silent = true;
        attr.workers = PEERS;
        attr.memory_max = 2 * (3 * one + (uint64_t)(int64_t)more);
        start();
        for (int i = 0; i < PEERS; i++) {
            stuck[i] = tcp_connect(nfsd_tcp_port(nfsd));
            ask_for(stuck[i], NFS3_READ, &args);
        }
        eventually(fake.waiting == (more < 0 ? 2 : 3));
        fd = tcp_connect(nfsd_tcp_port(nfsd));
        for (int i = 0; i < 2; i++) {
            ask_to_read(fd, COUNT);
            tcp_get_answer(fd);
        }
        assert_int_equal(fake.waiting, more < 0 ? 2 : 3);
        fake.silent = false;
        for (int i = 0; i < PEERS; i++) {
            tcp_get_answer(stuck[i]);
            close(stuck[i]);
        }
        close(fd);
        finish_server();
    }
}

/* nfsd_run() and nfsd_close() end. The server's memory is the threads' then, so that this process has to end too. */
static int end_while_silent(void)
{
    int fd;

    attr.workers = 2;
    start();
    fd = tcp_connect(nfsd_tcp_port(nfsd));
    ask_the_silent_one(fd);
    nfsd_stop(nfsd);
    pthread_join(server_thread, NULL);
    return nfsd_close(nfsd) ? 1 : 0;
}

static void server_ends(void **state)
{
    uint64_t until = clock_ms() + 60000;
    int status = -1;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0)
        _exit(end_while_silent());
    while (waitpid(pid, &status, WNOHANG) == 0 && clock_ms() < until)
        usleep(10000);
    if (status == -1)
        kill(pid, SIGKILL);
    assert_int_equal(status, 0);
}

#define SILENT_TEST(f) cmocka_unit_test_setup_teardown(f, two_exports, one_export)

int main(void)
{
    const struct CMUnitTest tests[] = {SILENT_TEST(others_are_served), SILENT_TEST(memory_is_left),
                                       SILENT_TEST(server_ends)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
