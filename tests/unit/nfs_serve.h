/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve.h - an exported directory, and calls on it. */
#ifndef TESTS_UNIT_NFS_SERVE_H
#define TESTS_UNIT_NFS_SERVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "nfs/server/serve.h"

enum { ALICE = 54321, BOB = 54322 };

struct bed {
    char dir[64];
    struct export export;
    struct nfs_server server;
    struct nfs3_fh root;
    struct rpc_cred cred;
    struct sockaddr_in peer;
    bool now, cached, served; /* now, cached: passed to nfs_serve(); served: its result */
    bool views;               /* views are accepted */
    struct view *view;
    struct nfs3_result result;
    uint8_t *buffer;
    size_t space; /* fewer octets than nfs_result_size() asks for; 0: exactly those */
};

static inline void bed_open(struct bed *b, const struct export_attr *attr)
{
    struct objects_attr objects;
    char error[EXPORT_TEXT];

    objects_attr_init(&objects);
    assert_int_equal(export_open(&b->export, b->dir, attr, error), 0);
    objects.export = &b->export;
    objects.exports = 1;
    b->server = (struct nfs_server){.objects = objects_open(&objects, error),
                                    .export = &b->export,
                                    .exports = 1,
                                    .write_verifier = {'v', 'e', 'r', 'i', 'f', 'i', 'e', 'd'}};
    assert_non_null(b->server.objects);
    assert_int_equal(object_root(b->server.objects, &b->export, &b->root), 0);
}

static inline void bed_close(struct bed *b)
{
    identity_drop();
    free(b->buffer);
    b->buffer = NULL;
    view_put(b->view);
    b->view = NULL;
    objects_close(b->server.objects);
    b->server.objects = NULL;
    export_close(&b->export);
}

/* Exports the same directory again, with other attributes. */
static inline void bed_again(struct bed *b, const struct export_attr *attr)
{
    bed_close(b);
    bed_open(b, attr);
}

/* Root may do everything, and nothing waits for the disk. */
static inline struct export_attr bed_attr(void)
{
    struct export_attr attr;

    export_attr_init(&attr);
    attr.squash = SQUASH_NONE;
    attr.async = true;
    return attr;
}

static inline int bed_setup(void **state)
{
    struct export_attr attr = bed_attr();
    struct bed *b = calloc(1, sizeof(*b));

    assert_non_null(b);
    snprintf(b->dir, sizeof(b->dir), "/tmp/nfs_serve.XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    assert_int_equal(chmod(b->dir, 0777), 0);
    b->cred = (struct rpc_cred){.flavor = RPC_AUTH_SYS, .uid = geteuid(), .gid = getegid()};
    b->peer = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bed_open(b, &attr);
    *state = b;
    return 0;
}

static inline int bed_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int bed_teardown(void **state)
{
    struct bed *b = *state;

    bed_close(b);
    (void)umount2(b->dir, MNT_DETACH); /* in case a test failed before it unmounted */
    nftw(b->dir, bed_remove, 16, FTW_DEPTH | FTW_PHYS);
    free(b);
    return 0;
}

/* Returns a path to the file that bypasses NFS, accessible to our user. */
static inline const char *local(const struct bed *b, const char *name)
{
    static char path[4][512];
    static unsigned next;
    char *p = path[next++ % 4];

    identity_drop();
    snprintf(p, sizeof(path[0]), "%s/%s", b->dir, name);
    return p;
}

static inline struct nfs3_text text(const char *s)
{
    return (struct nfs3_text){s, (uint32_t)strlen(s)};
}

static inline struct nfs3_where where(const struct nfs3_fh *dir, const char *name)
{
    return (struct nfs3_where){*dir, text(name)};
}

enum { CALL_TRIES = 200, CALL_AGAIN_US = 5000 };

/* Serves a call and returns the status; b->result has the result, which must be encodable in XDR. */
static inline enum nfs3_status call(struct bed *b, enum nfs3_proc proc, const union nfs3_args *args)
{
    size_t space = b->space ? b->space : nfs_result_size(proc, args);
    struct nfs_request request = {.server = &b->server,
                                  .peer = (const struct sockaddr *)&b->peer,
                                  .cred = &b->cred,
                                  .proc = proc,
                                  .args = args,
                                  .capacity = space,
                                  .now = b->now,
                                  .cached = b->cached,
                                  .view = b->views ? &b->view : NULL,
                                  .result = &b->result};
    struct coder c;
    uint8_t *xdr = malloc(NFS3_IO_MAX + 1024);

    assert_non_null(xdr);
    view_put(b->view);
    b->view = NULL;
    free(b->buffer);
    b->buffer = malloc(space + 1);
    assert_non_null(b->buffer);
    b->buffer[space] = 0xa5;
    request.buffer = b->buffer;
    /* As clients do: the kernel may say of a handle for a while that it has no memory, if other programs change
     * directories of the same file system. */
    for (int i = 0; i < CALL_TRIES; i++) {
        memset(&b->result, 0, sizeof(b->result));
        b->served = nfs_serve(&request);
        if (b->result.status != NFS3ERR_JUKEBOX)
            break;
        usleep(CALL_AGAIN_US);
    }
    assert_true(b->served || b->now);
    assert_int_equal(b->buffer[space], 0xa5);
    coder_write(&c, xdr, NFS3_IO_MAX + 1024);
    if (b->served)
        nfs3_code_result(&c, proc, &b->result);
    assert_false(c.bad);
    if ((proc == NFS3_READDIR || proc == NFS3_READDIRPLUS) && b->result.status == NFS3_OK)
        assert_true(coder_length(&c) - 4 <= args->list.maxcount);
    free(xdr);
    return b->result.status;
}

static inline enum nfs3_status lookup_in(struct bed *b, const struct nfs3_fh *dir, const char *name, struct nfs3_fh *fh)
{
    union nfs3_args args = {.where = where(dir, name)};
    enum nfs3_status status = call(b, NFS3_LOOKUP, &args);

    *fh = b->result.fh;
    return status;
}

/* Looks up a name that must exist. */
static inline struct nfs3_fh lookup(struct bed *b, const char *name)
{
    struct nfs3_fh fh;

    assert_int_equal(lookup_in(b, &b->root, name, &fh), NFS3_OK);
    return fh;
}

static inline void local_write(const struct bed *b, const char *name, const char *what, mode_t mode)
{
    int fd = open(local(b, name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, what, strlen(what)), strlen(what));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static inline struct nfs3_fh file(struct bed *b, const char *name, const char *what, mode_t mode)
{
    local_write(b, name, what, mode);
    return lookup(b, name);
}

/* Calls a procedure with a name, and a mode where something is created. */
static inline enum nfs3_status by_name(struct bed *b, enum nfs3_proc proc, const struct nfs3_fh *dir, const char *name)
{
    union nfs3_args args = {.where = where(dir, name)};

    if (proc >= NFS3_CREATE && proc <= NFS3_MKNOD) {
        args.make = (struct nfs3_make){.where = where(dir, name), .type = NFS3_FIFO, .target = text("target")};
        args.make.attr.set_mode = true;
        args.make.attr.mode = 0755;
        args.make.how = NFS3_GUARDED;
    }
    return call(b, proc, &args);
}

static inline enum nfs3_status move(struct bed *b, const struct nfs3_fh *from, const char *a, const struct nfs3_fh *to,
                                    const char *z)
{
    union nfs3_args args = {.rename = {where(from, a), where(to, z)}};

    return call(b, NFS3_RENAME, &args);
}

static inline enum nfs3_status hard_link(struct bed *b, const struct nfs3_fh *fh, const struct nfs3_fh *to,
                                         const char *name)
{
    union nfs3_args args = {.link = {*fh, where(to, name)}};

    return call(b, NFS3_LINK, &args);
}

static inline enum nfs3_status get(struct bed *b, const struct nfs3_fh *fh, uint64_t offset, uint32_t count)
{
    union nfs3_args args = {.range = {*fh, offset, count}};

    return call(b, NFS3_READ, &args);
}

static inline enum nfs3_status put(struct bed *b, const struct nfs3_fh *fh, uint64_t offset, const void *data,
                                   uint32_t n, enum nfs3_stable stable)
{
    union nfs3_args args = {
        .write = {.fh = *fh, .offset = offset, .count = n, .stable = stable, .data = data, .length = n}};

    return call(b, NFS3_WRITE, &args);
}

static inline enum nfs3_status set(struct bed *b, const struct nfs3_fh *fh, const struct nfs3_sattr *attr)
{
    union nfs3_args args = {.setattr = {.fh = *fh, .attr = *attr}};

    return call(b, NFS3_SETATTR, &args);
}

static inline enum nfs3_status simple(struct bed *b, enum nfs3_proc proc, const struct nfs3_fh *fh)
{
    union nfs3_args args = {.fh = *fh};

    return call(b, proc, &args);
}

static inline void become(struct bed *b, uint32_t uid)
{
    b->cred = (struct rpc_cred){.flavor = RPC_AUTH_SYS, .uid = uid, .gid = uid};
}

#define bed_test(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)

#endif
