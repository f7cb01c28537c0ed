/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_op.c - one call of a client: encodes its arguments as a request, decodes the reply, and maps refusals to
 * errno. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/client/client_in.h"

enum {
    ARGS_MAX =
        2048, /* octets of the longest arguments without WRITE's data and SYMLINK's path: two handles, two names */
    GARBAGE_TRIES = 3,    /* like Linux: a server may fail to decode arguments for lack of memory */
    REPLY_OVER_MAX = 256, /* slack in octets: some servers encode results longer than necessary */
};

/* --- the call -------------------------------------------------------------------------------------------------- */

static bool client_op_refuse(struct nfs_op *op, int error, const char *trouble)
{
    op->error = error;
    op->trouble = trouble;
    return false;
}

static bool client_op_make_space(struct nfs_op *op, size_t n)
{
    uint8_t *memory;

    if (op->memory_size >= n)
        return true;
    memory = realloc(op->memory, n);
    if (!memory)
        return false;
    op->memory = memory;
    op->memory_size = n;
    return true;
}

/* RFC 8267 4.1: the server writes READ's data and READLINK's path by RDMA directly into the caller's buffer. */
static void offer_result(struct nfs_op *op)
{
    uint32_t length = op->proc == NFS3_READ ? op->args.range.count : NFS3_PATH_MAX;

    op->request.results = 0;
    if ((op->proc != NFS3_READ && op->proc != NFS3_READLINK) || length == 0)
        return;
    op->request.results = 1;
    op->request.result[0] = (struct request_item){.data = op->buffer, .length = length};
}

/* Returns the next XID. */
static uint32_t client_xid(struct nfs_client *c)
{
    return c->packet ? caller_xid(c->packet) : requester_xid(c->requester);
}

bool op_encode(struct nfs_client *c, struct nfs_op *op)
{
    struct rpc_call call = {.rpc_version = 2, .program = NFS_PROGRAM, .version = NFS_VERSION, .procedure = op->proc};
    size_t reply = RPC_REPLY_MAX + nfs3_result_max(op->proc, &op->args) + REPLY_OVER_MAX;
    bool bad_cred = false;
    struct coder coder;

    if (op->proc == NFS3_DIGEST) {
        call.program = DIGEST_PROGRAM;
        call.version = DIGEST_VERSION;
        call.procedure = 1;
    }
    op->error = 0;
    op->trouble = NULL;
    if ((unsigned)op->proc >= NFS3_PROCS)
        return client_op_refuse(op, -EINVAL, "no such procedure");
    if (!client_op_make_space(op, RPC_CALL_MAX + ARGS_MAX + reply))
        return client_op_refuse(op, -ENOMEM, "out of memory");
    call.xid = client_xid(c);
    call.cred = op->cred ? *op->cred : c->attr.cred;
    coder_write(&coder, op->memory, RPC_CALL_MAX + ARGS_MAX);
    rpc_code_call(&coder, &call, &bad_cred);
    coder.reduce = true;
    nfs3_code_args(&coder, op->proc, &op->args);
    if (coder.bad || coder.out.bad || bad_cred)
        return client_op_refuse(op, -ENAMETOOLONG, "a name or a path is too long");
    op->request.call = op->memory;
    op->request.call_length = coder_length(&coder);
    op->request.arguments = 0;
    if (coder.reduced && coder.item.length) {
        /* The argument is only read through this pointer. */
        op->request.argument[0] = (struct request_item){
            .data = (void *)(uintptr_t)coder.item.data,
            .position = coder.item.position,
            .length = coder.item.length,
        };
        op->request.arguments = 1;
    }
    offer_result(op);
    op->request.reply = op->memory + RPC_CALL_MAX + ARGS_MAX;
    op->request.reply_size = reply;
    return true;
}

/* --- the reply ------------------------------------------------------------------------------------------------- */

static void client_op_fail(struct nfs_op *op, int error, const char *trouble)
{
    op->error = error;
    op->trouble = trouble;
}

static int request_errno(enum request_status status)
{
    switch (status) {
    case REQUEST_OK:
        return 0;
    case REQUEST_TIMED_OUT:
        return -ETIMEDOUT;
    case REQUEST_CANCELLED:
    case REQUEST_CLOSED:
        return -ECANCELED;
    case REQUEST_NOT_SENT:
        return -ENOBUFS;
    case REQUEST_BAD_VERSION:
        return -EPROTONOSUPPORT;
    case REQUEST_REFUSED:
    case REQUEST_BAD_REPLY:
        break;
    }
    return -EIO;
}

/* Is there nothing that could execute the call? Others may have another program by the number that ours has. */
static bool is_absent(const struct nfs_op *op, const struct rpc_reply *reply)
{
    bool other = reply->result == RPC_PROG_MISMATCH || reply->result == RPC_PROC_UNAVAIL;

    return reply->result == RPC_PROG_UNAVAIL || (other && op->proc == NFS3_DIGEST);
}

/* The server did not execute the call. */
static enum op_verdict refused(struct nfs_op *op, const struct rpc_reply *reply)
{
    if (reply->result == RPC_GARBAGE_ARGS && ++op->refusals < GARBAGE_TRIES) {
        op->delay_ms = 0;
        return OP_AGAIN;
    }
    client_op_fail(op,
                   reply->result == RPC_AUTH_ERROR ? -EACCES
                   : is_absent(op, reply)          ? -EOPNOTSUPP
                                                   : -EIO,
                   rpc_result_str(reply->result));
    return OP_DONE;
}

/* The server must not claim more data than was asked for. The codec has checked that it wrote as much as it claims. */
static bool take_item(struct nfs_op *op)
{
    uint32_t used = op->request.results ? op->request.result[0].used : 0, said = 0;
    const void *inlined = NULL;

    if (op->result.status != NFS3_OK || (op->proc != NFS3_READ && op->proc != NFS3_READLINK))
        return true;
    if (op->proc == NFS3_READ) {
        said = op->result.read.count;
        inlined = op->result.read.data;
    } else {
        said = op->result.target.length;
        inlined = op->result.target.at;
    }
    if (said > (op->proc == NFS3_READ ? op->args.range.count : NFS3_PATH_MAX))
        return false;
    /* The data came inline. */
    if (used == 0 && said > 0)
        memcpy(op->buffer, inlined, said);
    if (op->proc == NFS3_READ)
        op->result.read.data = op->buffer;
    else
        op->result.target.at = op->buffer;
    return true;
}

static bool took_too_much(const struct nfs_op *op)
{
    return op->proc == NFS3_WRITE && op->result.status == NFS3_OK && op->result.write.count > op->args.write.count;
}

static enum op_verdict client_op_judge(struct nfs_op *op)
{
    if (op->result.status != NFS3ERR_JUKEBOX)
        return OP_DONE;
    op->delay_ms = op->delay_ms ? op->delay_ms * 2 : JUKEBOX_MIN_MS;
    if (op->delay_ms > JUKEBOX_MAX_MS)
        op->delay_ms = JUKEBOX_MAX_MS;
    return OP_AGAIN;
}

enum op_verdict op_decode(struct nfs_op *op)
{
    struct rpc_reply reply = {0};
    struct coder coder;

    if (op->request.status != REQUEST_OK) {
        client_op_fail(op, request_errno(op->request.status), request_status_str(op->request.status));
        return OP_DONE;
    }
    coder_read(&coder, op->request.reply, op->request.reply_length);
    rpc_code_reply(&coder, &reply);
    if (coder.bad || coder.in.bad) {
        client_op_fail(op, -EPROTO, "the server's answer is not an RPC reply");
        return OP_DONE;
    }
    if (reply.result != RPC_SUCCESS)
        return refused(op, &reply);
    if (op->request.results && op->request.result[0].used)
        coder.item = (struct stream_item){.length = op->request.result[0].used, .data = op->buffer};
    memset(&op->result, 0, sizeof(op->result));
    nfs3_code_result(&coder, op->proc, &op->result);
    if (coder.bad || coder.in.bad || !take_item(op) || took_too_much(op)) {
        client_op_fail(op, -EPROTO, "the server's answer violates RFC 1813");
        return OP_DONE;
    }
    return client_op_judge(op);
}
