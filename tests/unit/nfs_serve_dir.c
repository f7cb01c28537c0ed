/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_dir.c - test that READDIR and READDIRPLUS list each name once, with replies of many sizes, while other
 * names are created and removed. */
#include "nfs_serve.h"

enum { MANY = 10000, TOUCHED = 200 };

struct list {
    unsigned seen[MANY];
    unsigned dots, others, calls;
    uint64_t cookie;
    uint64_t root_fileid;
};

static enum nfs3_status list_from(struct bed *b, bool plus, const struct nfs3_fh *dir, uint64_t cookie,
                                  uint32_t dircount, uint32_t maxcount)
{
    union nfs3_args args = {.list = {.dir = *dir, .cookie = cookie, .dircount = dircount, .maxcount = maxcount}};

    return call(b, plus ? NFS3_READDIRPLUS : NFS3_READDIR, &args);
}

static void check_entry(struct bed *b, struct list *l, const struct nfs3_entry *e, bool plus)
{
    char name[NFS3_NAME_MAX + 1];
    unsigned i;
    struct stat st;

    snprintf(name, sizeof(name), "%.*s", (int)e->name.length, e->name.at);
    assert_int_not_equal(e->cookie, 0);
    assert_int_not_equal(e->fileid, 0);
    l->cookie = e->cookie;
    if (name[0] == '.') {
        l->dots++;
        assert_int_equal(e->fileid, l->root_fileid);
        return;
    }
    if (sscanf(name, "file %u", &i) != 1 || i >= MANY) {
        l->others++;
        return;
    }
    l->seen[i]++;
    if (!plus)
        return;
    assert_true(e->attr.present && e->fh.present);
    if (i % 1000 == 0) {
        assert_int_equal(lstat(local(b, name), &st), 0);
        assert_int_equal(e->attr.attr.fileid, st.st_ino);
        assert_int_equal(e->fileid, st.st_ino);
    }
}

/* Check the entries of one reply, and return their octets of directory information. */
static uint64_t take(struct bed *b, struct list *l, bool plus)
{
    struct xdr_in in = {.at = b->result.list.entries, .left = b->result.list.length};
    struct nfs3_entry e;
    uint64_t octets = 0;

    l->calls++;
    while (nfs3_get_entry(&in, &e, plus)) {
        octets += 20 + e.name.length + xdr_roundup(e.name.length);
        check_entry(b, l, &e, plus);
    }
    assert_false(in.bad);
    return octets;
}

static void make_many(struct bed *b, unsigned n)
{
    char name[32];
    int dir = open(b->dir, O_RDONLY | O_DIRECTORY);

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "file %u", i);
        assert_int_equal(mknodat(dir, name, S_IFREG | 0600, 0), 0);
    }
    close(dir);
}

static void list_all(struct bed *b, struct list *l, bool plus, uint32_t dircount, uint32_t maxcount)
{
    struct stat st;

    memset(l, 0, sizeof(*l));
    assert_int_equal(stat(b->dir, &st), 0);
    l->root_fileid = st.st_ino;
    do {
        assert_int_equal(list_from(b, plus, &b->root, l->cookie, dircount, maxcount), NFS3_OK);
        assert_true(b->result.list.length || b->result.list.eof);
        assert_true(take(b, l, plus) <= dircount || !plus);
        /* Create or remove another name while the listing goes on. */
        if (l->calls % 16 == 0) {
            char name[32];

            snprintf(name, sizeof(name), "other %u", l->calls / 16 % TOUCHED);
            if (unlink(local(b, name)))
                local_write(b, name, "", 0600);
        }
    } while (!b->result.list.eof);
}

static void many(void **state)
{
    struct bed *b = *state;
    struct list *l = malloc(sizeof(*l));
    static const struct {
        bool plus;
        uint32_t dircount, maxcount;
    } row[] = {{false, 0, 1024}, {false, 0, 65536}, {true, 512, 4096}, {true, 65536, 8192}, {true, 65536, 1 << 20}};

    make_many(b, MANY);
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        list_all(b, l, row[i].plus, row[i].dircount, row[i].maxcount);
        assert_int_equal(l->dots, 2);
        for (unsigned j = 0; j < MANY; j++)
            assert_int_equal(l->seen[j], 1);
    }
    free(l);
}

/* Try each maxcount: a list that fits exactly is complete, a list is incomplete with one octet less, and a reply
 * without room for an entry is NFS3ERR_TOOSMALL. */
static void sizes(void **state)
{
    struct bed *b = *state;
    struct list *l = calloc(1, sizeof(*l));
    struct stat st;

    make_many(b, 3);
    assert_int_equal(stat(b->dir, &st), 0);
    for (unsigned plus = 0; plus < 2; plus++) {
        uint32_t whole;

        assert_int_equal(list_from(b, plus, &b->root, 0, 4096, 4096), NFS3_OK);
        assert_true(b->result.list.eof);
        whole = 104 + b->result.list.length;
        for (uint32_t n = 0; n <= whole + 1; n++) {
            enum nfs3_status status = list_from(b, plus, &b->root, 0, 4096, n);

            assert_true(b->result.attr.present);
            if (n < 132)
                assert_int_equal(status, NFS3ERR_TOOSMALL);
            if (n >= whole)
                assert_int_equal(104 + b->result.list.length, whole);
            if (status != NFS3_OK) {
                assert_int_equal(status, NFS3ERR_TOOSMALL);
                continue;
            }
            assert_int_equal(b->result.list.eof, n >= whole);
            assert_true(104 + b->result.list.length <= n);
            memset(l, 0, sizeof(*l));
            l->root_fileid = st.st_ino;
            take(b, l, plus);
            assert_true(l->cookie != 0);
        }
    }
    assert_int_equal(list_from(b, true, &b->root, 0, 23, 4096), NFS3ERR_TOOSMALL);
    assert_int_equal(list_from(b, true, &b->root, 0, 28, 4096), NFS3_OK);
    assert_true(take(b, l, true) <= 28);
    b->space = 40; /* the transport has room for fewer octets */
    assert_int_equal(list_from(b, false, &b->root, 0, 0, 4096), NFS3_OK);
    assert_true(b->result.list.length <= 40);
    free(l);
}

static void cookies(void **state)
{
    struct bed *b = *state;
    struct list *l = calloc(1, sizeof(*l));
    union nfs3_args args = {.list = {.dir = b->root, .maxcount = 4096}};
    struct stat st;
    uint64_t last;

    make_many(b, 3);
    assert_int_equal(stat(b->dir, &st), 0);
    l->root_fileid = st.st_ino;
    assert_int_equal(list_from(b, false, &b->root, 0, 0, 4096), NFS3_OK);
    take(b, l, false);
    last = l->cookie;
    /* A listing after the last cookie is empty and has the end flag. */
    assert_int_equal(list_from(b, false, &b->root, last, 0, 4096), NFS3_OK);
    assert_int_equal(b->result.list.length, 0);
    assert_true(b->result.list.eof);
    assert_int_equal(list_from(b, false, &b->root, UINT64_MAX, 0, 4096), NFS3ERR_BAD_COOKIE);
    assert_int_equal(list_from(b, false, &b->root, (uint64_t)INT64_MAX + 1, 0, 4096), NFS3ERR_BAD_COOKIE);
    assert_true(b->result.attr.present);
    args.list.cookie = last;
    args.list.verifier[7] = 1;
    assert_int_equal(call(b, NFS3_READDIR, &args), NFS3ERR_BAD_COOKIE);
    args.list.cookie = 0;
    assert_int_equal(call(b, NFS3_READDIR, &args), NFS3_OK);
    free(l);
}

/* The server lists a name of 255 octets that is not UTF-8, and a name with a line feed. The entry ".." in a directory
 * below the root has the handle of the parent. */
static void names(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh dir, fh;
    char name[NFS3_NAME_MAX + 1];
    unsigned found = 0;
    struct xdr_in in;
    struct nfs3_entry e;

    memset(name, 0xfe, sizeof(name) - 1);
    name[NFS3_NAME_MAX] = 0;
    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    dir = lookup(b, "d");
    assert_int_equal(by_name(b, NFS3_CREATE, &dir, name), NFS3_OK);
    assert_int_equal(by_name(b, NFS3_CREATE, &dir, "a\nb"), NFS3_OK);
    assert_int_equal(list_from(b, true, &dir, 0, 4096, 4096), NFS3_OK);
    in = (struct xdr_in){.at = b->result.list.entries, .left = b->result.list.length};
    while (nfs3_get_entry(&in, &e, true)) {
        assert_true(e.fh.present && e.attr.present);
        if (e.name.length == NFS3_NAME_MAX)
            assert_memory_equal(e.name.at, name, NFS3_NAME_MAX);
        found += e.name.length == NFS3_NAME_MAX || (e.name.length == 3 && !memcmp(e.name.at, "a\nb", 3));
        if (e.name.length == 2 && !memcmp(e.name.at, "..", 2)) {
            fh = e.fh.fh;
            assert_memory_equal(&fh, &b->root, sizeof(fh.length) + fh.length);
        }
    }
    assert_int_equal(found, 2);
}

/* A directory that was moved out of the export, and is still believed to be inside, does not tell of the outside. */
static void parent_outside(void **state)
{
    struct bed *b = *state;
    char outside[] = "/tmp/nfs_serve_out.XXXXXX", to[64];
    struct stat self, out;
    struct nfs3_entry e;
    struct nfs3_fh dir;
    struct xdr_in in;

    assert_non_null(mkdtemp(outside));
    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    dir = lookup(b, "d");
    assert_int_equal(list_from(b, false, &dir, 0, 4096, 4096), NFS3_OK);
    snprintf(to, sizeof(to), "%s/d", outside);
    assert_int_equal(rename(local(b, "d"), to), 0);
    assert_int_equal(stat(to, &self), 0);
    assert_int_equal(stat(outside, &out), 0);
    for (int plus = 0; plus < 2; plus++)
        if (list_from(b, plus, &dir, 0, 4096, 4096) == NFS3_OK) {
            in = (struct xdr_in){.at = b->result.list.entries, .left = b->result.list.length};
            while (nfs3_get_entry(&in, &e, plus)) {
                assert_int_not_equal(e.fileid, out.st_ino);
                assert_int_equal(e.fileid, self.st_ino);
            }
        }
    rmdir(to);
    rmdir(outside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bed_test(many), bed_test(sizes), bed_test(cookies), bed_test(names), bed_test(parent_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
