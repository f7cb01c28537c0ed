/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3.c - any octets as RPC headers, arguments and results of NFSv3 and MOUNT. What is accepted is encoded and
 * decoded again.
 *
 * The second octet is the procedure. The first says what the octets after the second are: 0 a call, 1 its reply, 2
 * the arguments alone, 3 the result alone, 4 and 5 these two with an item outside of the stream (position and
 * length, 4 octets each), 6 the messages of MOUNT, 7 directory entries. */
#include <assert.h>
#include <string.h>

#include "nfs/mount3.h"
#include "nfs/rpcmsg.h"

enum { BUFFER = 1 << 19, ITEM_MAX = 1 << 15, GROUPS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static uint8_t buffer[2][BUFFER];
static const uint8_t beside[ITEM_MAX];

static void code(struct coder *c, enum nfs3_proc proc, bool call, union nfs3_args *args, struct nfs3_result *result)
{
    if (call)
        nfs3_code_args(c, proc, args);
    else
        nfs3_code_result(c, proc, result);
}

/* `c` decodes arguments or a result. What is accepted has the same length and the same octets when it is encoded. */
static void check(struct coder *c, enum nfs3_proc proc, bool call)
{
    static struct nfs3_result result;
    static union nfs3_args args;
    struct coder out, in, again;
    uint32_t from = c->position;
    size_t left = c->in.left;

    code(c, proc, call, &args, &result);
    if (c->bad)
        return;
    assert(c->in.left == 0 && c->reduced == (c->item.length > 0));
    coder_write(&out, buffer[0], BUFFER);
    out.position = from;
    out.reduce = c->reduced;
    code(&out, proc, call, &args, &result);
    assert(!out.bad && out.reduced == c->reduced && out.position == c->position && coder_length(&out) == left);
    assert(!out.reduced || out.item.position == c->item.position);
    coder_read(&in, buffer[0], coder_length(&out));
    in.position = from;
    in.item = out.item;
    code(&in, proc, call, &args, &result);
    assert(!in.bad);
    coder_write(&again, buffer[1], BUFFER);
    again.position = from;
    again.reduce = out.reduced;
    code(&again, proc, call, &args, &result);
    assert(!again.bad && coder_length(&again) == left && memcmp(buffer[0], buffer[1], left) == 0);
}

static void check_call(const uint8_t *at, size_t length)
{
    struct rpc_call call, got;
    struct coder in, out, back;
    bool bad_cred;

    coder_read(&in, at, length);
    rpc_code_call(&in, &call, &bad_cred);
    if (in.bad || bad_cred || call.rpc_version != 2)
        return;
    assert(call.cred.groups <= RPC_GROUPS_MAX && in.position <= RPC_CALL_MAX);
    coder_write(&out, buffer[0], BUFFER);
    rpc_code_call(&out, &call, &bad_cred);
    assert(!out.bad && coder_length(&out) <= in.position);
    coder_read(&back, buffer[0], coder_length(&out));
    rpc_code_call(&back, &got, &bad_cred);
    assert(!back.bad && !bad_cred && back.in.left == 0 && memcmp(&got, &call, sizeof(got)) == 0);
    if (call.program == NFS_PROGRAM)
        check(&in, call.procedure, true);
}

static void check_reply(enum nfs3_proc proc, const uint8_t *at, size_t length)
{
    struct rpc_reply reply, got;
    struct coder in, out, back;

    coder_read(&in, at, length);
    rpc_code_reply(&in, &reply);
    if (in.bad)
        return;
    assert(in.position <= RPC_REPLY_MAX);
    coder_write(&out, buffer[0], BUFFER);
    rpc_code_reply(&out, &reply);
    assert(!out.bad && coder_length(&out) <= in.position);
    coder_read(&back, buffer[0], coder_length(&out));
    rpc_code_reply(&back, &got);
    assert(!back.bad && back.in.left == 0 && memcmp(&got, &reply, sizeof(got)) == 0);
    if (reply.result == RPC_SUCCESS)
        check(&in, proc, false);
}

static void check_item(enum nfs3_proc proc, bool call, const uint8_t *at, size_t length)
{
    struct xdr_in in = {.at = at, .left = length};
    uint32_t position = xdr_get32(&in), n = xdr_get32(&in);
    struct coder c;

    if (in.bad || n > ITEM_MAX)
        return;
    coder_read(&c, in.at, in.left);
    c.item = (struct stream_item){position, n, beside};
    check(&c, proc, call);
}

static void check_mount(enum mount3_proc proc, const uint8_t *at, size_t length)
{
    struct nfs3_text path, group[GROUPS];
    struct mount3_result result, got;
    struct coder in, out;
    uint32_t groups;

    coder_read(&in, at, length);
    mount3_code_args(&in, proc, &path);
    if (!in.bad) {
        coder_write(&out, buffer[0], BUFFER);
        mount3_code_args(&out, proc, &path);
        assert(!out.bad && coder_length(&out) == length);
    }
    memset(&result, 0, sizeof(result));
    memset(&got, 0, sizeof(got));
    coder_read(&in, at, length);
    mount3_code_mnt(&in, &result);
    assert(result.fh.length <= NFS3_FH_MAX && result.flavors <= MOUNT_FLAVORS_MAX);
    if (!in.bad) {
        coder_write(&out, buffer[0], BUFFER);
        mount3_code_mnt(&out, &result);
        assert(!out.bad && coder_length(&out) <= length);
        coder_read(&in, buffer[0], coder_length(&out));
        mount3_code_mnt(&in, &got);
        assert(!in.bad && memcmp(&got, &result, sizeof(got)) == 0);
    }
    for (coder_read(&in, at, length); mount3_code_mounted(&in, &group[0], &path);)
        assert(group[0].length <= MOUNT_NAME_MAX && path.length <= MOUNT_PATH_MAX);
    for (coder_read(&in, at, length); mount3_code_export(&in, &path, group, &groups, GROUPS);)
        assert(groups <= GROUPS && path.length <= MOUNT_PATH_MAX);
}

static void check_entries(bool plus, const uint8_t *at, size_t length)
{
    struct xdr_in in = {.at = at, .left = length};
    struct nfs3_entry entry, got;

    while (nfs3_get_entry(&in, &entry, plus)) {
        struct xdr_out out = {.at = buffer[0], .left = BUFFER};
        struct xdr_in back = {.at = buffer[0]};

        assert(nfs3_put_entry(&out, &entry, plus));
        back.left = BUFFER - out.left;
        assert(nfs3_get_entry(&back, &got, plus) && back.left == 0);
        assert(got.fileid == entry.fileid && got.cookie == entry.cookie && got.name.length == entry.name.length);
        assert(memcmp(got.name.at, entry.name.at, got.name.length) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct coder c;

    if (length < 2)
        return 0;
    coder_read(&c, input + 2, length - 2);
    switch (input[0] % 8) {
    case 0:
        check_call(input + 2, length - 2);
        break;
    case 1:
        check_reply(input[1], input + 2, length - 2);
        break;
    case 2:
    case 3:
        check(&c, input[1], input[0] % 2 == 0);
        break;
    case 4:
    case 5:
        check_item(input[1], input[0] % 2 == 0, input + 2, length - 2);
        break;
    case 6:
        check_mount(input[1], input + 2, length - 2);
        break;
    case 7:
        check_entries(input[1] % 2, input + 2, length - 2);
        break;
    }
    return 0;
}
