/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_sync.c - syncs files and directories, and changes the write verifier when that fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

/* The kernel reports a lost page once per descriptor, and all clients share ours: the next sync of the file succeeds,
 * and must not be answered with the old verifier. */
int sync_file(const struct object *object, int fd, bool data)
{
    struct export *e = object->export;
    pthread_mutex_t *mine = export_sync(e, object);
    int error;

    pthread_mutex_lock(mine);
    error = (data ? fdatasync(fd) : fsync(fd)) ? -errno : 0;
    if (error)
        atomic_fetch_add(&e->losses, 1);
    pthread_mutex_unlock(mine);
    return error;
}

/* The server may have no right to read this directory, or the file system may not support fsync() of directories: the
 * name is then as stable as it can be. */
int sync_dir(const struct object *dir)
{
    char path[SELF_PATH];
    int fd, error = 0;

    identity_drop();
    self_path(path, dir->fd);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -errno;
    if (fsync(fd) && errno != EINVAL && errno != EOPNOTSUPP)
        error = -errno;
    close(fd);
    return error;
}

void sync_verifier(const struct nfs_server *server, const struct object *object, uint8_t verifier[NFS3_VERIFIER])
{
    uint64_t v;

    memcpy(&v, server->write_verifier, sizeof(v));
    v += atomic_load(&object->export->losses) * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(verifier, &v, sizeof(v));
}
