/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_command.c - `rddp nfs` against a server that is late, restarts, or lies. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite/lib/nfs_fake.h"

static struct fake fake;
static char work[] = "/tmp/rddp-nfs-XXXXXX";

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
    fake_close(&fake);
    snprintf(line, sizeof(line), "rm -rf %s", work);
    return system(line);
}

/* --- the command ----------------------------------------------------------------------------------------------- */

/* Runs `rddp nfs WORDS` in the work directory and returns its exit code. Its output is in the files out and err
 * there. */
static int command(const char *words)
{
    char line[1024];
    const char *tool = getenv("RDDP_TOOL");
    int status;

    if (!tool)
        skip();
    snprintf(line, sizeof(line), "cd %s && timeout 60 %s nfs --first-delay 0 -p %d --mount-port %d %s >out 2>err", work,
             tool, fake.port, fake.mount_port, words);
    fake_sync(&fake);
    status = system(line);
    fake_sync(&fake);
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

/* Returns how many names exist at the server. */
static unsigned names_there(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < fake.files; i++)
        n += !fake.file[i].removed;
    return n;
}

/* Sizes around one READ; the server answers in full or with less. */
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

/* After any failure, the name is never given to a part of a file, and nothing else remains. */
static void put_fails(void **state)
{
    (void)state;
    make_local("big", 9 * FAKE_IO);
    fake_add_file(&fake, "to", 10);
    atomic_store(&fake.lie, LIE_TAKES_NONE);
    assert_int_equal(command("-q put big 127.0.0.1:/fake/to"), 4);
    assert_true(fake_is_whole(fake_find(&fake, "to"), 10));
    assert_int_equal(names_there(), 1);
    atomic_store(&fake.lie, LIE_NONE);
    assert_int_equal(command("-q put big 127.0.0.1:/fake/to"), 0);
    assert_true(fake_is_whole(fake_find(&fake, "to"), 9 * FAKE_IO));
    assert_int_equal(names_there(), 1);
}

/* The reply to RENAME is lost in a restart: the retransmitted call finds that it was done. */
static void renamed_twice(void **state)
{
    (void)state;
    make_local("small", 100);
    atomic_store(&fake.forget_rename, 1);
    assert_int_equal(command("-q put small 127.0.0.1:/fake/to"), 0);
    assert_true(atomic_load(&fake.calls[NFS3_RENAME]) > 1);
    assert_true(fake_is_whole(fake_find(&fake, "to"), 100));
    assert_int_equal(names_there(), 1);
}

/* RFC 1813 3.3.7, 3.3.21: the verifier changed, so uncommitted data are sent again. */
static void lost_writes(void **state)
{
    static const unsigned after[] = {1, 2, 7, 20};
    uint64_t size = 20 * FAKE_IO;
    char words[96], name[32];

    (void)state;
    make_local("big", size);
    for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
        /* Only the first WRITE tells the verifier: a change before it is unknown. */
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

static void succeeds(const char *words)
{
    int code = command(words);

    if (code)
        fail_msg("%s: exit code %d: %s", words, code, text_of("err"));
}

/* The connection is lost in the middle, and the copy continues. */
static void lost_connections(void **state)
{
    (void)state;
    fake_add_file(&fake, "from", 30 * FAKE_IO);
    make_local("big", 10 * FAKE_IO);
    atomic_store(&fake.cut_proc, NFS3_READ);
    atomic_store(&fake.cut, 3);
    succeeds("-q get 127.0.0.1:/fake/from got");
    assert_int_equal(atomic_load(&fake.cut), 0);
    assert_true(local_is_whole("got", 30 * FAKE_IO));
    atomic_store(&fake.cut_proc, NFS3_WRITE);
    atomic_store(&fake.cut, 3);
    succeeds("-q put big 127.0.0.1:/fake/to");
    assert_int_equal(atomic_load(&fake.cut), 0);
    assert_true(fake_is_whole(fake_find(&fake, "to"), 10 * FAKE_IO));
}

/* Three connections are lost before the first answer, and the fourth brings it late: the client waits for it. */
static void late_answer(void **state)
{
    (void)state;
    fake_add_file(&fake, "from", 100);
    atomic_store(&fake.cut, 3);
    atomic_store(&fake.jukebox, 2); /* the client is told to ask again after 100 ms, and after 200 ms more */
    succeeds("-q get 127.0.0.1:/fake/from got");
    assert_int_equal(atomic_load(&fake.jukebox), 0);
    assert_true(local_is_whole("got", 100));
}

/* A hostile name never leads out of the target directory. */
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
        assert_non_null(strstr(text_of("err"), "the server returns a name"));
        assert_int_equal(command("ls 127.0.0.1:/fake"), 4);
        assert_int_equal(names_in("."), 3);
        assert_true(names_in("tree") <= 1);
        assert_int_equal(access("/tmp/evil", F_OK), -1);
        free(file->data);
        fake.files = 0;
    }
    /* Every directory contains these two. */
    fake_add(&fake, ".", 1, NFS3_DIR);
    fake_add(&fake, "..", 2, NFS3_DIR);
    assert_int_equal(command("-q cp -r 127.0.0.1:/fake tree"), 0);
}

/* A link to the outside, and then an entry of the same name that would go through it. */
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
        {LIE_COOKIE_0, "ls 127.0.0.1:/fake", 4, "circle"},
        {LIE_NO_NAMES, "ls 127.0.0.1:/fake", 4, "neither a name nor the end"},
        {LIE_NO_OCTETS, "get 127.0.0.1:/fake/big got", 4, "neither octets nor the end"},
        {LIE_NO_OCTETS, "cat 127.0.0.1:/fake/big", 1, "neither octets nor the end"},
        {LIE_EARLY_END, "get 127.0.0.1:/fake/big got", 1, "ends before"},
        {LIE_EARLY_END, "cat 127.0.0.1:/fake/big", 1, "changed while it was read"},
        {LIE_COUNT, "get 127.0.0.1:/fake/big got", 4, "RFC 1813"},
        {LIE_TAKES_NONE, "put big 127.0.0.1:/fake/to", 4, "wrote nothing"},
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
    /* An impossible size. */
    fake_find(&fake, "big")->said_size = UINT64_MAX;
    assert_int_equal(command("get 127.0.0.1:/fake/big got"), 1);
    fake_find(&fake, "big")->said_size = 1ULL << 60;
    assert_int_equal(command("get 127.0.0.1:/fake/big got"), 1);
    assert_true(names_in(".") <= 4);
}

/* What is kept of a directory that does not end has a limit. The long form gets to the directories in it. */
static void endless(void **state)
{
    enum { LIMIT_KIB = 150 << 10 };
    const char *recursive = getenv("RDDP_LONG") ? "-R" : "";
    unsigned names = *recursive ? 5000000 : 600000;
    struct rusage usage;
    char words[128];

    (void)state;
    atomic_store(&fake.lie, LIE_ENDLESS);
    snprintf(words, sizeof(words), "ls %s 127.0.0.1:/fake | head -n %u | tail -n 1", recursive, names);
    assert_int_equal(command(words), 0);
    assert_int_equal(text_of("out")[0], 'f');
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
#ifndef __SANITIZE_THREAD__ /* its shadow memory counts */
    assert_in_range(usage.ru_maxrss, 1, LIMIT_KIB);
#endif
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gets),          TEST(puts_),         TEST(put_fails),
        TEST(renamed_twice), TEST(lost_writes),   TEST(lost_connections),
        TEST(late_answer),   TEST(hostile_names), TEST(hostile_links),
        TEST(lying_servers), TEST(endless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
