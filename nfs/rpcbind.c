/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcbind.c - three calls to rpcbind, each over its own connection: SET and UNSET of version 4 over the local socket,
 * where rpcbind knows the caller's user ID, and GETPORT of version 2, which every host answers. */
#include "nfs/rpcbind.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "nfs/tcp_call.h"

enum { RPCBIND_PROGRAM = 100000, RPCBIND_PORT = 111, PORTMAP_VERSION = 2, RPCBIND_VERSION = 4 };
enum { PROC_SET = 1, PROC_UNSET = 2, PROC_GETPORT = 3 };
enum { REPLY_MAX = 512, LOCAL_MS = 10000 };

#define LOCAL_SOCKET "/run/rpcbind.sock"

/* All three calls return one number. A reply that is not one number, or not a success, is -EPROTO. */
static int ask_binder(struct tcp_call *t, void (*args)(struct coder *c, void *user), void *user, uint32_t *result)
{
    struct coder results;
    int error;

    t->program = RPCBIND_PROGRAM;
    t->reply_max = REPLY_MAX;
    error = tcp_call(t, args, user, &results);
    if (error == 0)
        code32(&results, result);
    if (error == 0 ? results.bad || results.in.bad : t->trouble || error == -EMSGSIZE || error == -EBADMSG)
        error = -EPROTO;
    tcp_call_end(t);
    return error;
}

static void mapping_args(struct coder *c, void *user)
{
    uint32_t *mapping = user;

    for (int i = 0; i < 4; i++)
        code32(c, &mapping[i]);
}

int rpcbind_getport(const struct sockaddr *addr, uint32_t program, uint32_t version, const char *netid, int timeout_ms)
{
    struct tcp_call t = {.version = PORTMAP_VERSION, .procedure = PROC_GETPORT};
    uint32_t mapping[] = {program, version, IPPROTO_TCP, 0}, port = 0;
    int error;

    if (strcmp(netid, "tcp") != 0 && strcmp(netid, "tcp6") != 0)
        return -EINVAL;
    t.length = addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    memcpy(&t.addr, addr, t.length);
    tcp_call_port(&t, RPCBIND_PORT);
    t.timeout_ms = timeout_ms < 0 ? 0 : timeout_ms;
    error = ask_binder(&t, mapping_args, mapping, &port);
    if (error)
        return error;
    return port <= UINT16_MAX ? (int)port : -EPROTO;
}

/* struct rpcb of RFC 1833 2.1. */
struct rpcbind_service {
    uint32_t program, version;
    const char *netid;
    char address[32], owner[16];
};

static void text_args(struct coder *c, const char *octets)
{
    struct nfs3_text text = {octets, (uint32_t)strlen(octets)};

    code_text(c, &text, text.length);
}

static void service_args(struct coder *c, void *user)
{
    struct rpcbind_service *s = user;

    code32(c, &s->program);
    code32(c, &s->version);
    text_args(c, s->netid);
    text_args(c, s->address);
    text_args(c, s->owner);
}

/* A universal address ends with the two octets of the port in decimal (RFC 5665 5.2.3.3); the host part is the
 * wildcard. UNSET ignores the address. */
static int change_binding(uint32_t procedure, uint32_t program, uint32_t version, const char *netid, unsigned port)
{
    static const struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = LOCAL_SOCKET};
    struct tcp_call t = {.length = sizeof(path), .version = RPCBIND_VERSION, .procedure = procedure};
    struct rpcbind_service s = {.program = program, .version = version, .netid = netid};
    bool v6 = netid[0] && netid[strlen(netid) - 1] == '6';
    uint32_t done = 0;
    int error;

    memcpy(&t.addr, &path, sizeof(path));
    t.timeout_ms = LOCAL_MS;
    snprintf(s.address, sizeof(s.address), "%s.%u.%u", v6 ? "::" : "0.0.0.0", port >> 8, port & 255);
    snprintf(s.owner, sizeof(s.owner), "%u", geteuid());
    error = ask_binder(&t, service_args, &s, &done);
    return error ? error : done ? 0 : -EEXIST;
}

int rpcbind_set(uint32_t program, uint32_t version, const char *netid, uint16_t port)
{
    return change_binding(PROC_SET, program, version, netid, port);
}

int rpcbind_unset(uint32_t program, uint32_t version, const char *netid)
{
    return change_binding(PROC_UNSET, program, version, netid, 0);
}
