/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_attr.c - attributes: converts them, and serves GETATTR, SETATTR and ACCESS. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

enum { NS = 1000000000, MODE_BITS = 07777 };

/* --- from the kernel to the client ----------------------------------------------------------------------------- */

static enum nfs3_type type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return NFS3_DIR;
    case S_IFBLK:
        return NFS3_BLK;
    case S_IFCHR:
        return NFS3_CHR;
    case S_IFLNK:
        return NFS3_LNK;
    case S_IFSOCK:
        return NFS3_SOCK;
    case S_IFIFO:
        return NFS3_FIFO;
    default:
        return NFS3_REG;
    }
}

/* A time of NFS has 32 bits without a sign: it ends in 2106. With a time_t of 32 bits the kernel would be told times
 * before 1970 from 2038 on. */
static_assert(sizeof(time_t) >= 8, "NFS needs a time_t of 64 bits");

static struct nfs3_time serve_attr_time_of(const struct timespec *t)
{
    if (t->tv_sec < 0)
        return (struct nfs3_time){0, 0};
    if (t->tv_sec > UINT32_MAX)
        return (struct nfs3_time){UINT32_MAX, 999999999};
    return (struct nfs3_time){(uint32_t)t->tv_sec, (uint32_t)t->tv_nsec};
}

/* The export's number is used as fsid: st_dev may change with a restart, and an export is one file system. */
void attr_of(const struct export *e, const struct stat *st, struct nfs3_attr *attr)
{
    bool device = S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode);

    *attr = (struct nfs3_attr){
        .type = type_of(st->st_mode),
        .mode = st->st_mode & MODE_BITS,
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .used = (uint64_t)st->st_blocks * 512,
        .major = device ? major(st->st_rdev) : 0,
        .minor = device ? minor(st->st_rdev) : 0,
        .fsid = e->id,
        .fileid = st->st_ino,
        .atime = serve_attr_time_of(&st->st_atim),
        .mtime = serve_attr_time_of(&st->st_mtim),
        .ctime = serve_attr_time_of(&st->st_ctim),
    };
}

void attr_post(const struct object *object, struct nfs3_post_attr *post)
{
    struct stat st;

    post->present = !object_stat(object, &st);
    if (post->present)
        attr_of(object->export, &st, &post->attr);
}

void attr_before(const struct object *object, struct nfs3_wcc *wcc)
{
    struct stat st;

    wcc->had = !object_stat(object, &st);
    if (!wcc->had)
        return;
    wcc->size = (uint64_t)st.st_size;
    wcc->mtime = serve_attr_time_of(&st.st_mtim);
    wcc->ctime = serve_attr_time_of(&st.st_ctim);
}

enum nfs3_status serve_getattr(struct serve_call *c)
{
    struct stat st;
    int error = object_stat(c->object, &st);

    if (error)
        return nfs3_status_of(-error);
    c->result->attr.present = true;
    attr_of(c->object->export, &st, &c->result->attr.attr);
    return NFS3_OK;
}

/* --- from the client to the kernel ----------------------------------------------------------------------------- */

/* utimensat() has special nanosecond values for "unchanged" and "now", and chown() a special ID for "unchanged":
 * clients may not pass these. */
enum nfs3_status sattr_check(const struct nfs3_sattr *attr, mode_t type)
{
    if ((attr->set_atime == NFS3_CLIENT_TIME && attr->atime.ns >= NS) ||
        (attr->set_mtime == NFS3_CLIENT_TIME && attr->mtime.ns >= NS))
        return NFS3ERR_INVAL;
    if ((attr->set_uid && attr->uid == UINT32_MAX) || (attr->set_gid && attr->gid == UINT32_MAX))
        return NFS3ERR_INVAL;
    if (attr->set_size && (!S_ISREG(type) || attr->size > INT64_MAX))
        return NFS3ERR_INVAL;
    return NFS3_OK;
}

static struct timespec time_to_set(enum nfs3_settime how, struct nfs3_time t)
{
    if (how == NFS3_CLIENT_TIME)
        return (struct timespec){.tv_sec = t.s, .tv_nsec = t.ns};
    return (struct timespec){.tv_nsec = how == NFS3_SERVER_TIME ? UTIME_NOW : UTIME_OMIT};
}

static int set_times(int fd, const struct nfs3_sattr *attr)
{
    struct timespec t[2] = {time_to_set(attr->set_atime, attr->atime), time_to_set(attr->set_mtime, attr->mtime)};

    /* Changing the size has set mtime already, and whoever may write the file may do that. Setting mtime alone to the
     * current time would require ownership. Clients set both times for O_TRUNC. */
    if (attr->set_size && attr->set_mtime == NFS3_SERVER_TIME)
        t[1].tv_nsec = UTIME_OMIT;
    if (attr->set_size && attr->set_mtime == NFS3_SERVER_TIME && attr->set_atime == NFS3_SERVER_TIME)
        t[1].tv_nsec = UTIME_NOW;
    return utimensat(fd, "", t, AT_EMPTY_PATH);
}

/* Sets the mode after the owner, since a change of owner clears the set-user-ID bits. */
enum nfs3_status sattr_apply(int fd, mode_t type, const struct nfs3_sattr *attr)
{
    char path[SELF_PATH];
    int error = 0;

    self_path(path, fd);
    if (attr->set_mode && S_ISLNK(type))
        return NFS3ERR_INVAL;
    if (attr->set_uid || attr->set_gid)
        error = fchownat(fd, "", attr->set_uid ? attr->uid : (uid_t)-1, attr->set_gid ? attr->gid : (gid_t)-1,
                         AT_EMPTY_PATH);
    if (!error && attr->set_mode)
        error = chmod(path, attr->mode & MODE_BITS);
    if (!error && (attr->set_atime != NFS3_DONT_CHANGE || attr->set_mtime != NFS3_DONT_CHANGE))
        error = set_times(fd, attr);
    return error ? nfs3_status_of(errno) : NFS3_OK;
}

enum nfs3_status sattr_resize(struct serve_call *c, struct object *object, uint64_t size)
{
    int fd = call_may(c, object, W_OK);

    if (!fd)
        fd = object_file(c->objects, object, O_RDWR);
    if (fd < 0)
        return nfs3_status_of(-fd);
    if (!ftruncate(fd, (off_t)size))
        return NFS3_OK;
    /* RFC 1813 3.3.2: the size is larger than the server supports. */
    return errno == EFBIG ? NFS3ERR_INVAL : nfs3_status_of(errno);
}

/* The attributes of objects that cannot be opened (symbolic links, devices) reach the disk with the file system's next
 * commit. */
static enum nfs3_status serve_attr_make_stable(struct serve_call *c)
{
    int fd, error = 0;

    if (S_ISDIR(c->object->type)) {
        error = sync_dir(c->object);
    } else if (S_ISREG(c->object->type)) {
        fd = object_file(c->objects, c->object, O_RDONLY);
        error = fd < 0 ? 0 : sync_file(c->object, fd, false);
    }
    return nfs3_status_of(-error);
}

static bool serve_attr_same_time(struct nfs3_time a, struct nfs3_time b)
{
    return a.s == b.s && a.ns == b.ns;
}

enum nfs3_status serve_setattr(struct serve_call *c)
{
    const struct nfs3_sattr *attr = &c->args->setattr.attr;
    enum nfs3_status status = sattr_check(attr, c->object->type);

    if (status != NFS3_OK)
        return status;
    if (c->args->setattr.guarded &&
        !(c->result->wcc.had && serve_attr_same_time(c->args->setattr.ctime, c->result->wcc.ctime)))
        return NFS3ERR_NOT_SYNC;
    if (attr->set_size)
        status = sattr_resize(c, c->object, attr->size);
    if (status == NFS3_OK)
        status = sattr_apply(c->object->fd, c->object->type, attr);
    if (status == NFS3_OK && !c->object->export->attr.async)
        status = serve_attr_make_stable(c);
    return status;
}

/* --- rights ----------------------------------------------------------------------------------------------------- */

int call_may(struct serve_call *c, struct object *object, int want)
{
    struct stat st;
    int error = object_stat(object, &st);

    if (error || st.st_uid == c->who.uid)
        return error;
    c->later = c->request->cached && !object_rights_are_read(object);
    return c->later ? -EAGAIN : object_may(object, NULL, want);
}

/* The kernel's rights for each bit of ACCESS: for directories, and for other objects. */
static const struct {
    uint32_t bit;
    int dir, other; /* 0: the bit has no meaning here */
    bool changes;
} rights[] = {
    {NFS3_ACCESS_READ, R_OK, R_OK, false},         {NFS3_ACCESS_LOOKUP, X_OK, 0, false},
    {NFS3_ACCESS_MODIFY, W_OK | X_OK, W_OK, true}, {NFS3_ACCESS_EXTEND, W_OK | X_OK, W_OK, true},
    {NFS3_ACCESS_DELETE, W_OK | X_OK, 0, true},    {NFS3_ACCESS_EXECUTE, 0, X_OK, false},
};

/* Which of the rights in `wanted` (R_OK, W_OK, X_OK) the caller has. */
static int granted(struct object *object, int wanted)
{
    int has = 0;

    for (int bit = X_OK; bit <= R_OK; bit <<= 1) {
        if (wanted & bit && !object_may(object, NULL, bit))
            has |= bit;
    }
    return has;
}

enum nfs3_status serve_access(struct serve_call *c)
{
    enum { RIGHTS = sizeof(rights) / sizeof(*rights) };
    bool read_only = c->object->export->attr.read_only;
    int want[RIGHTS], all = 0, has;

    c->later = c->request->cached && !object_rights_are_read(c->object);
    if (c->later)
        return NFS3_OK;
    for (int i = 0; i < RIGHTS; i++) {
        want[i] = S_ISDIR(c->object->type) ? rights[i].dir : rights[i].other;
        if (!(c->args->access.access & rights[i].bit) || (read_only && rights[i].changes))
            want[i] = 0;
        all |= want[i];
    }
    has = granted(c->object, all);
    for (int i = 0; i < RIGHTS; i++) {
        if (want[i] && (has & want[i]) == want[i])
            c->result->access |= rights[i].bit;
    }
    return NFS3_OK;
}
