/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_client.c - the NFS client and `rddp nfs` against a server that is late, starts again, or lies. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nfs/client/client.h"
#include "tests/suite/lib/nfs_fake.h"

static struct fake fake;
static struct nfs_client *client;
static char work[] = "/tmp/rddp-nfs-XXXXXX";

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
    strcpy(work + strlen(work) - 6, "XXXXXX");
    return mkdtemp(work) ? 0 : -1;
}

static int tear_down(void **state)
{
    char line[128];

    (void)state;
    if (client)
        nfs_client_close(client);
    client = NULL;
    fake_close(&fake);
    snprintf(line, sizeof(line), "rm -rf %s", work);
    return system(line);
}

/* --- the client ------------------------------------------------------------------------------------------------ */

static void paths(void **state)
{
    static const struct {
        const char *path;
        int rc;
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
        int rc = nfs_lookup(client, row[i].path, row[i].follow, &fh, &attr);

        if (rc != row[i].rc || (rc == 0 && attr.fileid != row[i].fileid))
            fail_msg("'%s': %d, file %d", row[i].path, rc, (int)attr.fileid);
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

/* Many READs under way, placed where they belong; and once warm an op's memory stays what it is. */
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

/* JUKEBOX is asked again; what RPC refuses is an error with a reason; no answer is a time-out. */
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

/* The server goes away with calls under way, and comes back. */
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

/* Closing ends what is under way, and a cancelled op is never told of. */
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

/* --- the command ----------------------------------------------------------------------------------------------- */

/* Runs `rddp nfs WORDS` in the work directory; its exit code. Its output is in the files out and err there. */
static int command(const char *words)
{
    char line[1024];
    const char *tool = getenv("RDDP_TOOL");
    int status;

    if (!tool)
        skip();
    snprintf(line, sizeof(line),
             "cd %s && timeout 60 %s nfs --first-delay 0 -o %d --mount-port %d %s >../$(basename %s).out 2>err; "
             "code=$?; mv ../$(basename %s).out out; exit $code",
             work, tool, fake.port, fake.mount_port, words, work, work);
    status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *text_of(const char *name)
{
    static char text[65536];
    char path[512];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", work, name);
    fd = open(path, O_RDONLY | O_NOFOLLOW);
    n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[n < 0 ? 0 : n] = 0;
    if (fd >= 0)
        close(fd);
    return text;
}

static void make_local(const char *name, uint64_t size)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", work, name);
    file = fopen(path, "w");
    assert_non_null(file);
    for (uint64_t i = 0; i < size; i++)
        putc(fake_octet(i), file);
    fclose(file);
}

static bool local_is_whole(const char *name, uint64_t size)
{
    char path[512];
    FILE *file;
    bool whole;

    snprintf(path, sizeof(path), "%s/%s", work, name);
    file = fopen(path, "r");
    if (!file)
        return false;
    for (uint64_t i = 0; i < size; i++)
        if (getc(file) != fake_octet(i)) {
            fclose(file);
            return false;
        }
    whole = getc(file) == EOF;
    fclose(file);
    return whole;
}

static unsigned names_in(const char *name)
{
    char path[512];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", work, name);
    dir = opendir(path);
    for (; dir && readdir(dir); n++)
        ;
    if (dir)
        closedir(dir);
    return n ? n - 2 : 0;
}

/* Sizes around one READ, the server answering in full or with less. */
static void gets(void **state)
{
    static const uint64_t size[] = {0, 1, FAKE_IO - 1, FAKE_IO, FAKE_IO + 1, 9 * FAKE_IO + 3, 40 * FAKE_IO};
    char words[64], name[32];

    (void)state;
    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        snprintf(name, sizeof(name), "f%zu", i);
        fake_add_file(&fake, name, size[i]);
    }
    for (int lie = 0; lie < 2; lie++) {
        atomic_store(&fake.lie, lie ? LIE_SHORT : LIE_NONE);
        for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
            snprintf(words, sizeof(words), "-q get 127.0.0.1:/fake/f%zu got%d-%zu", i, lie, i);
            assert_int_equal(command(words), 0);
            snprintf(name, sizeof(name), "got%d-%zu", lie, i);
            assert_true(local_is_whole(name, size[i]));
            snprintf(words, sizeof(words), "cat 127.0.0.1:/fake/f%zu", i);
            assert_int_equal(command(words), 0);
            assert_true(local_is_whole("out", size[i]));
        }
    }
    atomic_store(&fake.lie, LIE_NO_ATTR);
    assert_int_equal(command("-q cp -r 127.0.0.1:/fake tree"), 0);
    assert_int_equal(names_in("tree"), 7);
    assert_true(local_is_whole("tree/f5", size[5]));
}

static void puts_(void **state)
{
    static const uint64_t size[] = {0, 1, FAKE_IO, FAKE_IO + 1, 21 * FAKE_IO + 9};
    static const enum fake_lie lies[] = {LIE_NONE, LIE_SHORT, LIE_NO_HANDLE};
    char words[64], name[32];

    (void)state;
    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        snprintf(name, sizeof(name), "f%zu", i);
        make_local(name, size[i]);
    }
    for (size_t lie = 0; lie < 3; lie++) {
        atomic_store(&fake.lie, lies[lie]);
        for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
            snprintf(words, sizeof(words), "-q put f%zu 127.0.0.1:/fake/p%zu-%zu", i, lie, i);
            assert_int_equal(command(words), 0);
            snprintf(name, sizeof(name), "p%zu-%zu", lie, i);
            assert_true(fake_is_whole(fake_find(&fake, name), size[i]));
            assert_int_equal(fake_find(&fake, name)->ranges, 0);
            assert_int_equal(fake_find(&fake, name)->mode, 0644);
        }
    }
}

/* RFC 1813 3.3.7, 3.3.21: the verifier changed, so what was not committed is sent once more. */
static void lost_writes(void **state)
{
    static const unsigned after[] = {1, 2, 7, 20};
    uint64_t size = 20 * FAKE_IO;
    char words[96], name[32];

    (void)state;
    make_local("big", size);
    for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
        /* The first WRITE's verifier is all that is known: a change before it is none. */
        bool seen = after[i] > 1;

        atomic_store(&fake.writes_to_live, after[i]);
        snprintf(words, sizeof(words), "--json --depth %zu put big 127.0.0.1:/fake/to%zu", 1 + 3 * i, i);
        assert_int_equal(command(words), 0);
        assert_int_equal(strstr(text_of("out"), "\"server_restarts\": 0") == NULL, seen);
        snprintf(name, sizeof(name), "to%zu", i);
        assert_true(fake_is_whole(fake_find(&fake, name), size));
        assert_int_equal(fake_find(&fake, name)->ranges, 0);
    }
    atomic_store(&fake.every_write, 1);
    assert_int_equal(command("put big 127.0.0.1:/fake/never"), 1);
    assert_non_null(strstr(text_of("err"), "starts again and again"));
}

/* It goes away in the middle, and the copy goes on. */
static void lost_connections(void **state)
{
    (void)state;
    fake_add_file(&fake, "from", 30 * FAKE_IO);
    make_local("big", 10 * FAKE_IO);
    atomic_store(&fake.cut, 3);
    assert_int_equal(command("-q get 127.0.0.1:/fake/from got"), 0);
    assert_true(local_is_whole("got", 30 * FAKE_IO));
    atomic_store(&fake.cut, 3);
    assert_int_equal(command("-q put big 127.0.0.1:/fake/to"), 0);
    assert_true(fake_is_whole(fake_find(&fake, "to"), 10 * FAKE_IO));
}

/* Nothing that is called a name leads out of where the copy goes. */
static void hostile_names(void **state)
{
    static const struct {
        const char *name;
        size_t length;
    } row[] = {{"../evil", 7}, {"/tmp/evil", 9}, {"a/b", 3}, {"ev\0il", 5}, {"", 0}, {"/", 1}};
    char longest[300];

    (void)state;
    memset(longest, 'x', sizeof(longest));
    for (size_t i = 0; i <= sizeof(row) / sizeof(*row); i++) {
        bool last = i == sizeof(row) / sizeof(*row);
        struct fake_file *file = fake_add_file(&fake, "good", 10);

        fake_add(&fake, last ? longest : row[i].name, last ? 256 : row[i].length, NFS3_REG);
        assert_int_equal(command("-q cp -r 127.0.0.1:/fake/. tree"), 4);
        assert_non_null(strstr(text_of("err"), "the server gives a name"));
        assert_int_equal(command("ls 127.0.0.1:/fake"), 4);
        assert_int_equal(names_in("."), 3);
        assert_true(names_in("tree") <= 1);
        assert_int_equal(access("/tmp/evil", F_OK), -1);
        free(file->data);
        fake.files = 0;
    }
    /* These two are in every directory. */
    fake_add(&fake, ".", 1, NFS3_DIR);
    fake_add(&fake, "..", 2, NFS3_DIR);
    assert_int_equal(command("-q cp -r 127.0.0.1:/fake tree"), 0);
}

/* A link out, and then something of the same name that would go through it. */
static void hostile_links(void **state)
{
    struct fake_file *file;
    char path[512];

    (void)state;
    snprintf(path, sizeof(path), "%s/outside", work);
    assert_int_equal(mkdir(path, 0700), 0);
    make_local("victim", 3);
    fake_add(&fake, "a", 1, NFS3_LNK)->target = "../outside";
    fake_add(&fake, "b", 1, NFS3_LNK)->target = "../victim";
    fake_add(&fake, "a", 1, NFS3_DIR);
    file = fake_add_file(&fake, "b", 2000);
    assert_int_equal(command("-q cp -r 127.0.0.1:/fake tree"), 1);
    assert_int_equal(names_in("outside"), 0);
    assert_true(local_is_whole("victim", 3));
    /* The link was replaced, not followed. */
    assert_true(local_is_whole("tree/b", file->size));
}

static void lying_servers(void **state)
{
    static const struct {
        enum fake_lie lie;
        const char *words;
        int code;
        const char *says;
    } row[] = {
        {LIE_CIRCLE, "ls 127.0.0.1:/fake", 4, "circle"},
        {LIE_CIRCLE, "-q cp -r 127.0.0.1:/fake tree", 4, "circle"},
        {LIE_NO_NAMES, "ls 127.0.0.1:/fake", 4, "neither a name nor the end"},
        {LIE_NO_OCTETS, "get 127.0.0.1:/fake/big got", 4, "neither octets nor the end"},
        {LIE_NO_OCTETS, "cat 127.0.0.1:/fake/big", 1, "neither octets nor the end"},
        {LIE_EARLY_END, "get 127.0.0.1:/fake/big got", 1, "ends before"},
        {LIE_EARLY_END, "cat 127.0.0.1:/fake/big", 1, "changed while it was read"},
        {LIE_COUNT, "get 127.0.0.1:/fake/big got", 4, "RFC 1813"},
        {LIE_TAKES_NONE, "put big 127.0.0.1:/fake/to", 4, "takes no octets"},
        {LIE_TAKES_MORE, "put big 127.0.0.1:/fake/to", 4, "RFC 1813"},
        {LIE_GARBAGE, "ls 127.0.0.1:/fake", 4, "RFC 1813"},
    };

    (void)state;
    fake_add_file(&fake, "big", 5 * FAKE_IO);
    make_local("big", 5 * FAKE_IO);
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        atomic_store(&fake.lie, row[i].lie);
        int code = command(row[i].words);
        if (code != row[i].code || !strstr(text_of("err"), row[i].says))
            fail_msg("%s: exit code %d: %s", row[i].words, code, text_of("err"));
        atomic_store(&fake.lie, LIE_NONE);
    }
    /* No part of a file was left behind. */
    assert_true(names_in(".") <= 4);
    /* A size that cannot be. */
    fake_find(&fake, "big")->said_size = UINT64_MAX;
    assert_int_equal(command("get 127.0.0.1:/fake/big got"), 1);
    fake_find(&fake, "big")->said_size = 1ULL << 60;
    assert_int_equal(command("get 127.0.0.1:/fake/big got"), 1);
    assert_true(names_in(".") <= 4);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths),         TEST(reads),         TEST(refusals),      TEST(time_outs),
        TEST(restarts),      TEST(ends),          TEST(lying_results), TEST(no_mount),
        TEST(gets),          TEST(puts_),         TEST(lost_writes),   TEST(lost_connections),
        TEST(hostile_names), TEST(hostile_links), TEST(lying_servers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
