/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* export.c - opens exported directories, and decides who may use them and with which identity. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs/server/export.h"
#include "nfs/server/file_system.h"

enum { ANON = 65534 };

void export_attr_init(struct export_attr *attr)
{
    *attr = (struct export_attr){.squash = SQUASH_ROOT, .anon_uid = ANON, .anon_gid = ANON};
}

__attribute__((format(printf, 3, 4))) static int export_fail(char *message, int error, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(message, EXPORT_TEXT, format, list);
    va_end(list);
    return error;
}

/* The FNV-1a hash of the path. */
static uint32_t export_id_of(const char *path)
{
    uint32_t id = 0x811c9dc5;

    for (; *path; path++)
        id = (id ^ (uint8_t)*path) * 0x01000193;
    return id;
}

static int open_root(struct export *e, const char *path, char *message)
{
    struct stat st;

    e->path = realpath(path, NULL);
    if (!e->path)
        return export_fail(message, -errno, "%.150s: %s", path, strerror(errno));
    e->root = open(e->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (e->root < 0 || fstat(e->root, &st))
        return export_fail(message, -errno, "%.150s: %s", e->path, strerror(errno));
    e->dev = st.st_dev;
    e->id = export_id_of(e->path);
    return 0;
}

int export_open(struct export *e, const char *path, const struct export_attr *attr, char *message)
{
    int error;

    *e = (struct export){.root = -1, .attr = *attr};
    /* The kernel's set*id() calls take this number as "leave it unchanged". */
    if (attr->anon_uid == (uid_t)-1 || attr->anon_gid == (gid_t)-1)
        return export_fail(message, -EINVAL, "the anonymous user and group must be numbers below 4294967295");
    error = open_root(e, path, message);
    if (!error)
        error = clients_parse(&e->clients, attr->clients, message);
    e->attr.clients = NULL; /* the caller owns the list */
    e->in_memory = !error && fs_is_in_memory(e->root);
    e->local = !error && fs_is_local(e->root);
    if (error)
        export_close(e);
    return error;
}

void export_close(struct export *e)
{
    if (e->root >= 0)
        close(e->root);
    free(e->path);
    clients_free(&e->clients);
    *e = (struct export){.root = -1};
}

pthread_mutex_t *export_sync(struct export *e, const void *object)
{
    return &e->sync[(uintptr_t)object / 64 % EXPORT_SYNCS];
}

void export_close_file(struct export *e, int fd)
{
    if (close(fd))
        atomic_fetch_add(&e->losses, 1);
}

bool export_allows(const struct export *e, const struct sockaddr *peer)
{
    return clients_have(&e->clients, peer);
}

/* As in exports(5): root_squash maps user 0 and group 0 independently. The number -1 is never assumed: it would leave
 * the thread's identity unchanged, whichever that is. */
void export_identity(const struct export *e, const struct rpc_cred *cred, struct identity *identity)
{
    const struct export_attr *attr = &e->attr;
    bool root = attr->squash == SQUASH_ROOT;

    *identity = (struct identity){.uid = attr->anon_uid, .gid = attr->anon_gid};
    if (cred->flavor != RPC_AUTH_SYS || attr->squash == SQUASH_ALL)
        return;
    if (cred->uid != UINT32_MAX && !(root && cred->uid == 0))
        identity->uid = cred->uid;
    if (cred->gid != UINT32_MAX && !(root && cred->gid == 0))
        identity->gid = cred->gid;
    for (unsigned i = 0; i < cred->groups && i < RPC_GROUPS_MAX; i++) {
        bool takes = cred->group[i] != UINT32_MAX && !(root && cred->group[i] == 0);

        identity->group[identity->groups++] = takes ? cred->group[i] : attr->anon_gid;
    }
}
