/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_view.c - the NFS server sends a file from the page cache while another process truncates, extends and writes it:
 * what arrives is from the file or zero, and no connection is lost. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/client/nfs_client.h"
#include "nfs/server/nfsd_in.h"

enum { SIZE = 8 << 20, STEP = 1 << 20, UNDER_WAY = 8, ANSWER_MS = 20000 };
enum { MANY = 48 }; /* MiB that no socket buffer can hold */

/* ThreadSanitizer notes every octet. */
#ifdef __SANITIZE_THREAD__
enum { READS = 20 };
#else
enum { READS = 200 };
#endif

static char top[64], path[80];
static uint8_t content[SIZE];
static pid_t other = -1;

/* Never 0, and different on each page. */
static uint8_t octet(uint64_t i)
{
    return (uint8_t)(1 + (i + i / 4096 * 7) % 255);
}

/* --- the server, in its own process --------------------------------------------------------------------------- */

struct ports {
    int rdma, mount;
};

static struct nfsd *nfsd;

static void stop_server(int signal)
{
    (void)signal;
    nfsd_stop(nfsd);
}

static int serve(int ports, bool crc)
{
    struct export_attr export_attr;
    struct objects_attr objects;
    struct nfsd_attr attr;
    struct export export;
    struct nfs_server server = {.export = &export, .exports = 1};
    char error[EXPORT_TEXT];
    struct ports p;
    int failed;

    export_attr_init(&export_attr);
    export_attr.squash = SQUASH_NONE;
    objects_attr_init(&objects);
    objects.export = &export;
    objects.exports = 1;
    nfsd_attr_init(&attr);
    attr.address = "127.0.0.1";
    attr.rdma_port = attr.mount_port = 0;
    attr.tcp_port = -1;
    attr.wire.crc = crc;
    attr.server = &server;
    signal(SIGBUS, SIG_DFL);
    signal(SIGTERM, stop_server);
    if (export_open(&export, top, &export_attr, error) || !(server.objects = objects_open(&objects, error)) ||
        !(nfsd = nfsd_open(&attr, error))) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    p = (struct ports){nfsd_rdma_port(nfsd), nfsd_mount_port(nfsd)};
    failed = write(ports, &p, sizeof(p)) != sizeof(p) || nfsd_run(nfsd);
    nfsd_close(nfsd);
    objects_close(server.objects);
    export_close(&export);
    return failed;
}

static pid_t server = -1;

static void start(bool crc, struct nfs_client_attr *attr)
{
    struct ports p;
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);
    server = fork();
    assert_true(server >= 0);
    if (server == 0)
        _exit(serve(pipes[1], crc));
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &p, sizeof(p)), sizeof(p));
    close(pipes[0]);
    nfs_client_attr_init(attr);
    attr->host = "127.0.0.1";
    attr->path = top;
    attr->port = p.rdma;
    attr->mount_port = p.mount;
    attr->call_timeout_ms = ANSWER_MS;
    attr->wire.crc = crc;
}

/* It ended because it was told to, and not before. */
static void finish_server(void)
{
    int status;

    kill(server, SIGTERM);
    assert_int_equal(waitpid(server, &status, 0), server);
    server = -1;
    assert_int_equal(status, 0);
}

/* --- the other process ------------------------------------------------------------------------------------------- */

/* Truncates the file further and further, then restores it. */
static void cut_and_extend(int fd)
{
    for (unsigned i = 0;; i++) {
        size_t at = (size_t)(i % 7 * 1299709 + i) % SIZE;

        if (ftruncate(fd, (off_t)at) || pwrite(fd, content + at, SIZE - at, (off_t)at) < 0)
            _exit(1);
    }
}

/* Rewrites the same octets, each through another value. */
static void write_into(int fd)
{
    static uint8_t zeros[65536];

    for (size_t at = 0;; at = (at + sizeof(zeros)) % SIZE)
        if (pwrite(fd, zeros, sizeof(zeros), (off_t)at) < 0 || pwrite(fd, content + at, sizeof(zeros), (off_t)at) < 0)
            _exit(1);
}

static void begin(void (*what)(int fd))
{
    other = fork();
    assert_true(other >= 0);
    if (other)
        return;
    what(open(path, O_RDWR));
    _exit(0);
}

static void end(pid_t *child)
{
    if (*child > 0) {
        kill(*child, SIGKILL);
        waitpid(*child, NULL, 0);
    }
    *child = -1;
}

/* --- who reads --------------------------------------------------------------------------------------------------- */

static struct reader {
    struct nfs_client *client;
    struct nfs3_fh fh;
    unsigned reads, started, done;
    uint64_t octets, zeros;
} reader;

static void ask(struct nfs_op *op)
{
    if (reader.started == reader.reads)
        return;
    memset(op->buffer, 0xff, STEP);
    op->args.range.fh = reader.fh;
    op->args.range.offset = (uint64_t)reader.started++ * STEP % SIZE;
    op->args.range.count = STEP;
    nfs_start(reader.client, op);
}

static void answered(struct nfs_op *op)
{
    uint64_t offset = op->args.range.offset;
    const uint8_t *data = op->buffer;

    if (op->error)
        fail_msg("READ %u: %s (%s)", reader.done, strerror(-op->error), op->trouble ? op->trouble : "");
    assert_int_equal(op->result.status, NFS3_OK);
    for (uint32_t i = 0; i < op->result.read.count; i++) {
        if (data[i] && data[i] != octet(offset + i))
            fail_msg("octet %u at %u MiB is %u", i, (unsigned)(offset / STEP), data[i]);
        reader.zeros += data[i] == 0;
    }
    reader.octets += op->result.read.count;
    reader.done++;
    ask(op);
}

static void open_reader(const struct nfs_client_attr *attr, unsigned reads)
{
    char error[NFS_CLIENT_TEXT];
    struct nfs3_attr ignored;

    reader = (struct reader){.client = nfs_client_open(attr, error), .reads = reads};
    if (!reader.client)
        fail_msg("%s", error);
    assert_int_equal(nfs_lookup(reader.client, "f", true, &reader.fh, &ignored), 0);
}

static void start_ops(struct nfs_op *op, unsigned ops)
{
    for (unsigned i = 0; i < ops; i++) {
        op[i] = (struct nfs_op){.proc = NFS3_READ, .done = answered, .buffer = malloc(STEP)};
        ask(&op[i]);
    }
}

static void finish_ops(struct nfs_op *op, unsigned ops)
{
    struct requester_stats stats;

    while (reader.done < reader.reads)
        nfs_wait(reader.client, ANSWER_MS);
    nfs_client_stats(reader.client, &stats);
    for (unsigned i = 0; i < ops; i++) {
        nfs_forget(&op[i]);
        free(op[i].buffer);
    }
    nfs_client_close(reader.client);
    print_message("%llu octets, %llu of them 0; %u connections\n", (unsigned long long)reader.octets,
                  (unsigned long long)reader.zeros, (unsigned)stats.connects);
    assert_int_equal(stats.connects, 1);
}

static void read_while(bool crc, void (*what)(int fd))
{
    struct nfs_client_attr attr;
    struct nfs_op op[UNDER_WAY];

    start(crc, &attr);
    begin(what);
    open_reader(&attr, READS);
    start_ops(op, UNDER_WAY);
    finish_ops(op, UNDER_WAY);
    end(&other);
    finish_server();
}

static void is_cut(void **state)
{
    (void)state;
    read_while(false, cut_and_extend);
}

static void is_cut_under_crc(void **state)
{
    (void)state;
    read_while(true, cut_and_extend);
}

static void is_written_under_crc(void **state)
{
    (void)state;
    read_while(true, write_into);
}

/* Asks for more than the path can hold, stops receiving, and then takes the rest. */
static int stand_still(const struct nfs_client_attr *attr)
{
    static struct nfs_op op[MANY];

    open_reader(attr, MANY);
    start_ops(op, MANY);
    nfs_wait(reader.client, ANSWER_MS);
    raise(SIGSTOP);
    finish_ops(op, MANY);
    return reader.zeros ? 0 : 2;
}

/* Waits until the process is idle: it sleeps whenever it is looked at. */
static void until_idle(pid_t pid)
{
    char name[32], line[256], *state;

    snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
    for (unsigned asleep = 0; asleep < 20; usleep(5000)) {
        FILE *file = fopen(name, "r");

        assert_non_null(file);
        assert_non_null(fgets(line, sizeof(line), file));
        fclose(file);
        state = strrchr(line, ')');
        asleep = state && state[2] == 'S' ? asleep + 1 : 0;
    }
}

/* Data still to be sent when the file is truncated are gone, and any thread that sends them meets that. */
static void cut_on_the_way(bool crc)
{
    struct nfs_client_attr attr;
    int status;

    start(crc, &attr);
    other = fork();
    assert_true(other >= 0);
    if (other == 0)
        _exit(stand_still(&attr));
    assert_int_equal(waitpid(other, &status, WUNTRACED), other);
    assert_true(WIFSTOPPED(status));
    until_idle(server);
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(kill(other, SIGCONT), 0);
    assert_int_equal(waitpid(other, &status, 0), other);
    other = -1;
    assert_int_equal(status, 0);
    finish_server();
}

static void is_cut_on_the_way(void **state)
{
    (void)state;
    cut_on_the_way(false);
}

static void is_cut_on_the_way_under_crc(void **state)
{
    (void)state;
    cut_on_the_way(true);
}

/* A WRITE to a file in memory is executed at once and completely. */
static void is_written(void **state)
{
    static uint8_t there[SIZE];
    struct nfs_client_attr attr;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint32_t n = 1, calls = 0;

    (void)state;
    assert_int_equal(ftruncate(fd, 0), 0);
    start(true, &attr);
    open_reader(&attr, 0);
    for (uint32_t at = 0; at < SIZE; at += n) {
        struct nfs_op op = {.proc = NFS3_WRITE};

        n = n * 3 < STEP ? n * 3 : STEP;
        n = n < SIZE - at ? n : SIZE - at;
        op.args.write.fh = reader.fh;
        op.args.write.offset = at;
        op.args.write.count = op.args.write.length = n;
        op.args.write.data = content + at;
        op.args.write.stable = calls++ % 2 ? NFS3_FILE_SYNC : NFS3_UNSTABLE;
        assert_int_equal(nfs_call(reader.client, &op), 0);
        assert_int_equal(op.result.write.count, n);
        nfs_forget(&op);
    }
    nfs_client_close(reader.client);
    finish_server();
    assert_int_equal(read(fd, there, SIZE), SIZE);
    assert_memory_equal(there, content, SIZE);
    close(fd);
}

static int set_up(void **state)
{
    int fd;

    (void)state;
    /* In memory if possible, because on a disk the truncating process waits for it. */
    snprintf(top, sizeof(top), "%s/rddp-nfsd.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof(path), "%s/f", top);
    for (size_t i = 0; i < SIZE; i++)
        content[i] = octet(i);
    fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 || write(fd, content, SIZE) != SIZE || close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    end(&other);
    end(&server);
    unlink(path);
    return rmdir(top);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(is_cut_on_the_way), TEST(is_cut_on_the_way_under_crc), TEST(is_cut),
                                       TEST(is_cut_under_crc),  TEST(is_written_under_crc),        TEST(is_written)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
