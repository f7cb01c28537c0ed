/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_data.c - serves READ, WRITE, COMMIT and READLINK. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Reads up to `n` octets. Returns their number, or a negative errno if there are none. With RWF_NOWAIT: -EAGAIN if not
 * all of them are in memory, or -EOPNOTSUPP if the file system cannot tell. */
static ssize_t read_all(int fd, uint8_t *to, size_t n, off_t at, int flags)
{
    size_t done = 0;

    while (done < n) {
        struct iovec rest = {to + done, n - done};
        ssize_t got = preadv2(fd, &rest, 1, at + (off_t)done, flags);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (!done || flags))
            return -errno;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static ssize_t write_all(int fd, const uint8_t *from, size_t n, off_t at)
{
    size_t done = 0;

    while (done < n) {
        ssize_t put = pwrite(fd, from + done, n - done, at + (off_t)done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && !done)
            return -errno;
        if (put <= 0)
            break;
        done += (size_t)put;
    }
    return (ssize_t)done;
}

/* Whoever may execute a program may also read it (RFC 1813 4.4). */
int call_open_to_read(struct serve_call *c)
{
    int error = call_may(c, c->object, R_OK), fd;

    if (error == -EACCES)
        error = call_may(c, c->object, X_OK);
    if (error)
        return error;
    if (!c->request->cached)
        return object_file(c->objects, c->object, O_RDONLY);
    fd = object_open_file(c->objects, c->object, O_RDONLY);
    c->later = fd == -EAGAIN;
    return fd;
}

/* Points the result to the data in the page cache. Returns false if not all of them are there. */
static bool read_view(struct serve_call *c, int fd, uint64_t offset, uint64_t count)
{
    struct view *view;
    struct stat st;
    uint8_t last;
    uint64_t n;

    if (fstat(fd, &st) || offset >= (uint64_t)st.st_size || !count)
        return false;
    n = least(count, (uint64_t)st.st_size - offset);
    view = object_view(c->objects, c->object, fd, (uint64_t)st.st_size, offset, n);
    if (!view)
        return false;
    /* Read one octet, so that the kernel updates atime and its read-ahead. */
    (void)read_all(fd, &last, 1, (off_t)(offset + n - 1), RWF_NOWAIT);
    *c->request->view = view;
    c->result->read.data = view_at(view, offset);
    c->result->read.count = (uint32_t)n;
    c->result->read.eof = offset + n == (uint64_t)st.st_size;
    return true;
}

enum nfs3_status serve_read(struct serve_call *c)
{
    uint64_t offset = c->args->range.offset, count = least(c->args->range.count, NFS3_IO_MAX);
    ssize_t n = 0;
    struct stat st;
    int fd;

    if (!S_ISREG(c->object->type))
        return NFS3ERR_INVAL;
    fd = call_open_to_read(c);
    if (fd < 0)
        return nfs3_status_of(-fd);
    count = least(count, c->request->capacity);
    if (c->request->view && read_view(c, fd, offset, count))
        return NFS3_OK;
    c->later = c->request->now && !c->request->buffer;
    if (c->later)
        return NFS3_OK;
    if (offset > INT64_MAX)
        count = 0;
    else
        n = read_all(fd, c->request->buffer, least(count, INT64_MAX - offset), (off_t)offset,
                     c->request->now ? RWF_NOWAIT : 0);
    c->later = c->request->now && (n == -EAGAIN || n == -EOPNOTSUPP);
    if (n < 0 || fstat(fd, &st))
        return nfs3_status_of(n < 0 ? (int)-n : errno);
    c->result->read.data = c->request->buffer;
    c->result->read.count = (uint32_t)n;
    /* A read of 0 octets is the end of the file as well, whatever its size is. */
    c->result->read.eof =
        offset >= (uint64_t)st.st_size || (uint64_t)n >= (uint64_t)st.st_size - offset || (!n && count);
    return NFS3_OK;
}

enum nfs3_status serve_write(struct serve_call *c)
{
    enum nfs3_stable stable = c->args->write.stable;
    uint64_t offset = c->args->write.offset, count = least(c->args->write.count, NFS3_IO_MAX);
    ssize_t n;
    int fd, error = 0;

    if (!S_ISREG(c->object->type) || c->args->write.count != c->args->write.length)
        return NFS3ERR_INVAL;
    if (offset > INT64_MAX || count > INT64_MAX - offset)
        return NFS3ERR_FBIG;
    /* A stable WRITE would wait for other threads that sync. */
    c->later = c->request->now && (!c->object->export->in_memory || stable != NFS3_UNSTABLE);
    if (c->later)
        return NFS3_OK;
    fd = call_may(c, c->object, W_OK);
    if (!fd)
        fd = object_file(c->objects, c->object, O_RDWR);
    if (fd < 0)
        return nfs3_status_of(-fd);
    n = write_all(fd, c->args->write.data, count, (off_t)offset);
    if (n < 0)
        return nfs3_status_of((int)-n);
    if (stable != NFS3_UNSTABLE)
        error = sync_file(c->object, fd, stable == NFS3_DATA_SYNC);
    c->result->write.count = (uint32_t)n;
    c->result->write.committed = stable;
    sync_verifier(c->request->server, c->object, c->result->write.verifier);
    return nfs3_status_of(-error);
}

/* Syncs the whole file, which is never less than asked for. Access is not checked: the writer was checked when he
 * wrote, and may have lost the right since. The kernel reports lost pages to the descriptor that wrote them. */
enum nfs3_status serve_commit(struct serve_call *c)
{
    int fd, error;

    if (!S_ISREG(c->object->type))
        return NFS3ERR_INVAL;
    fd = object_file(c->objects, c->object, O_RDWR);
    if (fd < 0)
        fd = object_file(c->objects, c->object, O_RDONLY);
    if (fd < 0)
        return nfs3_status_of(-fd);
    object_settle(c->objects, c->object);
    error = sync_file(c->object, fd, false);
    sync_verifier(c->request->server, c->object, c->result->write.verifier);
    return nfs3_status_of(-error);
}

enum nfs3_status serve_readlink(struct serve_call *c)
{
    ssize_t n;

    if (!S_ISLNK(c->object->type))
        return NFS3ERR_INVAL;
    n = readlinkat(c->object->fd, "", (char *)c->request->buffer, c->request->capacity);
    if (n < 0)
        return nfs3_status_of(errno);
    c->result->target = (struct nfs3_text){(const char *)c->request->buffer, (uint32_t)n};
    return NFS3_OK;
}
