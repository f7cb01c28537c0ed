/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_rights.c - access rights: users, read-only exports, and clients without access. */
#include "nfs_serve.h"

#include <linux/capability.h>
#include <pthread.h>
#include <sys/syscall.h>

static bool cannot(void)
{
    if (identity_can_change())
        return false;
    print_message("SKIPPED: other users: needs to be root, and to be allowed to act as them\n");
    return true;
}

static uint32_t allowed(struct bed *b, const struct nfs3_fh *fh)
{
    union nfs3_args args = {.access = {*fh, 0xffffffff}};

    assert_int_equal(call(b, NFS3_ACCESS, &args), NFS3_OK);
    assert_true(b->result.attr.present);
    return b->result.access;
}

enum {
    R = NFS3_ACCESS_READ,
    W = NFS3_ACCESS_MODIFY | NFS3_ACCESS_EXTEND,
    X = NFS3_ACCESS_EXECUTE,
    L = NFS3_ACCESS_LOOKUP,
    D = NFS3_ACCESS_DELETE,
};

static void access_bits(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_fh f = file(b, "f", "", 0750), dir;
    union nfs3_args args = {.access = {f, R}};

    if (cannot())
        skip();
    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    dir = lookup(b, "d");
    assert_int_equal(chown(local(b, "f"), ALICE, BOB), 0);
    assert_int_equal(chown(local(b, "d"), ALICE, BOB), 0);
    assert_int_equal(chmod(local(b, "d"), 0754), 0);
    become(b, ALICE);
    assert_int_equal(allowed(b, &f), R | W | X);
    assert_int_equal(allowed(b, &dir), R | W | L | D);
    assert_int_equal(call(b, NFS3_ACCESS, &args), NFS3_OK);
    assert_int_equal(b->result.access, R);
    become(b, BOB);
    assert_int_equal(allowed(b, &f), R | X);
    assert_int_equal(allowed(b, &dir), R | L);
    become(b, 7);
    assert_int_equal(allowed(b, &f), 0);
    assert_int_equal(allowed(b, &dir), R);
    b->cred.groups = 1;
    b->cred.group[0] = BOB;
    assert_int_equal(allowed(b, &f), R | X);
    /* ACCESS does not give the owner rights that the mode denies. */
    assert_int_equal(chmod(local(b, "f"), 0), 0);
    become(b, ALICE);
    assert_int_equal(allowed(b, &f), 0);
    assert_int_equal(chmod(local(b, "f"), 0700), 0);
    attr.read_only = true;
    bed_again(b, &attr);
    f = lookup(b, "f");
    dir = lookup(b, "d");
    assert_int_equal(allowed(b, &f), R | X);
    assert_int_equal(allowed(b, &dir), R | L);
}

/* RFC 1813 4.4: the owner may read and write whatever the mode is, and the right to execute a file is enough to read
 * it. */
static void data_rights(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh f = file(b, "f", "abc", 0), x = file(b, "x", "abc", 0711), g = file(b, "g", "abc", 0640);
    struct nfs3_sattr size = {.set_size = true, .size = 1};
    struct stat st;

    if (cannot())
        skip();
    assert_int_equal(chown(local(b, "f"), ALICE, ALICE), 0);
    assert_int_equal(chown(local(b, "x"), ALICE, ALICE), 0);
    assert_int_equal(chown(local(b, "g"), ALICE, BOB), 0);
    become(b, ALICE);
    assert_int_equal(get(b, &f, 0, 3), NFS3_OK);
    assert_int_equal(put(b, &f, 0, "xyz", 3, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(simple(b, NFS3_COMMIT, &f), NFS3_OK);
    assert_int_equal(set(b, &f, &size), NFS3_OK);
    become(b, BOB);
    assert_int_equal(get(b, &f, 0, 3), NFS3ERR_ACCES);
    assert_true(b->result.attr.present);
    assert_int_equal(put(b, &f, 0, "xyz", 3, NFS3_UNSTABLE), NFS3ERR_ACCES);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_int_equal(set(b, &f, &size), NFS3ERR_ACCES);
    assert_int_equal(get(b, &x, 0, 3), NFS3_OK);
    assert_int_equal(put(b, &x, 0, "xyz", 3, NFS3_UNSTABLE), NFS3ERR_ACCES);
    assert_int_equal(get(b, &g, 0, 3), NFS3_OK);
    assert_int_equal(put(b, &g, 0, "xyz", 3, NFS3_UNSTABLE), NFS3ERR_ACCES);
    /* A caller that may write may also truncate, as with open(O_TRUNC). Both clear the set-user-ID bit. */
    assert_int_equal(chmod(local(b, "g"), 04660), 0);
    size.set_mtime = NFS3_SERVER_TIME;
    assert_int_equal(set(b, &g, &size), NFS3_OK);
    assert_int_equal(stat(local(b, "g"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0660);
    assert_int_equal(chmod(local(b, "g"), 04660), 0);
    assert_int_equal(put(b, &g, 0, "xyz", 3, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(stat(local(b, "g"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0660);
}

static void attribute_rights(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh f = file(b, "f", "abc", 0666);
    struct nfs3_sattr mode = {.set_mode = true, .mode = 0604}, owner = {.set_uid = true, .uid = BOB};
    struct nfs3_sattr times = {.set_mtime = NFS3_CLIENT_TIME, .mtime = {1, 1}};
    struct nfs3_sattr now = {.set_mtime = NFS3_SERVER_TIME, .set_atime = NFS3_SERVER_TIME};

    if (cannot())
        skip();
    assert_int_equal(chown(local(b, "f"), ALICE, ALICE), 0);
    become(b, BOB);
    assert_int_equal(set(b, &f, &mode), NFS3ERR_PERM);
    assert_int_equal(set(b, &f, &owner), NFS3ERR_PERM);
    assert_int_equal(set(b, &f, &times), NFS3ERR_PERM);
    assert_int_equal(set(b, &f, &now), NFS3_OK);
    become(b, ALICE);
    assert_int_equal(set(b, &f, &mode), NFS3_OK);
    assert_int_equal(set(b, &f, &times), NFS3_OK);
    assert_int_equal(set(b, &f, &owner), NFS3ERR_PERM);
    become(b, 0);
    assert_int_equal(set(b, &f, &owner), NFS3_OK);
    assert_int_equal(b->result.wcc.after.attr.uid, BOB);
}

/* Count the entries of the last READDIRPLUS that have neither attributes nor a handle, without "." and "..". */
static unsigned count_unknown(struct bed *b)
{
    struct xdr_in in = {.at = b->result.list.entries, .left = b->result.list.length};
    struct nfs3_entry e;
    unsigned n = 0;

    while (nfs3_get_entry(&in, &e, true)) {
        bool dots = e.name.at[0] == '.';

        n += !dots && !e.attr.present && !e.fh.present;
    }
    return n;
}

static void directory_rights(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh dir, fh, own, sticky;
    union nfs3_args list = {.list = {.maxcount = 4096, .dircount = 4096}};

    if (cannot())
        skip();
    assert_int_equal(mkdir(local(b, "d"), 0750), 0);
    assert_int_equal(mkdir(local(b, "s"), 0777), 0);
    assert_int_equal(chmod(local(b, "s"), 01777), 0);
    local_write(b, "d/f", "", 0666);
    assert_int_equal(chown(local(b, "d"), ALICE, ALICE), 0);
    dir = lookup(b, "d");
    sticky = lookup(b, "s");
    list.list.dir = dir;
    assert_int_equal(lookup_in(b, &dir, "f", &fh), NFS3_OK);
    become(b, BOB);
    assert_int_equal(lookup_in(b, &dir, "f", &own), NFS3ERR_ACCES);
    assert_true(b->result.dir.present);
    assert_int_equal(call(b, NFS3_READDIR, &list), NFS3ERR_ACCES);
    assert_true(b->result.attr.present);
    for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_RMDIR; proc++)
        assert_int_equal(by_name(b, proc, &dir, proc < NFS3_REMOVE ? "new" : "f"), NFS3ERR_ACCES);
    assert_int_equal(move(b, &dir, "f", &b->root, "g"), NFS3ERR_ACCES);
    assert_int_equal(hard_link(b, &fh, &dir, "g"), NFS3ERR_ACCES);
    become(b, ALICE);
    for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_MKNOD; proc++) {
        static const char *const name[] = {"a", "b", "c", "e"};

        assert_int_equal(by_name(b, proc, &dir, name[proc - NFS3_CREATE]), NFS3_OK);
        assert_int_equal(b->result.attr.attr.uid, ALICE);
        assert_int_equal(b->result.attr.attr.gid, ALICE);
    }
    assert_int_equal(hard_link(b, &fh, &dir, "g"), NFS3_OK);
    assert_int_equal(move(b, &dir, "g", &dir, "h"), NFS3_OK);
    /* With read but not search permission READDIRPLUS returns names without attributes and handles. */
    assert_int_equal(chmod(local(b, "d"), 0744), 0);
    become(b, BOB);
    assert_int_equal(call(b, NFS3_READDIRPLUS, &list), NFS3_OK);
    assert_int_equal(count_unknown(b), 6);
    become(b, ALICE);
    assert_int_equal(by_name(b, NFS3_CREATE, &sticky, "a"), NFS3_OK);
    become(b, BOB);
    assert_int_equal(by_name(b, NFS3_REMOVE, &sticky, "a"), NFS3ERR_PERM);
}

/* A new object gets the requested owner if the caller may set it. Otherwise the object is made and belongs to the
 * caller. */
static void made_for_others(void **state)
{
    struct bed *b = *state;
    union nfs3_args args = {.make = {.where = where(&b->root, "f")}};

    if (cannot())
        skip();
    args.make.attr = (struct nfs3_sattr){.set_uid = true, .uid = BOB, .set_gid = true, .gid = BOB, .set_mode = true};
    args.make.attr.mode = 04755;
    assert_int_equal(call(b, NFS3_CREATE, &args), NFS3_OK);
    assert_int_equal(b->result.attr.attr.uid, BOB);
    assert_int_equal(b->result.attr.attr.gid, BOB);
    assert_int_equal(b->result.attr.attr.mode, 04755);
    become(b, ALICE);
    args.make.where = where(&b->root, "g");
    assert_int_equal(call(b, NFS3_MKDIR, &args), NFS3_OK);
    assert_int_equal(b->result.attr.attr.uid, ALICE);
    assert_int_equal(b->result.attr.attr.gid, ALICE);
    args.make.where = where(&b->root, "h");
    args.make.type = NFS3_BLK;
    assert_int_equal(call(b, NFS3_MKNOD, &args), NFS3ERR_PERM);
}

static void squashed(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_fh f;

    if (cannot())
        skip();
    attr.squash = SQUASH_ROOT;
    local_write(b, "f", "abc", 0600);
    bed_again(b, &attr);
    f = lookup(b, "f");
    assert_int_equal(get(b, &f, 0, 3), NFS3ERR_ACCES);
    assert_int_equal(by_name(b, NFS3_CREATE, &b->root, "g"), NFS3_OK);
    assert_int_equal(b->result.attr.attr.uid, 65534);
    b->cred = (struct rpc_cred){.flavor = RPC_AUTH_NONE};
    assert_int_equal(get(b, &f, 0, 3), NFS3ERR_ACCES);
    assert_int_equal(by_name(b, NFS3_MKDIR, &b->root, "d"), NFS3_OK);
    assert_int_equal(b->result.attr.attr.uid, 65534);
}

static void read_only(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_sattr mode = {.set_mode = true, .mode = 0777};
    struct nfs3_fh f;

    local_write(b, "f", "abc", 0644);
    attr.read_only = true;
    bed_again(b, &attr);
    f = lookup(b, "f");
    assert_int_equal(get(b, &f, 0, 3), NFS3_OK);
    assert_int_equal(set(b, &f, &mode), NFS3ERR_ROFS);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_int_equal(b->result.wcc.after.attr.mode, 0644);
    assert_int_equal(put(b, &f, 0, "x", 1, NFS3_UNSTABLE), NFS3ERR_ROFS);
    for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_RMDIR; proc++)
        assert_int_equal(by_name(b, proc, &b->root, "f"), NFS3ERR_ROFS);
    assert_int_equal(move(b, &b->root, "f", &b->root, "g"), NFS3ERR_ROFS);
    assert_true(b->result.to_wcc.had && b->result.to_wcc.after.present);
    assert_int_equal(hard_link(b, &f, &b->root, "g"), NFS3ERR_ROFS);
    assert_true(b->result.attr.present);
    assert_int_equal(simple(b, NFS3_COMMIT, &f), NFS3_OK);
    assert_int_equal(access(local(b, "f"), F_OK), 0);
    assert_int_equal(access(local(b, "g"), F_OK), -1);
}

static void strangers(void **state)
{
    struct bed *b = *state;
    const char *const friends[] = {"10.0.0.0/8", NULL};
    struct export_attr attr = bed_attr();
    struct mount3_result mount;
    struct nfs3_text path = text(b->dir);

    attr.clients = friends;
    bed_again(b, &attr);
    for (enum nfs3_proc proc = NFS3_GETATTR; proc < NFS3_PROCS; proc++) {
        union nfs3_args args;

        memset(&args, 0, sizeof(args));
        args.fh = b->root;
        assert_int_equal(call(b, proc, &args), NFS3ERR_ACCES);
        assert_false(b->result.attr.present || b->result.wcc.after.present || b->result.dir.present);
    }
    mount_serve(&b->server, (const struct sockaddr *)&b->peer, &b->cred, &path, &mount);
    assert_int_equal(mount.status, MNT3ERR_ACCES);
    b->peer.sin_addr.s_addr = htonl(0x0a000001);
    assert_int_equal(simple(b, NFS3_GETATTR, &b->root), NFS3_OK);
    mount_serve(&b->server, (const struct sockaddr *)&b->peer, &b->cred, &path, &mount);
    assert_int_equal(mount.status, MNT3_OK);
}

/* --- capabilities ----------------------------------------------------------------------------------------------- */

static uint32_t capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];

    assert_int_equal(syscall(SYS_capget, &header, caps), 0);
    return caps[0].effective;
}

/* No user but root uses the blocks that a file system reserves, or exceeds a quota: CAP_SYS_RESOURCE goes with the
 * server's identity, and comes back with it. */
static void reserved_blocks(void **state)
{
    const uint32_t resource = 1U << CAP_SYS_RESOURCE, mine = capabilities();
    const struct identity alice = {.uid = ALICE, .gid = ALICE}, bob = {.uid = BOB, .gid = BOB}, root = {.uid = 0};
    struct identity was;

    (void)state;
    if (cannot() || !(mine & resource))
        skip();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(identity_assume(&alice), 0);
        assert_false(capabilities() & resource);
        assert_int_equal(identity_assume(&bob), 0);
        assert_false(capabilities() & resource);
        assert_true(identity_pause(&was));
        assert_int_equal(capabilities(), mine);
        assert_int_equal(identity_assume(&was), 0);
        assert_false(capabilities() & resource);
        assert_int_equal(identity_assume(&root), 0);
        assert_int_equal(capabilities(), mine);
    }
    assert_int_equal(identity_assume(&alice), 0);
    identity_drop();
    assert_int_equal(capabilities(), mine);
}

/* --- many at once ----------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

struct worker {
    struct bed bed;
    pthread_t thread;
    unsigned wrong;
};

static void *work(void *user)
{
    struct worker *w = user;
    struct bed *b = &w->bed;
    union nfs3_args args = {.access = {b->root, NFS3_ACCESS_MODIFY}};
    char name[16];

    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof(name), "%u.%u", b->cred.uid, i);
        w->wrong += by_name(b, NFS3_CREATE, &b->root, name) != NFS3_OK || b->result.attr.attr.uid != b->cred.uid;
        w->wrong += put(b, &b->result.made.fh, 0, name, (uint32_t)strlen(name), NFS3_UNSTABLE) != NFS3_OK;
        w->wrong += call(b, NFS3_ACCESS, &args) != NFS3_OK || !b->result.access;
        w->wrong += i % 2 && by_name(b, NFS3_REMOVE, &b->root, name) != NFS3_OK;
    }
    free(b->buffer);
    return NULL;
}

/* Each thread acts with the identity of its own caller. */
static void threads(void **state)
{
    struct bed *b = *state;
    struct worker *w = calloc(THREADS, sizeof(*w));

    if (cannot()) {
        free(w);
        skip();
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        w[i].bed = *b;
        w[i].bed.buffer = NULL;
        become(&w[i].bed, ALICE + i);
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].wrong, 0);
    }
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bed_test(access_bits),     bed_test(data_rights), bed_test(attribute_rights), bed_test(directory_rights),
        bed_test(made_for_others), bed_test(squashed),    bed_test(read_only),        bed_test(strangers),
        bed_test(reserved_blocks), bed_test(threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
