/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_rpcbind.c - registration under the netids rdma and rdma6. libtirpc's own functions know only the netids of its
 * transports, and rpcbind answers GETADDR for the transport of the query. So SET, UNSET and DUMP are called here, with
 * universal addresses in TCP's format (RFC 5665 5.1). */
#include "rpc/tirpc_rpcbind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>

#include "rpc/tirpc_xdr.h"

enum { UADDR_MAX = 80, TIMEOUT_S = 10 };

static const struct timeval timeout = {.tv_sec = TIMEOUT_S};

static const char *netid_of(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? "rdma6" : "rdma";
}

void rpcbind_set_port(struct sockaddr_storage *addr, uint16_t port)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (addr->ss_family == AF_INET6) {
        memcpy(&v6, addr, sizeof(v6));
        v6.sin6_port = htons(port);
        memcpy(addr, &v6, sizeof(v6));
    } else {
        memcpy(&v4, addr, sizeof(v4));
        v4.sin_port = htons(port);
        memcpy(addr, &v4, sizeof(v4));
    }
}

static uint16_t tirpc_rpcbind_port_of(const struct sockaddr_storage *addr)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (addr->ss_family == AF_INET6) {
        memcpy(&v6, addr, sizeof(v6));
        return ntohs(v6.sin6_port);
    }
    memcpy(&v4, addr, sizeof(v4));
    return ntohs(v4.sin_port);
}

/* Writes a universal address: the host address, then the two octets of the port in decimal. */
static void write_uaddr(const struct sockaddr_storage *addr, char to[UADDR_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";
    unsigned port = tirpc_rpcbind_port_of(addr);
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (addr->ss_family == AF_INET6) {
        memcpy(&v6, addr, sizeof(v6));
        inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
    } else {
        memcpy(&v4, addr, sizeof(v4));
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    }
    snprintf(to, UADDR_MAX, "%s.%u.%u", host, port >> 8, port & 255);
}

static uint16_t port_in_uaddr(const char *text)
{
    const char *low = strrchr(text, '.'), *high = low;
    unsigned a, b;

    while (high && high > text && *--high != '.')
        ;
    if (!high || high == text || sscanf(high, ".%u.%u", &a, &b) != 2 || a > 255 || b > 255)
        return 0;
    return (uint16_t)(a << 8 | b);
}

/* Takes `fd`, which it closes on failure. Returns NULL and sets errno. */
static CLIENT *rpcbind_client(int fd, struct netbuf *where)
{
    CLIENT *client = clnt_vc_create(fd, where, RPCBPROG, RPCBVERS, 0, 0);

    if (client) {
        CLNT_CONTROL(client, CLSET_FD_CLOSE, NULL);
        return client;
    }
    close(fd);
    errno = rpc_createerr.cf_error.re_errno ? rpc_createerr.cf_error.re_errno : ECONNREFUSED;
    return NULL;
}

/* The rpcbind of the host of `addr`, by its number: libtirpc would look for its port in /etc/services, which containers
 * rarely have, and say that the host is unknown. Returns NULL and sets errno. */
static CLIENT *rpcbind_at(const struct sockaddr_storage *addr)
{
    struct sockaddr_storage at = *addr;
    socklen_t length = at.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    struct netbuf where = {.maxlen = sizeof(at), .len = length, .buf = &at};
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    if (fd < 0)
        return NULL;
    rpcbind_set_port(&at, PMAPPORT);
    /* This bounds connect(), too. */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) ||
        connect(fd, (struct sockaddr *)&at, length)) {
        error = errno == EINPROGRESS ? ETIMEDOUT : errno;
        close(fd);
        errno = error;
        return NULL;
    }
    return rpcbind_client(fd, &where);
}

enum clnt_stat rpcbind_ask(uint32_t program, uint32_t version, struct sockaddr_storage *addr)
{
    CLIENT *client = rpcbind_at(addr);
    rpcblist_ptr list = NULL;
    enum clnt_stat status;
    struct rpc_err error;
    uint16_t port = 0;

    if (!client)
        return RPC_RPCBFAILURE;
    status =
        CLNT_CALL(client, (rpcproc_t)RPCBPROC_DUMP, xdr_nothing, NULL, (xdrproc_t)xdr_rpcblist_ptr, &list, timeout);
    CLNT_GETERR(client, &error);
    for (rpcblist_ptr at = status == RPC_SUCCESS ? list : NULL; at; at = at->rpcb_next)
        if (at->rpcb_map.r_prog == program && at->rpcb_map.r_vers == version &&
            strcmp(at->rpcb_map.r_netid, netid_of(addr)) == 0)
            port = port_in_uaddr(at->rpcb_map.r_addr);
    CLNT_FREERES(client, (xdrproc_t)xdr_rpcblist_ptr, &list);
    CLNT_DESTROY(client);
    rpcbind_set_port(addr, port);
    errno = status == RPC_SUCCESS ? ENOENT : error.re_errno ? error.re_errno : EIO;
    return port ? RPC_SUCCESS : status == RPC_SUCCESS ? RPC_PROGNOTREGISTERED : RPC_RPCBFAILURE;
}

/* Uses rpcbind's local socket, where rpcbind knows and trusts the caller's user ID. */
static bool call_local(rpcproc_t number, uint32_t program, uint32_t version, const struct sockaddr_storage *addr)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = _PATH_RPCBINDSOCK};
    struct netbuf where = {.maxlen = sizeof(path), .len = sizeof(path), .buf = &path};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char uaddr[UADDR_MAX], netid[8], owner[16];
    struct rpcb map = {.r_prog = program, .r_vers = version, .r_netid = netid, .r_addr = uaddr, .r_owner = owner};
    bool_t done = FALSE;
    CLIENT *client;

    if (fd < 0)
        return false;
    client = rpcbind_client(fd, &where);
    if (!client)
        return false;
    snprintf(netid, sizeof(netid), "%s", netid_of(addr));
    snprintf(owner, sizeof(owner), "%u", geteuid());
    write_uaddr(addr, uaddr);
    if (CLNT_CALL(client, number, (xdrproc_t)xdr_rpcb, &map, (xdrproc_t)xdr_bool, &done, timeout) != RPC_SUCCESS)
        done = FALSE;
    CLNT_DESTROY(client);
    return done;
}

bool rpcbind_change(uint32_t program, uint32_t version, const struct sockaddr_storage *addr)
{
    return call_local((rpcproc_t)RPCBPROC_SET, program, version, addr);
}

bool rpcbind_untell(uint32_t program, uint32_t version, const struct sockaddr_storage *addr)
{
    return call_local((rpcproc_t)RPCBPROC_UNSET, program, version, addr);
}
