/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcmsg.h - encodes and decodes the headers of ONC RPC calls and replies (RFC 5531 9), with AUTH_NONE and AUTH_SYS. */
#ifndef RDDP_NFS_RPCMSG_H
#define RDDP_NFS_RPCMSG_H

#include "nfs/nfs3_xdr.h"

enum { RPC_AUTH_NONE = 0, RPC_AUTH_SYS = 1, RPC_AUTH_MAX = 400, RPC_GROUPS_MAX = 16, RPC_MACHINE_MAX = 255 };
/* The longest header of a call, and of an accepted reply, in octets. */
enum { RPC_CALL_MAX = 24 + 2 * (8 + RPC_AUTH_MAX), RPC_REPLY_MAX = 12 + 8 + RPC_AUTH_MAX + 4 + 8 };

/* The caller's credential. The body of other flavors is skipped; `flavor` tells which it was. */
struct rpc_cred {
    uint32_t flavor;
    uint32_t uid, gid;
    uint32_t groups, group[RPC_GROUPS_MAX];
};

struct rpc_call {
    uint32_t xid;
    uint32_t rpc_version; /* 2 */
    uint32_t program, version, procedure;
    struct rpc_cred cred;
};

enum rpc_result {
    RPC_SUCCESS,
    RPC_PROG_UNAVAIL,
    RPC_PROG_MISMATCH,
    RPC_PROC_UNAVAIL,
    RPC_GARBAGE_ARGS,
    RPC_SYSTEM_ERR,
    RPC_MISMATCH = 100, /* denied: RPC version not supported */
    RPC_AUTH_ERROR,     /* denied: credential rejected */
};

struct rpc_reply {
    uint32_t xid;
    enum rpc_result result;
    uint32_t low, high;   /* for the two MISMATCH results */
    uint32_t auth_status; /* for RPC_AUTH_ERROR: auth_stat of RFC 5531 9 */
};

enum { RPC_AUTH_BADCRED = 1, RPC_AUTH_TOOWEAK = 5 };

/* Code a header. A call whose message type is not CALL, or a reply whose type is not REPLY, is bad. A credential that
 * cannot be decoded sets `bad_cred`, not c->bad, and leaves `flavor` at RPC_AUTH_SYS; answer it with RPC_AUTH_ERROR and
 * RPC_AUTH_BADCRED. If rpc_version is not 2, nothing after it is decoded; answer with RPC_MISMATCH. A reply other than
 * RPC_SUCCESS must have nothing after its header. */
void rpc_code_call(struct coder *c, struct rpc_call *call, bool *bad_cred);
void rpc_code_reply(struct coder *c, struct rpc_reply *reply);

/* The AUTH_SYS credential of this process: effective user and group, and the first 16 supplementary groups. */
void rpc_cred_mine(struct rpc_cred *cred);
const char *rpc_result_str(enum rpc_result result);

#endif
