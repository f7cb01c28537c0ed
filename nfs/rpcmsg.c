/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcmsg.c - the headers of ONC RPC calls and replies (RFC 5531 9), AUTH_NONE and AUTH_SYS. */
#include "nfs/rpcmsg.h"

#include <stdlib.h>
#include <unistd.h>

#include "nfs/nfs3_xdr_types.h"

enum { CALL = 0, REPLY = 1, VERSION = 2, ACCEPTED = 0, DENIED = 1, DENIED_MISMATCH = 0, DENIED_AUTH = 1 };

/* --- credentials and verifiers --------------------------------------------------------------------------------- */

/* The body of AUTH_SYS (RFC 5531 appendix A), a stream of its own. We ignore the peer's stamp and machine name, and
 * send 0 and an empty name. */
static void code_sys(struct coder *c, struct rpc_cred *cred)
{
    struct nfs3_text machine = {"", 0};
    uint32_t stamp = 0;

    code32(c, &stamp);
    code_text(c, &machine, RPC_MACHINE_MAX);
    code32(c, &cred->uid);
    code32(c, &cred->gid);
    code32(c, &cred->groups);
    if (cred->groups > RPC_GROUPS_MAX) {
        code_fail(c);
        return;
    }
    for (uint32_t i = 0; i < cred->groups; i++)
        code32(c, &cred->group[i]);
    code_end(c);
}

static void write_cred(struct coder *c, struct rpc_cred *cred)
{
    uint32_t length = 0;

    code32(c, &cred->flavor);
    if (cred->flavor == RPC_AUTH_SYS)
        length = 5 * 4 + 4 * cred->groups;
    code32(c, &length);
    if (cred->flavor == RPC_AUTH_SYS)
        code_sys(c, cred);
}

/* A credential that is too long is skipped all the same, so that the call can be answered. */
static void rpcmsg_read_cred(struct coder *c, struct rpc_cred *cred, bool *bad_cred)
{
    struct nfs3_text body;
    struct coder sys;

    *cred = (struct rpc_cred){0};
    code32(c, &cred->flavor);
    code_text(c, &body, UINT32_MAX);
    if (c->bad)
        return;
    coder_read(&sys, body.at, body.length);
    if (cred->flavor == RPC_AUTH_SYS)
        code_sys(&sys, cred);
    *bad_cred = sys.bad || body.length > RPC_AUTH_MAX;
    if (*bad_cred)
        *cred = (struct rpc_cred){.flavor = RPC_AUTH_SYS};
}

/* We send AUTH_NONE and ignore the peer's verifier. */
static void code_verifier(struct coder *c)
{
    struct nfs3_text body = {"", 0};
    uint32_t flavor = RPC_AUTH_NONE;

    code32(c, &flavor);
    code_text(c, &body, RPC_AUTH_MAX);
}

void rpc_cred_mine(struct rpc_cred *cred)
{
    int n = getgroups(0, NULL);
    gid_t *list = n > 0 ? malloc((size_t)n * sizeof(*list)) : NULL;

    *cred = (struct rpc_cred){.flavor = RPC_AUTH_SYS, .uid = geteuid(), .gid = getegid()};
    n = list ? getgroups(n, list) : 0;
    for (int i = 0; i < n && i < RPC_GROUPS_MAX; i++)
        cred->group[cred->groups++] = list[i];
    free(list);
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

void rpc_code_call(struct coder *c, struct rpc_call *call, bool *bad_cred)
{
    *bad_cred = false;
    code32(c, &call->xid);
    code_enum(c, CALL, CALL, CALL);
    code32(c, &call->rpc_version);
    if (!c->writing && call->rpc_version != VERSION) {
        *call = (struct rpc_call){.xid = call->xid, .rpc_version = call->rpc_version};
        return;
    }
    code32(c, &call->program);
    code32(c, &call->version);
    code32(c, &call->procedure);
    if (c->writing)
        write_cred(c, &call->cred);
    else
        rpcmsg_read_cred(c, &call->cred, bad_cred);
    code_verifier(c);
}

/* --- replies --------------------------------------------------------------------------------------------------- */

static void rpcmsg_code_range(struct coder *c, struct rpc_reply *reply)
{
    code32(c, &reply->low);
    code32(c, &reply->high);
}

static void code_denied(struct coder *c, struct rpc_reply *reply)
{
    uint32_t why = reply->result == RPC_MISMATCH ? DENIED_MISMATCH : DENIED_AUTH;

    why = code_enum(c, why, DENIED_MISMATCH, DENIED_AUTH);
    reply->result = why == DENIED_MISMATCH ? RPC_MISMATCH : RPC_AUTH_ERROR;
    if (why == DENIED_MISMATCH)
        rpcmsg_code_range(c, reply);
    else
        code32(c, &reply->auth_status);
}

void rpc_code_reply(struct coder *c, struct rpc_reply *reply)
{
    bool denied = reply->result == RPC_MISMATCH || reply->result == RPC_AUTH_ERROR;

    if (!c->writing)
        *reply = (struct rpc_reply){0};
    code32(c, &reply->xid);
    code_enum(c, REPLY, REPLY, REPLY);
    denied = code_enum(c, denied ? DENIED : ACCEPTED, ACCEPTED, DENIED) == DENIED;
    if (denied) {
        code_denied(c, reply);
    } else {
        code_verifier(c);
        reply->result = code_enum(c, reply->result, RPC_SUCCESS, RPC_SYSTEM_ERR);
        if (reply->result == RPC_PROG_MISMATCH)
            rpcmsg_code_range(c, reply);
    }
    if (reply->result != RPC_SUCCESS)
        code_end(c);
}

const char *rpc_result_str(enum rpc_result result)
{
    switch (result) {
    case RPC_SUCCESS:
        return "done";
    case RPC_PROG_UNAVAIL:
        return "the server does not offer this program";
    case RPC_PROG_MISMATCH:
        return "the server does not offer this version of the program";
    case RPC_PROC_UNAVAIL:
        return "the server does not offer this procedure";
    case RPC_GARBAGE_ARGS:
        return "the server could not decode the arguments";
    case RPC_SYSTEM_ERR:
        return "the server lacks memory or another resource";
    case RPC_MISMATCH:
        return "the server does not speak RPC version 2";
    case RPC_AUTH_ERROR:
        return "the server rejects the credential";
    }
    return "a result unknown to RFC 5531";
}
