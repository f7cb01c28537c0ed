/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_session.c - mounts the export of a "HOST:/PATH", and describes errors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/packet_options.h"
#include "nfs/command/nfs.h"

/* --- trouble ------------------------------------------------------------------------------------------------- */

const char *nfs_why(const struct nfs_op *op)
{
    if (op->error)
        return op->trouble ? op->trouble : error_text(op->error);
    return nfs3_status_str(op->result.status);
}

const char *nfs_errno_text(int error)
{
    switch (-error) {
    case EXDEV:
        return "a symbolic link or '..' that leads out of the export";
    case EINTR:
        return "interrupted";
    case EPROTO:
        return "the server's answer violates RFC 1813";
    }
    return error_text(error);
}

int nfs_exit_code(int error)
{
    return error == -EPROTO || error == -EPROTONOSUPPORT ? EXIT_PROTOCOL : EXIT_FAILED;
}

int nfs_fail(const struct nfs_session *s, int code, const char *path, const char *why)
{
    char whole[XFER_PATH + XFER_TEXT], text[XFER_TEXT];
    snprintf(whole, sizeof(whole), "%s%s%s", s->name, *path ? "/" : "", path);
    return fail(code, "%s: %s", xfer_printable(text, whole), why);
}

bool nfs_join(char to[XFER_PATH + 1], const char *path, const char *name)
{
    size_t n = strlen(path), slash = n > 0, m = strlen(name);
    if (n + slash + m > XFER_PATH)
        return false;
    memmove(to, path, n);
    to[n] = '/';
    memcpy(to + n + slash, name, m + 1);
    return true;
}

/* --- the session --------------------------------------------------------------------------------------------- */

int nfs_connect_code(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return EXIT_CONNECT;
    }
    return nfs_exit_code(-error);
}

static struct nfs_client *open_at(struct nfs_client_attr *attr, const char *path, size_t length, char *error)
{
    char export[XFER_PATH + 1];
    memcpy(export, path, length);
    export[length] = 0;
    attr->path = length ? export : "/";
    struct nfs_client *client = nfs_client_open(attr, error);
    attr->path = NULL;
    return client;
}

/* The server lists no export that PATH lies in, so try PATH itself and then its parents. */
static size_t try_upwards(struct nfs_session *s, struct nfs_client_attr *attr, char *error)
{
    const char *path = s->remote.path;
    char first[NFS_CLIENT_TEXT] = "";
    size_t n = strlen(path);
    for (;;) {
        s->client = open_at(attr, path, n, error);
        if (s->client || tool_stopped || (errno != ENOENT && errno != ENOTDIR && errno != EACCES))
            return n;
        if (!*first)
            memcpy(first, error, sizeof(first));
        if (n <= 1)
            break;
        do
            n--;
        while (n > 0 && path[n] != '/');
    }
    /* Report the error of the path that the user gave. */
    memcpy(error, first, sizeof(first));
    return 0;
}

static void session_say(void *user, enum rddp_log_level level, const char *line)
{
    (void)user;
    (void)level;
    warn("%s", line);
}

void nfs_set_attr(struct nfs_client_attr *attr, const struct nfs_options *options)
{
    nfs_client_attr_init(attr);
    attr->port = options->port ? (int)options->port : packet_options.address ? NFS_PORT : NFS_RDMA_PORT;
    attr->mount_port = (int)options->mount_port;
    attr->credits = options->credits;
    attr->wire = options->wire;
    attr->stop = &tool_stopped;
    attr->log = session_say;
    if (options->uid != NFS_ID_NONE)
        attr->cred.uid = options->uid;
    if (options->gid != NFS_ID_NONE) {
        attr->cred.gid = options->gid;
        attr->cred.groups = 0;
    }
}

/* Makes the path absolute; it has no slash at its end. */
static int make_absolute(struct cp_remote *remote)
{
    size_t n = strlen(remote->path);
    if (remote->path[0] == '/')
        return 0;
    if (n + 1 > XFER_PATH)
        return fail(EXIT_FAILED, "%s", xfer_result_text(XFER_TOO_LONG));
    memmove(remote->path + 1, remote->path, n + 1);
    remote->path[0] = '/';
    return 0;
}

int nfs_session_open(struct nfs_session *s, const struct nfs_options *options, const char *text)
{
    struct nfs_client_attr attr;
    char error[NFS_CLIENT_TEXT], line[XFER_TEXT];
    *s = (struct nfs_session){.options = options};
    if (!is_remote(text))
        usage_error("'%s' is not HOST:/PATH", text);
    int code = remote_parse(&s->remote, text);
    if (!code)
        code = make_absolute(&s->remote);
    if (code)
        return code;
    bool bracket = strchr(s->remote.host, ':');
    snprintf(s->name, sizeof(s->name), "%s%.255s%s:%.700s", bracket ? "[" : "", s->remote.host, bracket ? "]" : "",
             s->remote.path);
    nfs_set_attr(&attr, options);
    attr.host = s->remote.host;
    code = packet_nfs_net(&s->net, &attr.own);
    attr.net = s->net;
    if (code)
        return code;
    int found = nfs_client_export(&attr, s->remote.path, error);
    if (found < 0 && nfs_connect_code(-found) == EXIT_CONNECT)
        return fail(EXIT_CONNECT, "%s", xfer_printable(line, error));
    size_t n = found > 0 ? (size_t)found : 0;
    if (found > 0)
        s->client = open_at(&attr, s->remote.path, n, error);
    else
        n = try_upwards(s, &attr, error);
    if (!s->client)
        return fail(nfs_connect_code(errno), "%s", xfer_printable(line, error));
    s->inside = s->remote.path + n;
    while (*s->inside == '/')
        s->inside++;
    return 0;
}

void nfs_session_close(struct nfs_session *s)
{
    if (s->client)
        nfs_client_close(s->client);
    if (s->net)
        rddp_stream_net_close(s->net);
    s->client = NULL;
    s->net = NULL;
}

void nfs_session_wait(struct nfs_session *s)
{
    nfs_wait(s->client, NFS_WAIT_MS);
}

int nfs_parent(struct nfs_session *s, struct nfs3_fh *dir, char name[XFER_NAME + 1])
{
    char parent[XFER_PATH + 1];
    struct nfs3_attr attr;
    const char *slash = strrchr(s->inside, '/');
    size_t n = slash ? (size_t)(slash - s->inside) : 0;
    memcpy(parent, s->inside, n);
    parent[n] = 0;
    last_name(name, s->inside);
    if (!*name)
        return nfs_fail(s, EXIT_FAILED, "", *s->inside ? xfer_result_text(XFER_BAD_NAME) : "is the export itself");
    int error = nfs_lookup(s->client, parent, true, dir, &attr);
    if (!error && attr.type != NFS3_DIR)
        error = -ENOTDIR;
    return error ? nfs_fail(s, nfs_exit_code(error), "", nfs_errno_text(error)) : 0;
}
