/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_model.c - random operations against a model: the server and the system's own calls on another directory
 * return the same results and leave the same trees. The argument is an optional seed. */
#include "nfs_serve.h"
#include "tests/lib/rng.h"

#include <dirent.h>

enum { STEPS = 6000, NAMES = 4, DEPTH = 3, HELD = 8, IO = 9000, FILE_MAX = 100000, COMPARE_EVERY = 500 };

static uint64_t first_seed = 1;

struct held { /* a file that the test uses by its handle, after any RENAME */
    struct nfs3_fh fh;
    int fd;
};

struct model {
    struct bed *b;
    struct rng rng;
    char dir[64];
    int root;
    unsigned views; /* READs served from a view */
    struct held held[HELD];
    uint8_t data[IO], mine[IO];
};

struct spot { /* a directory on both sides, and a name in it */
    struct nfs3_fh fh;
    enum nfs3_status status; /* status of the LOOKUPs on the path to the directory */
    int fd;                  /* or -errno */
    char name[2];
};

static void random_name(struct model *m, char name[2])
{
    name[0] = (char)('a' + rng_below(&m->rng, NAMES));
    name[1] = 0;
}

/* Walk down at most DEPTH - 1 random names on both sides, without following symbolic links. */
static struct spot random_spot(struct model *m)
{
    struct spot s = {.fh = m->b->root, .fd = dup(m->root)};

    for (uint32_t depth = rng_below(&m->rng, DEPTH); depth && s.fd >= 0 && s.status == NFS3_OK; depth--) {
        struct nfs3_fh fh;
        int fd;

        random_name(m, s.name);
        fd = openat(s.fd, s.name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
        fd = fd < 0 ? -errno : fd;
        close(s.fd);
        s.fd = fd;
        s.status = lookup_in(m->b, &s.fh, s.name, &fh);
        if (s.status == NFS3_OK && m->b->result.attr.attr.type != NFS3_DIR)
            s.status = NFS3ERR_NOTDIR;
        s.fh = fh;
    }
    random_name(m, s.name);
    assert_int_equal(s.status, s.fd < 0 ? nfs3_status_of(-s.fd) : NFS3_OK);
    return s;
}

/* --- operations: the status by NFS; the system's is left in `error`, 0 or an errno ------------------------------- */

static enum nfs3_status make(struct model *m, const struct spot *s, int *error)
{
    union nfs3_args args = {.make = {.where = where(&s->fh, s->name), .target = text("b/../c"), .type = NFS3_FIFO}};
    enum nfs3_proc proc = NFS3_CREATE + rng_below(&m->rng, 4);
    mode_t mode = 0700 + rng_below(&m->rng, 64);
    int bad;

    args.make.attr.set_mode = true;
    args.make.attr.mode = mode;
    args.make.how = NFS3_GUARDED;
    if (proc == NFS3_CREATE)
        bad = openat(s->fd, s->name, O_CREAT | O_EXCL | O_RDWR, mode);
    else if (proc == NFS3_MKDIR)
        bad = mkdirat(s->fd, s->name, mode);
    else if (proc == NFS3_SYMLINK)
        bad = symlinkat("b/../c", s->fd, s->name);
    else
        bad = mkfifoat(s->fd, s->name, mode);
    *error = bad < 0 ? errno : 0;
    if (bad > 0)
        close(bad);
    return call(m->b, proc, &args);
}

static enum nfs3_status unmake(struct model *m, const struct spot *s, int *error)
{
    bool dir = rng_one_in(&m->rng, 2);

    *error = unlinkat(s->fd, s->name, dir ? AT_REMOVEDIR : 0) ? errno : 0;
    return by_name(m->b, dir ? NFS3_RMDIR : NFS3_REMOVE, &s->fh, s->name);
}

static enum nfs3_status move_or_link(struct model *m, const struct spot *s, int *error)
{
    bool link = rng_one_in(&m->rng, 2);
    struct spot to = random_spot(m);
    enum nfs3_status status;
    struct nfs3_fh fh;
    struct stat st;

    *error = 0;
    if (to.fd < 0)
        return NFS3_OK;
    if (link) {
        status = lookup_in(m->b, &s->fh, s->name, &fh);
        if (status == NFS3_OK)
            status = hard_link(m->b, &fh, &to.fh, to.name);
        *error = linkat(s->fd, s->name, to.fd, to.name, 0) ? errno : 0;
        if (!fstatat(s->fd, s->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
            *error = EINVAL; /* expect NFS3ERR_INVAL for a link to a directory, whatever else is wrong */
    } else {
        *error = renameat(s->fd, s->name, to.fd, to.name) ? errno : 0;
        status = move(m->b, &s->fh, s->name, &to.fh, to.name);
    }
    close(to.fd);
    return status;
}

/* Look a file up by its name and add its handle to `held`. */
static enum nfs3_status hold(struct model *m, const struct spot *s, int *error)
{
    struct held *h = &m->held[rng_below(&m->rng, HELD)];
    struct nfs3_fh fh;
    enum nfs3_status status = lookup_in(m->b, &s->fh, s->name, &fh);
    bool file = status == NFS3_OK && m->b->result.attr.attr.type == NFS3_REG;
    struct stat st;

    *error = fstatat(s->fd, s->name, &st, AT_SYMLINK_NOFOLLOW) ? errno : 0;
    if (*error || !file)
        return status;
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(m->b->result.attr.attr.mode, st.st_mode & 07777);
    close(h->fd);
    h->fd = openat(s->fd, s->name, O_RDWR | O_NOFOLLOW);
    h->fh = fh;
    return status;
}

static enum nfs3_status use(struct model *m, const struct spot *s, int *error)
{
    struct held *h = &m->held[rng_below(&m->rng, HELD)];
    uint64_t offset = rng_size(&m->rng, FILE_MAX);
    uint32_t n = rng_size(&m->rng, IO);
    struct nfs3_sattr attr = {.set_size = true, .size = offset};
    enum nfs3_status status;
    struct stat st;
    ssize_t got;

    (void)s;
    *error = 0;
    if (h->fd < 0)
        return NFS3_OK;
    assert_int_equal(fstat(h->fd, &st), 0);
    *error = st.st_nlink ? 0 : ESTALE;
    switch (rng_below(&m->rng, 4)) {
    case 0:
        attr.set_mode = true;
        attr.mode = 0600 + rng_below(&m->rng, 64);
        assert_int_equal(ftruncate(h->fd, (off_t)offset) | fchmod(h->fd, attr.mode), 0);
        return set(m->b, &h->fh, &attr);
    case 1:
        got = pread(h->fd, m->mine, n, (off_t)offset);
        status = get(m->b, &h->fh, offset, n);
        if (status != NFS3_OK)
            return status;
        m->views += m->b->view != NULL;
        assert_int_equal(m->b->result.read.count, got);
        assert_memory_equal(m->b->result.read.data, m->mine, (size_t)got);
        assert_int_equal(m->b->result.read.eof, (int64_t)offset + got >= st.st_size);
        return status;
    default:
        rng_fill(&m->rng, m->data, n);
        assert_int_equal(pwrite(h->fd, m->data, n, (off_t)offset), n);
        return put(m->b, &h->fh, offset, m->data, n, NFS3_UNSTABLE);
    }
}

/* --- trees ------------------------------------------------------------------------------------------------------ */

static void same_file(struct model *m, const struct stat *st, const struct spot *s)
{
    char mine[NFS3_PATH_MAX];
    struct nfs3_fh fh;
    struct nfs3_attr *a = &m->b->result.attr.attr;
    ssize_t n;
    int fd;

    assert_int_equal(lookup_in(m->b, &s->fh, s->name, &fh), NFS3_OK);
    assert_int_equal(a->mode, st->st_mode & 07777);
    assert_int_equal(a->nlink, st->st_nlink);
    if (S_ISLNK(st->st_mode)) {
        assert_int_equal(a->type, NFS3_LNK);
        n = readlinkat(s->fd, s->name, mine, sizeof(mine));
        assert_int_equal(simple(m->b, NFS3_READLINK, &fh), NFS3_OK);
        assert_int_equal(m->b->result.target.length, n);
        assert_memory_equal(m->b->result.target.at, mine, (size_t)n);
    } else if (S_ISREG(st->st_mode)) {
        assert_int_equal(a->type, NFS3_REG);
        assert_int_equal(a->size, st->st_size);
        fd = openat(s->fd, s->name, O_RDONLY);
        for (off_t at = 0; at < st->st_size; at += IO) {
            n = pread(fd, m->mine, IO, at);
            assert_int_equal(get(m->b, &fh, (uint64_t)at, IO), NFS3_OK);
            assert_int_equal(m->b->result.read.count, n);
            assert_memory_equal(m->b->result.read.data, m->mine, (size_t)n);
        }
        close(fd);
    }
}

/* Count the entries that READDIRPLUS returns, with "." and "..". */
static unsigned count_entries(struct model *m, const struct nfs3_fh *dir)
{
    union nfs3_args args = {.list = {.dir = *dir, .dircount = 65536, .maxcount = 65536}};
    struct xdr_in in;
    struct nfs3_entry e;
    unsigned n = 0;

    assert_int_equal(call(m->b, NFS3_READDIRPLUS, &args), NFS3_OK);
    assert_true(m->b->result.list.eof);
    in = (struct xdr_in){.at = m->b->result.list.entries, .left = m->b->result.list.length};
    while (nfs3_get_entry(&in, &e, true))
        n++;
    return n;
}

static unsigned same_tree(struct model *m, const struct nfs3_fh *fh, int fd)
{
    DIR *dir = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY));
    struct spot s = {.fh = *fh, .fd = fd};
    unsigned n = 0, objects = 0;
    struct dirent *d;
    struct nfs3_fh sub;
    struct stat st;

    assert_non_null(dir);
    while ((d = readdir(dir))) {
        n++;
        if (d->d_name[0] == '.')
            continue;
        objects++;
        memcpy(s.name, d->d_name, 2);
        assert_int_equal(fstatat(fd, s.name, &st, AT_SYMLINK_NOFOLLOW), 0);
        same_file(m, &st, &s);
        if (!S_ISDIR(st.st_mode))
            continue;
        s.fd = openat(fd, s.name, O_PATH | O_DIRECTORY);
        assert_int_equal(lookup_in(m->b, fh, s.name, &sub), NFS3_OK);
        objects += same_tree(m, &sub, s.fd);
        close(s.fd);
        s.fd = fd;
    }
    closedir(dir);
    assert_int_equal(count_entries(m, fh), n);
    return objects;
}

static void step(struct model *m)
{
    static enum nfs3_status (*const what[])(struct model * m, const struct spot *s,
                                            int *error) = {make, make, unmake, move_or_link, hold, use, use, use};
    uint32_t which = rng_below(&m->rng, sizeof(what) / sizeof(*what));
    struct spot s = random_spot(m);
    enum nfs3_status status;
    int error;

    if (s.fd < 0)
        return;
    status = what[which](m, &s, &error);
    if (status != nfs3_status_of(error))
        print_message("operation %u: %d by NFS, errno %d\n", which, (int)status, error);
    assert_int_equal(status, nfs3_status_of(error));
    close(s.fd);
}

static void model(void **state)
{
    struct model *m = calloc(1, sizeof(*m));
    unsigned objects = 0;

    m->b = *state;
    m->rng = (struct rng){first_seed};
    print_message("seed %llu\n", (unsigned long long)first_seed);
    snprintf(m->dir, sizeof(m->dir), "%s", m->b->dir);
    memcpy(strstr(m->dir, "nfs_serve"), "nfs_model", 9);
    assert_int_equal(mkdir(m->dir, 0700), 0);
    m->root = open(m->dir, O_PATH | O_DIRECTORY);
    for (unsigned i = 0; i < HELD; i++)
        m->held[i].fd = -1;
    for (unsigned i = 1; i <= STEPS; i++) {
        step(m);
        if (i % COMPARE_EVERY == 0)
            objects += same_tree(m, &m->b->root, m->root);
    }
    assert_true(objects > STEPS / COMPARE_EVERY); /* the trees were not empty */
    print_message("%u from views\n", m->views);
    for (unsigned i = 0; i < HELD; i++) {
        if (m->held[i].fd >= 0)
            close(m->held[i].fd);
    }
    close(m->root);
    free(m);
}

/* Run the model with READs that return views of the page cache. */
static void model_of_views(void **state)
{
    struct bed *b = *state;

    b->views = true;
    model(state);
}

/* Remove the model's directory, too, even after a failed test. */
static int teardown(void **state)
{
    struct bed *b = *state;
    char dir[64];

    snprintf(dir, sizeof(dir), "%s", b->dir);
    memcpy(strstr(dir, "nfs_serve"), "nfs_model", 9);
    identity_drop();
    nftw(dir, bed_remove, 16, FTW_DEPTH | FTW_PHYS);
    return bed_teardown(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(model, bed_setup, teardown),
        cmocka_unit_test_setup_teardown(model_of_views, bed_setup, teardown),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 0);
    umask(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
