/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/rpc.h - ONC RPC over RDMA (RFC 8166, version 1) for programs made by rpcgen: a CLIENT and an SVCXPRT of
 * libtirpc.
 *
 * Stubs and dispatchers run unchanged: one line of a client and one of a server differ from a program over TCP. Without
 * a binding nothing is placed directly. A binding names, by procedure, the one opaque of its arguments or results that
 * may travel by RDMA between its own places at both ends (RFC 8166 6).
 *
 * Link with librddp-rpc (pkg-config rddp-rpc). The types of libtirpc are named by their tags here, so that this header
 * stands alone: CLIENT is struct __rpc_client, SVCXPRT is struct __rpc_svcxprt. */
#ifndef RDDP_RPC_H
#define RDDP_RPC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDDP_RPC_API __attribute__((visibility("default")))

struct __rpc_client;
struct __rpc_svcxprt;

enum { RDDP_RPC_PORT_NFS = 20049 };

/* What a procedure may place directly. A member may be NULL: nothing of that kind. The functions receive the C
 * structures that rpcgen made for arguments and results. */
struct rddp_rpc_proc {
    uint32_t number;
    /* Returns the address of the eligible opaque (or string) of these arguments and its length in octets; NULL:
     * none. */
    const void *(*argument)(const void *arguments, uint32_t *length);
    /* The same for results. */
    const void *(*result)(const void *results, uint32_t *length);
    /* Returns the greatest length, in octets, of the eligible result for these arguments: a client offers that much. */
    uint32_t (*result_max)(const void *arguments);
    /* Returns where the peer is to put the result, if the client set its place in `results` before the call: at least
     * `result_max` octets, which `result` returns afterwards. NULL: the result is copied from elsewhere. */
    void *(*place)(const void *results);
    /* Returns the greatest length of the results without the eligible one, in XDR octets. NULL: reply_max of the
     * attributes. */
    uint32_t (*reply_max)(const void *arguments);
    /* Server: the procedure changes nothing. A call that is repeated because its connection was lost is executed again;
     * without this it gets the reply to the first one, for two minutes. */
    bool repeatable;
};

struct rddp_rpc_binding {
    uint32_t program, version;
    const struct rddp_rpc_proc *proc;
    unsigned procs;
};

struct rddp_rpc_attr {
    uint16_t port;        /* client: 0 asks the host's rpcbind for netid rdma or rdma6; server: 0 picks a free port */
    uint32_t credits;     /* outstanding calls: requested by a client (default 32), granted by a server (default 64) */
    uint32_t inline_size; /* octets of a message that is sent without RDMA, 1024 to 262144, default 4096 */
    /* Client: octets of results, default 65536; a call with longer ones fails: RPC_CANTSEND, EMSGSIZE. */
    uint32_t reply_max;
    /* Server: octets of Read chunks in a call, default 1 MiB + 64 KiB; a call with longer ones fails likewise. */
    uint32_t read_max;
    int connect_timeout_ms; /* client: default 10000 */
    bool lenient; /* client: accept an eligible result inline although it was offered a chunk (against RFC 8166 6.1) */
    const struct rddp_rpc_binding *binding;
    unsigned bindings;
};

/* Set the defaults. Call one before setting members. */
RDDP_RPC_API void clnt_rdma_attr_init(struct rddp_rpc_attr *attr);
RDDP_RPC_API void svc_rdma_attr_init(struct rddp_rpc_attr *attr);

/* Connects to `host`, a name or an address. `attr` may be NULL. The CLIENT is used like any other; several threads may
 * share it, one call at a time. It reconnects when the connection is lost. Results longer than reply_max, and arguments
 * longer than the server's read_max, fail with RPC_CANTSEND and EMSGSIZE. NULL: see rpc_createerr. */
RDDP_RPC_API struct __rpc_client *clnt_rdma_create(const char *host, uint32_t program, uint32_t version,
                                                   const struct rddp_rpc_attr *attr);

/* Listens at `address` (NULL: every IPv4 and IPv6 address). Use the SVCXPRT with svc_reg() with a NULL netconfig, and
 * svc_run(). NULL: EADDRNOTAVAIL (not an address of this host), ENOMEM, or an errno of rddp_open() and
 * rddp_listen(). */
RDDP_RPC_API struct __rpc_svcxprt *svc_rdma_create(const char *address, const struct rddp_rpc_attr *attr);

/* Registers with the local rpcbind, as netid rdma or rdma6, or unregisters. False: rpcbind refused or is not
 * running. */
RDDP_RPC_API bool svc_rdma_register(struct __rpc_svcxprt *xprt, uint32_t program, uint32_t version);
RDDP_RPC_API bool svc_rdma_unregister(struct __rpc_svcxprt *xprt, uint32_t program, uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
