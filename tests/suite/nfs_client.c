/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_client.c - the NFS client against a server that is late, restarts, or lies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/client/nfs_client.h"
#include "tests/suite/lib/nfs_fake.h"

static struct fake fake;
static struct nfs_client *client;

static struct nfs_client_attr attr_of_fake(void)
{
    struct nfs_client_attr attr;

    nfs_client_attr_init(&attr);
    attr.host = "127.0.0.1";
    attr.path = "/fake";
    attr.port = fake.port;
    attr.mount_port = fake.mount_port;
    attr.wire.first_delay_ms = 0;
    return attr;
}

static void connect_fake(int call_timeout_ms)
{
    struct nfs_client_attr attr = attr_of_fake();
    char error[NFS_CLIENT_TEXT];

    attr.call_timeout_ms = call_timeout_ms;
    client = nfs_client_open(&attr, error);
    if (!client)
        fail_msg("%s", error);
}

static int set_up(void **state)
{
    (void)state;
    fake_open(&fake);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (client)
        nfs_client_close(client);
    client = NULL;
    fake_close(&fake);
    return 0;
}

/* --- the client ------------------------------------------------------------------------------------------------ */

static void paths(void **state)
{
    static const struct {
        const char *path;
        int error;
        bool follow;
        uint64_t fileid;
    } row[] = {
        {"", 0, true, 1},
        {"/", 0, true, 1},
        {"plain", 0, true, 2},
        {"./plain", 0, true, 2},
        {"plain/", -ENOTDIR, true, 0},
        {"missing", -ENOENT, true, 0},
        {"link", 0, true, 2},
        {"link", 0, false, 3},
        {"two", 0, true, 2},
        {"loop", -ELOOP, true, 0},
        {"loop", 0, false, 5},
        {"above", -EXDEV, true, 0},
        {"abs", -EXDEV, true, 0},
        {"..", -EXDEV, true, 0},
        {"link/", -ENOTDIR, true, 0},
        {"link/x", -ENOTDIR, true, 0},
        {"here/plain", 0, true, 2},
    };
    static const struct {
        const char *name, *target;
    } link[] = {{"link", "plain"}, {"two", "./link"}, {"loop", "loop"},
                {"above", "../x"}, {"abs", "/plain"}, {"here", "."}};
    struct nfs3_attr attr;
    struct nfs3_fh fh;
    char name[300];

    (void)state;
    fake_add_file(&fake, "plain", 10);
    for (size_t i = 0; i < sizeof(link) / sizeof(*link); i++)
        fake_add(&fake, link[i].name, strlen(link[i].name), NFS3_LNK)->target = link[i].target;
    connect_fake(-1);
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        int error = nfs_lookup(client, row[i].path, row[i].follow, &fh, &attr);

        if (error != row[i].error || (error == 0 && attr.fileid != row[i].fileid))
            fail_msg("'%s': %d, file %d", row[i].path, error, (int)attr.fileid);
    }
    memset(name, 'n', sizeof(name));
    name[256] = 0;
    assert_int_equal(nfs_lookup(client, name, true, &fh, &attr), -ENAMETOOLONG);
    name[255] = 0;
    assert_int_equal(nfs_lookup(client, name, true, &fh, &attr), -ENOENT);
}

static unsigned finished;

static void count(struct nfs_op *op)
{
    (void)op;
    finished++;
}

/* Many pending READs, placed where they belong; once warm, the memory of an op does not grow. */
static void reads(void **state)
{
    enum { OPS = 40, EACH = 20000 };
    struct nfs_op *op = calloc(OPS, sizeof(*op));
    uint8_t *data = malloc(OPS * EACH), *memory;
    struct nfs3_attr attr;
    struct nfs3_fh fh;

    (void)state;
    fake_add_file(&fake, "plain", OPS * EACH - 7);
    connect_fake(-1);
    assert_int_equal(nfs_lookup(client, "plain", true, &fh, &attr), 0);
    for (int turn = 0; turn < 2; turn++) {
        memory = op[0].memory;
        finished = 0;
        for (unsigned i = 0; i < OPS; i++) {
            op[i].proc = NFS3_READ;
            op[i].args.range.fh = fh;
            op[i].args.range.offset = i * EACH;
            op[i].args.range.count = EACH;
            op[i].buffer = data + i * EACH;
            op[i].done = count;
            nfs_start(client, &op[i]);
        }
        while (finished < OPS)
            nfs_wait(client, -1);
        for (unsigned i = 0; i < OPS; i++) {
            assert_int_equal(op[i].error, 0);
            assert_int_equal(op[i].result.read.count, i < OPS - 1 ? EACH : EACH - 7);
            assert_int_equal(op[i].result.read.eof, i == OPS - 1);
        }
        for (size_t i = 0; i < OPS * EACH - 7; i++)
            assert_int_equal(data[i], fake_octet(i));
        assert_true(turn == 0 || op[0].memory == memory);
    }
    for (unsigned i = 0; i < OPS; i++)
        nfs_forget(&op[i]);
    free(op);
    free(data);
}

static int get_attr(struct nfs_op *op)
{
    *op = (struct nfs_op){.proc = NFS3_GETATTR, .args.fh = *nfs_root(client)};
    return nfs_call(client, op);
}

/* JUKEBOX is retried; an RPC refusal is an error with a reason; no reply is a time-out. */
static void refusals(void **state)
{
    struct nfs_op op;

    (void)state;
    connect_fake(-1);
    atomic_store(&fake.calls[NFS3_GETATTR], 0);
    atomic_store(&fake.jukebox, 2);
    assert_int_equal(get_attr(&op), 0);
    assert_int_equal(atomic_load(&fake.calls[NFS3_GETATTR]), 3);
    nfs_forget(&op);
    atomic_store(&fake.refusal, RPC_GARBAGE_ARGS);
    atomic_store(&fake.refuse, 2);
    assert_int_equal(get_attr(&op), 0);
    nfs_forget(&op);
    atomic_store(&fake.refuse, 3);
    assert_int_equal(get_attr(&op), -EIO);
    assert_string_equal(op.trouble, rpc_result_str(RPC_GARBAGE_ARGS));
    nfs_forget(&op);
    atomic_store(&fake.refusal, RPC_AUTH_ERROR);
    atomic_store(&fake.refuse, 1);
    assert_int_equal(get_attr(&op), -EACCES);
    nfs_forget(&op);
    atomic_store(&fake.lie, LIE_GARBAGE);
    assert_int_equal(get_attr(&op), -EPROTO);
    nfs_forget(&op);
}

/* A server that knows another program by the number of ours has no digests either. */
static void no_digests(void **state)
{
    static const enum rpc_result results[] = {RPC_PROG_UNAVAIL, RPC_PROG_MISMATCH, RPC_PROC_UNAVAIL};

    (void)state;
    connect_fake(-1);
    for (int i = 0; i < 3; i++) {
        struct nfs_op op = {.proc = NFS3_DIGEST, .args.range = {.fh = *nfs_root(client), .count = 1}};

        atomic_store(&fake.refusal, results[i]);
        atomic_store(&fake.refuse, 1);
        assert_int_equal(nfs_call(client, &op), -EOPNOTSUPP);
        nfs_forget(&op);
    }
}

static void time_outs(void **state)
{
    struct nfs_op op;

    (void)state;
    connect_fake(200);
    atomic_store(&fake.drop, 1);
    assert_int_equal(get_attr(&op), -ETIMEDOUT);
    nfs_forget(&op);
    atomic_store(&fake.jukebox, 100);
    assert_int_equal(get_attr(&op), -ETIMEDOUT);
    nfs_forget(&op);
    atomic_store(&fake.jukebox, 0);
    assert_int_equal(get_attr(&op), 0);
    nfs_forget(&op);
}

/* The server restarts with calls pending. */
static void restarts(void **state)
{
    struct requester_stats stats;
    struct nfs_op op;

    (void)state;
    connect_fake(-1);
    for (unsigned i = 1; i <= 3; i++) {
        atomic_store(&fake.cut, 1);
        assert_int_equal(get_attr(&op), 0);
        nfs_forget(&op);
        nfs_client_stats(client, &stats);
        assert_int_equal(stats.connects, 1 + i);
        assert_true(stats.retransmitted >= i);
    }
}

/* Closing ends what is pending, and a cancelled op is never reported. */
static void ends(void **state)
{
    struct nfs_op op[2];

    (void)state;
    connect_fake(-1);
    atomic_store(&fake.drop, 2);
    finished = 0;
    for (unsigned i = 0; i < 2; i++) {
        op[i] = (struct nfs_op){.proc = NFS3_GETATTR, .args.fh = *nfs_root(client), .done = count};
        nfs_start(client, &op[i]);
    }
    nfs_cancel(client, &op[0]);
    assert_int_equal(finished, 0);
    nfs_client_close(client);
    client = NULL;
    assert_int_equal(finished, 1);
    assert_int_equal(op[1].error, -ECANCELED);
    nfs_forget(&op[0]);
    nfs_forget(&op[1]);
}

static void lying_results(void **state)
{
    uint8_t data[5000];
    struct nfs_op op = {.proc = NFS3_READ, .buffer = data};
    struct nfs3_attr attr;
    struct nfs3_fh fh;

    (void)state;
    fake_add_file(&fake, "plain", 4000);
    connect_fake(-1);
    assert_int_equal(nfs_lookup(client, "plain", true, &fh, &attr), 0);
    op.args.range.fh = fh;
    op.args.range.count = 4096;
    assert_int_equal(nfs_call(client, &op), 0);
    assert_int_equal(op.result.read.count, 4000);
    atomic_store(&fake.lie, LIE_COUNT);
    assert_int_equal(nfs_call(client, &op), -EPROTO);
    atomic_store(&fake.lie, LIE_TAKES_MORE);
    op.proc = NFS3_WRITE;
    op.args.write.fh = fh;
    op.args.write.offset = 0;
    op.args.write.count = op.args.write.length = 100;
    op.args.write.stable = NFS3_FILE_SYNC;
    op.args.write.data = data;
    assert_int_equal(nfs_call(client, &op), -EPROTO);
    nfs_forget(&op);
}

static void no_mount(void **state)
{
    struct nfs_client_attr attr = attr_of_fake();
    char error[NFS_CLIENT_TEXT];

    (void)state;
    attr.path = "/other";
    assert_null(nfs_client_open(&attr, error));
    assert_int_equal(errno, ENOENT);
    assert_non_null(strstr(error, "/other"));
    assert_int_equal(nfs_client_export(&attr, "/fake/a/b", error), 5);
    assert_int_equal(nfs_client_export(&attr, "/fake", error), 5);
    assert_int_equal(nfs_client_export(&attr, "/faked", error), 0);
    attr.path = "/fake";
    attr.mount_port = 1;
    assert_null(nfs_client_open(&attr, error));
    assert_int_equal(errno, ECONNREFUSED);
    attr.mount_port = fake.mount_port;
    attr.port = 1;
    assert_null(nfs_client_open(&attr, error));
    assert_int_equal(errno, ECONNREFUSED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths),    TEST(reads), TEST(refusals),      TEST(no_digests), TEST(time_outs),
        TEST(restarts), TEST(ends),  TEST(lying_results), TEST(no_mount),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
