/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* export.c - a directory is opened for clients; who may come, and as whom he is seen. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "nfs/server/export.h"

enum { ANON = 65534, NET_TEXT = 64 };

struct export_net {
    int family;
    unsigned prefix; /* bits of `address` that count */
    uint8_t address[16];
};

void export_attr_init(struct export_attr *attr)
{
    *attr = (struct export_attr){.squash = SQUASH_ROOT, .anon_uid = ANON, .anon_gid = ANON};
}

__attribute__((format(printf, 3, 4))) static int fail(char *error, int code, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(error, EXPORT_TEXT, format, list);
    va_end(list);
    return code;
}

/* An IPv4 address in IPv6 dress (RFC 4291 2.5.5.2) is an IPv4 address. */
static bool mapped(const uint8_t *address)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(address, prefix, sizeof(prefix));
}

static int parse_prefix(const char *text, unsigned limit, unsigned *prefix)
{
    size_t n = strspn(text, "0123456789");

    if (!n || n > 3 || text[n])
        return -EINVAL;
    *prefix = (unsigned)atoi(text);
    return *prefix <= limit ? 0 : -EINVAL;
}

static int parse_net(struct export_net *net, const char *text, char *error)
{
    const char *slash = strchr(text, '/');
    char address[NET_TEXT];
    unsigned bits;

    snprintf(address, sizeof(address), "%.*s", (int)(slash ? slash - text : (ptrdiff_t)strlen(text)), text);
    *net = (struct export_net){.family = AF_INET};
    if (inet_pton(AF_INET, address, net->address) != 1) {
        net->family = AF_INET6;
        if (inet_pton(AF_INET6, address, net->address) != 1)
            return fail(error, -EINVAL, "'%.100s' is no IPv4 or IPv6 address or prefix", text);
    }
    bits = net->family == AF_INET ? 32 : 128;
    net->prefix = bits;
    if (slash && parse_prefix(slash + 1, bits, &net->prefix))
        return fail(error, -EINVAL, "'%.100s': the prefix of an %s address is 0 to %u", text,
                    net->family == AF_INET ? "IPv4" : "IPv6", bits);
    if (net->family == AF_INET6 && net->prefix >= 96 && mapped(net->address)) {
        memmove(net->address, net->address + 12, 4);
        net->family = AF_INET;
        net->prefix -= 96;
    }
    return 0;
}

static int parse_nets(struct export *e, char *error)
{
    int bad = 0;

    if (!e->attr.clients)
        return 0;
    for (e->nets = 0; e->attr.clients[e->nets];)
        e->nets++;
    /* One more than needed: no client at all is a list, too. */
    e->net = calloc(e->nets + 1, sizeof(*e->net));
    if (!e->net)
        return fail(error, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < e->nets && !bad; i++)
        bad = parse_net(&e->net[i], e->attr.clients[i], error);
    e->attr.clients = NULL; /* was borrowed */
    return bad;
}

/* FNV-1a. */
static uint32_t id_of(const char *path)
{
    uint32_t id = 0x811c9dc5;

    for (; *path; path++)
        id = (id ^ (uint8_t)*path) * 0x01000193;
    return id;
}

static int open_root(struct export *e, const char *path, char *error)
{
    struct stat st;

    e->path = realpath(path, NULL);
    if (!e->path)
        return fail(error, -errno, "%.150s: %s", path, strerror(errno));
    e->root = open(e->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (e->root < 0 || fstat(e->root, &st))
        return fail(error, -errno, "%.150s: %s", e->path, strerror(errno));
    e->dev = st.st_dev;
    e->id = id_of(e->path);
    return 0;
}

static bool is_in_memory(int root)
{
    struct statfs fs;

    return !fstatfs(root, &fs) && ((unsigned long)fs.f_type == TMPFS_MAGIC || (unsigned long)fs.f_type == RAMFS_MAGIC);
}

int export_open(struct export *e, const char *path, const struct export_attr *attr, char *error)
{
    int bad;

    *e = (struct export){.root = -1, .attr = *attr};
    /* To the kernel, this number says "leave it as it is". */
    if (attr->anon_uid == (uid_t)-1 || attr->anon_gid == (gid_t)-1)
        return fail(error, -EINVAL, "the anonymous user and group are numbers below 4294967295");
    bad = open_root(e, path, error);
    if (!bad)
        bad = parse_nets(e, error);
    e->in_memory = !bad && is_in_memory(e->root);
    if (bad)
        export_close(e);
    return bad;
}

void export_close(struct export *e)
{
    if (e->root >= 0)
        close(e->root);
    free(e->path);
    free(e->net);
    *e = (struct export){.root = -1};
}

static bool inside(const struct export_net *net, int family, const uint8_t *address)
{
    unsigned whole = net->prefix / 8, rest = net->prefix % 8;

    if (net->family != family || memcmp(net->address, address, whole))
        return false;
    return !rest || (net->address[whole] ^ address[whole]) >> (8 - rest) == 0;
}

bool export_allows(const struct export *e, const struct sockaddr *peer)
{
    uint8_t address[16] = {0};
    int family = peer->sa_family;

    if (!e->net)
        return true;
    if (family == AF_INET) {
        memcpy(address, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (family == AF_INET6) {
        memcpy(address, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 16);
        if (mapped(address)) {
            memmove(address, address + 12, 4);
            family = AF_INET;
        }
    } else {
        return false;
    }
    for (unsigned i = 0; i < e->nets; i++) {
        if (inside(&e->net[i], family, address))
            return true;
    }
    return false;
}

/* As exports(5) has it: root_squash takes user and group 0 each for itself. The number -1 would leave the thread as it
 * is, whoever that may be: nobody gets it. */
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
