/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_make.c - creates objects: CREATE, MKDIR, SYMLINK and MKNOD. The kernel decides what the caller may do. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

enum {
    MODE_BITS = 07777,
    SPECIAL_BITS = 07000,
    MAJOR_MAX = 0xfff,
    MINOR_MAX = 0xfffff,
    TRIES = 8, /* attempts while another client creates and removes the same name */
};

static void clear_umask(void)
{
    static _Thread_local bool done;

    if (done)
        return;
    (void)unshare(CLONE_FS); /* forbidden: the umask of the process is changed */
    umask(0);
    done = true;
}

/* Without a mode in the call, the object gets one with which only its owner can use it; the client follows with
 * SETATTR. */
static mode_t mode_for(const struct nfs3_sattr *attr, mode_t otherwise)
{
    return attr->set_mode ? attr->mode & MODE_BITS : otherwise;
}

static enum nfs3_status name_to_make(struct serve_call *c, char name[NFS3_NAME_MAX + 1])
{
    enum nfs3_status status = name_of(&c->args->make.where.name, name);

    clear_umask();
    if (status == NFS3_OK && name_is_dots(name))
        return NFS3ERR_EXIST;
    return status;
}

/* The object was created: adds its handle and attributes, if they can still be read. The name may already be another
 * object. */
static enum nfs3_status serve_make_made(struct serve_call *c, const char *name)
{
    struct nfs3_result *result = c->result;
    struct stat st;

    result->made.present = !object_name(c->objects, c->object, name, &result->made.fh, &st);
    result->attr.present = result->made.present;
    if (result->made.present)
        attr_of(c->object->export, &st, &result->attr.attr);
    return NFS3_OK;
}

/* Sets the attributes that the creating call could not. The owner is set if the caller may give files away; otherwise
 * the new object stays the caller's. */
static enum nfs3_status serve_make_complete(int fd, const struct nfs3_sattr *attr)
{
    struct nfs3_sattr rest = *attr;
    struct stat st;

    if ((attr->set_uid || attr->set_gid) &&
        fchownat(fd, "", attr->set_uid ? attr->uid : (uid_t)-1, attr->set_gid ? attr->gid : (gid_t)-1, AT_EMPTY_PATH) &&
        errno != EPERM)
        return nfs3_status_of(errno);
    if (fstat(fd, &st))
        return nfs3_status_of(errno);
    rest.set_uid = rest.set_gid = false;
    /* mkdir() does not set set-group-ID, and chown() clears it; but a directory may inherit it. */
    rest.set_mode = attr->set_mode && attr->mode & SPECIAL_BITS & ~st.st_mode && !S_ISLNK(st.st_mode);
    rest.mode = (st.st_mode & MODE_BITS) | (attr->mode & SPECIAL_BITS);
    return sattr_apply(fd, st.st_mode, &rest);
}

/* The same for an object that is not open. */
static enum nfs3_status complete_name(struct serve_call *c, const char *name, mode_t type)
{
    int fd = openat(c->object->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    enum nfs3_status status = NFS3_OK;
    struct stat st;

    /* If the name is gone or has become another object, leave it alone. */
    if (fd >= 0 && !fstat(fd, &st) && (st.st_mode & S_IFMT) == type)
        status = serve_make_complete(fd, &c->args->make.attr);
    if (fd >= 0)
        close(fd);
    return status == NFS3_OK ? serve_make_made(c, name) : status;
}

/* --- CREATE ----------------------------------------------------------------------------------------------------- */

/* The verifier of an exclusive CREATE is stored in the times of the file, so that it survives a restart. All file
 * systems keep 31 bits of a second; the other two bits are in the mode, where they give no other user a right: the
 * owner may execute the file, and it is sticky. */
static void verifier_times(const uint8_t verifier[NFS3_VERIFIER], struct timespec t[2])
{
    uint32_t half[2];

    memcpy(half, verifier, sizeof(half));
    t[0] = (struct timespec){.tv_sec = half[0] & INT32_MAX};
    t[1] = (struct timespec){.tv_sec = half[1] & INT32_MAX};
}

static mode_t verifier_mode(const uint8_t verifier[NFS3_VERIFIER])
{
    uint32_t half[2];

    memcpy(half, verifier, sizeof(half));
    return (half[0] >> 31 ? S_IXUSR : 0) | (half[1] >> 31 ? S_ISVTX : 0);
}

static bool has_verifier(const struct stat *st, const uint8_t verifier[NFS3_VERIFIER])
{
    struct timespec t[2];

    verifier_times(verifier, t);
    return st->st_size == 0 && st->st_atime == t[0].tv_sec && st->st_mtime == t[1].tv_sec &&
           (st->st_mode & (S_IXUSR | S_ISVTX)) == verifier_mode(verifier);
}

/* The file existed, and UNCHECKED sets its size, on the disk unless the export is async. */
static enum nfs3_status resize_taken(struct serve_call *c, struct object *object, uint64_t size)
{
    enum nfs3_status status = sattr_resize(c, object, size);
    int fd;

    if (status != NFS3_OK || object->export->attr.async)
        return status;
    fd = object_file(c->objects, object, O_RDWR);
    return nfs3_status_of(fd < 0 ? -fd : -sync_file(object, fd, false));
}

/* The file exists: either a retransmitted exclusive CREATE made it, or UNCHECKED accepts it and sets only its size.
 * NFS3ERR_NOENT: it has gone meanwhile. */
static enum nfs3_status serve_make_take(struct serve_call *c, const char *name)
{
    const struct nfs3_make *make = &c->args->make;
    struct nfs3_fh fh;
    struct object *object;
    enum nfs3_status status;
    bool gone = false;
    struct stat st;
    int error;

    if (make->how == NFS3_GUARDED)
        return NFS3ERR_EXIST;
    error = object_name(c->objects, c->object, name, &fh, &st);
    if (error)
        return error == -EXDEV ? NFS3ERR_EXIST : nfs3_status_of(-error);
    if (!S_ISREG(st.st_mode))
        return NFS3ERR_EXIST;
    if (make->how == NFS3_EXCLUSIVE)
        return has_verifier(&st, make->verifier) ? serve_make_made(c, name) : NFS3ERR_EXIST;
    if (make->attr.set_size) {
        /* If it would have to be searched for, its name has gone meanwhile. */
        status = object_find(c->objects, &fh, &gone, &object);
        if (status != NFS3_OK)
            return status == NFS3ERR_STALE || gone ? NFS3ERR_NOENT : status;
        status = resize_taken(c, object, make->attr.size);
        object_put(c->objects, object);
        if (status != NFS3_OK)
            return status;
    }
    return serve_make_made(c, name);
}

/* Sets the attributes of a new file, which is open. */
static enum nfs3_status furnish(struct serve_call *c, int fd)
{
    const struct nfs3_make *make = &c->args->make;
    enum nfs3_status status = NFS3_OK;
    struct timespec t[2];

    if (make->how == NFS3_EXCLUSIVE) {
        verifier_times(make->verifier, t);
        if (fchmod(fd, 0600 | verifier_mode(make->verifier)) || futimens(fd, t))
            return nfs3_status_of(errno);
    } else {
        if (make->attr.set_size && ftruncate(fd, (off_t)make->attr.size))
            return errno == EFBIG ? NFS3ERR_INVAL : nfs3_status_of(errno);
        status = serve_make_complete(fd, &make->attr);
    }
    if (status == NFS3_OK && !c->object->export->attr.async && fsync(fd))
        status = nfs3_status_of(errno);
    return status;
}

enum nfs3_status serve_create(struct serve_call *c)
{
    static const struct nfs3_sattr none;
    const struct nfs3_make *make = &c->args->make;
    const struct nfs3_sattr *attr = make->how == NFS3_EXCLUSIVE ? &none : &make->attr;
    char name[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_to_make(c, name);
    int fd = -1;

    if (status == NFS3_OK)
        status = sattr_check(attr, S_IFREG);
    if (status != NFS3_OK)
        return status;
    for (unsigned i = 0; i < TRIES && fd < 0; i++) {
        fd = openat(c->object->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode_for(attr, 0600));
        if (fd < 0 && errno != EEXIST)
            return nfs3_status_of(errno);
        if (fd < 0) {
            status = serve_make_take(c, name);
            if (status != NFS3ERR_NOENT)
                return status;
        }
    }
    if (fd < 0)
        return NFS3ERR_JUKEBOX;
    status = furnish(c, fd);
    close(fd);
    return status == NFS3_OK ? serve_make_made(c, name) : status;
}

/* --- MKDIR, SYMLINK, MKNOD -------------------------------------------------------------------------------------- */

enum nfs3_status serve_mkdir(struct serve_call *c)
{
    const struct nfs3_sattr *attr = &c->args->make.attr;
    char name[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_to_make(c, name);

    if (status == NFS3_OK)
        status = sattr_check(attr, S_IFDIR);
    if (status != NFS3_OK)
        return status;
    if (mkdirat(c->object->fd, name, mode_for(attr, 0700)))
        return nfs3_status_of(errno);
    return complete_name(c, name, S_IFDIR);
}

/* The mode of a symbolic link is ignored. */
enum nfs3_status serve_symlink(struct serve_call *c)
{
    const struct nfs3_text *target = &c->args->make.target;
    char name[NFS3_NAME_MAX + 1], text[NFS3_PATH_MAX + 1];
    enum nfs3_status status = name_to_make(c, name);

    if (status == NFS3_OK)
        status = sattr_check(&c->args->make.attr, S_IFLNK);
    if (status != NFS3_OK)
        return status;
    if (target->length > NFS3_PATH_MAX)
        return NFS3ERR_NAMETOOLONG;
    if (!target->length || memchr(target->at, 0, target->length))
        return NFS3ERR_INVAL;
    memcpy(text, target->at, target->length);
    text[target->length] = 0;
    if (symlinkat(text, c->object->fd, name))
        return nfs3_status_of(errno);
    return complete_name(c, name, S_IFLNK);
}

enum nfs3_status serve_mknod(struct serve_call *c)
{
    const struct nfs3_make *make = &c->args->make;
    bool device = make->type == NFS3_BLK || make->type == NFS3_CHR;
    char name[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_to_make(c, name);
    dev_t number = 0;
    mode_t type = make->type == NFS3_FIFO ? S_IFIFO : S_IFSOCK;

    if (status != NFS3_OK)
        return status;
    if (!device && make->type != NFS3_FIFO && make->type != NFS3_SOCK)
        return NFS3ERR_BADTYPE;
    if (device) {
        type = make->type == NFS3_BLK ? S_IFBLK : S_IFCHR;
        if (make->major > MAJOR_MAX || make->minor > MINOR_MAX)
            return NFS3ERR_INVAL;
        number = makedev(make->major, make->minor);
    }
    status = sattr_check(&make->attr, type);
    if (status != NFS3_OK)
        return status;
    if (mknodat(c->object->fd, name, type | mode_for(&make->attr, 0600), number))
        return nfs3_status_of(errno);
    return complete_name(c, name, type);
}
