/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_mount.c - MOUNT version 3 over TCP (RFC 1813 appendix I): gets the first file handle. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/client/client_in.h"
#include "nfs/rpcbind.h"

enum { REPLY_MAX = 1 << 20, GROUPS_SEEN = 16, EXPORTS_MAX = 4096 };

/* --- one MOUNT call -------------------------------------------------------------------------------------------- */

static int mount_port(const struct nfs_client_attr *attr, const struct tcp_call *t)
{
    int port;

    if (attr->mount_port > 0)
        return attr->mount_port;
    port = rpcbind_getport((const struct sockaddr *)&t->addr, MOUNT_PROGRAM, MOUNT_VERSION,
                           t->addr.ss_family == AF_INET6 ? "tcp6" : "tcp", attr->timeout_ms);
    return port > 0 ? port : MOUNT_PORT;
}

static void path_args(struct coder *c, void *user)
{
    struct nfs3_text path = {user, (uint32_t)strlen(user)};

    mount3_code_args(c, MOUNT3_MNT, &path);
}

/* Calls a MOUNT procedure, without a path if `path` is NULL. The answer is in `results`. */
static int call_mount(struct tcp_call *t, enum mount3_proc proc, const char *path, struct coder *results)
{
    t->program = MOUNT_PROGRAM;
    t->version = MOUNT_VERSION;
    t->procedure = proc;
    t->reserved = true;
    t->reply_max = REPLY_MAX;
    return tcp_call(t, path ? path_args : NULL, (void *)(uintptr_t)path, results);
}

static bool is_unreachable(int error)
{
    return error == -ECONNREFUSED || error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH ||
           error == -EAFNOSUPPORT;
}

static struct addrinfo *resolve(const struct nfs_client_attr *attr, char *message)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int error = getaddrinfo(attr->host, "111", &hints, &list);

    if (error == 0)
        return list;
    client_fail(attr, message, 0, "no such host", error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    return NULL;
}

/* Tries the addresses of the host until one answers; `t` then holds that address. */
static int client_mount_ask(const struct nfs_client_attr *attr, enum mount3_proc proc, const char *path,
                            struct tcp_call *t, struct coder *results, char *message)
{
    struct addrinfo *list = resolve(attr, message);
    int error = -EHOSTUNREACH;

    if (!list)
        return error;
    for (struct addrinfo *a = list; a && is_unreachable(error); a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
            continue;
        memcpy(&t->addr, a->ai_addr, a->ai_addrlen);
        t->length = a->ai_addrlen;
        t->timeout_ms = attr->timeout_ms;
        t->cred = attr->cred;
        tcp_call_port(t, (uint16_t)mount_port(attr, t));
        error = call_mount(t, proc, path, results);
    }
    freeaddrinfo(list);
    if (error)
        client_fail(attr, message, error, "MOUNT over TCP", t->trouble ? t->trouble : strerror(-error));
    return error;
}

/* --- what a client needs of MOUNT ------------------------------------------------------------------------------ */

static int mount_errno(enum mount3_status status)
{
    switch (status) {
    case MNT3_OK:
        return 0;
    case MNT3ERR_PERM:
        return -EPERM;
    case MNT3ERR_NOENT:
        return -ENOENT;
    case MNT3ERR_ACCES:
        return -EACCES;
    case MNT3ERR_NOTDIR:
        return -ENOTDIR;
    case MNT3ERR_INVAL:
        return -EINVAL;
    case MNT3ERR_NAMETOOLONG:
        return -ENAMETOOLONG;
    case MNT3ERR_NOTSUPP:
        return -EOPNOTSUPP;
    case MNT3ERR_IO:
    case MNT3ERR_SERVERFAULT:
        break;
    }
    return -EIO;
}

static int take_root(struct nfs_client *c, struct coder *results, char *message)
{
    struct mount3_result result = {0};
    int error;

    mount3_code_mnt(results, &result);
    if (results->bad || results->in.bad || (result.status == MNT3_OK && result.fh.length == 0))
        return client_fail(&c->attr, message, -EPROTO, "MOUNT over TCP", "the answer violates RFC 1813");
    error = mount_errno(result.status);
    if (error)
        return client_fail(&c->attr, message, error, c->path, mount3_status_str(result.status));
    c->root = result.fh;
    c->mounted = true;
    return 0;
}

int client_mount(struct nfs_client *c, char *message)
{
    struct tcp_call *t = calloc(1, sizeof(*t));
    struct coder results;
    int error;

    if (!t)
        return client_fail(&c->attr, message, -ENOMEM, "out of memory", NULL);
    if (strlen(c->path) > MOUNT_PATH_MAX)
        error = client_fail(&c->attr, message, -ENAMETOOLONG, "the path is too long", NULL);
    else
        error = client_mount_ask(&c->attr, MOUNT3_MNT, c->path, t, &results, message);
    if (error == 0) {
        c->addr = t->addr;
        c->addr_length = t->length;
        error = take_root(c, &results, message);
    }
    tcp_call_end(t);
    free(t);
    return error;
}

/* UMNT only updates the server's list of mounts, which is for people, so wait for it only UMNT_MS. */
void client_unmount(struct nfs_client *c)
{
    struct tcp_call *t = c->mounted ? calloc(1, sizeof(*t)) : NULL;
    struct coder results;

    if (!t)
        return;
    t->addr = c->addr;
    t->length = c->addr_length;
    t->cred = c->attr.cred;
    t->timeout_ms = UMNT_MS;
    call_mount(t, MOUNT3_UMNT, c->path, &results);
    c->mounted = false;
    tcp_call_end(t);
    free(t);
}

struct seen_export {
    struct nfs3_text path, group[GROUPS_SEEN];
    uint32_t groups; /* used entries of `group` */
};

/* Returns how many octets of `path` name this export; 0 if the path is not in it. */
static int lies_in(const char *path, const struct nfs3_text *export)
{
    size_t n = export->length;

    while (n > 1 && export->at[n - 1] == '/')
        n--;
    if (n == 0 || n > MOUNT_PATH_MAX || strncmp(path, export->at, n) != 0)
        return 0;
    return n == 1 || path[n] == 0 || path[n] == '/' ? (int)n : 0;
}

/* Calls `each` for each export of the host. */
static int list_exports(const struct nfs_client_attr *attr, void (*each)(void *user, const struct seen_export *e),
                        void *user, char *message)
{
    struct tcp_call *t = calloc(1, sizeof(*t));
    struct seen_export e;
    struct coder results;
    int error;

    if (!t)
        return client_fail(attr, message, -ENOMEM, "out of memory", NULL);
    error = client_mount_ask(attr, MOUNT3_EXPORT, NULL, t, &results, message);
    for (int i = 0; error == 0 && i < EXPORTS_MAX; i++) {
        if (!mount3_code_export(&results, &e.path, e.group, &e.groups, GROUPS_SEEN))
            break;
        each(user, &e);
    }
    if (error == 0 && (results.bad || results.in.bad))
        error = client_fail(attr, message, -EPROTO, "MOUNT over TCP", "the list of exports is malformed");
    tcp_call_end(t);
    free(t);
    return error;
}

struct best_export {
    const char *path;
    int length;
};

static void better(void *user, const struct seen_export *e)
{
    struct best_export *best = user;
    int n = lies_in(best->path, &e->path);

    best->length = n > best->length ? n : best->length;
}

int nfs_client_export(const struct nfs_client_attr *attr, const char *path, char *message)
{
    struct best_export best = {.path = path};
    int error = list_exports(attr, better, &best, message);

    return error ? error : best.length;
}

struct each_export {
    void (*each)(void *user, const char *path, const char *groups);
    void *user;
};

static void report_each(void *user, const struct seen_export *e)
{
    struct each_export *each = user;
    char path[MOUNT_PATH_MAX + 1], groups[GROUPS_SEEN * (MOUNT_NAME_MAX + 1) + 1] = "";
    size_t n = 0;

    snprintf(path, sizeof(path), "%.*s", (int)e->path.length, e->path.at);
    for (uint32_t i = 0; i < e->groups && i < GROUPS_SEEN; i++)
        n += (size_t)snprintf(groups + n, sizeof(groups) - n, "%s%.*s", i ? " " : "",
                              (int)(e->group[i].length < MOUNT_NAME_MAX ? e->group[i].length : MOUNT_NAME_MAX),
                              e->group[i].at);
    each->each(each->user, path, groups);
}

int nfs_client_exports(const struct nfs_client_attr *attr,
                       void (*each)(void *user, const char *path, const char *groups), void *user, char *message)
{
    struct each_export all = {each, user};

    return list_exports(attr, report_each, &all, message);
}
