/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_client.c - test the NFS client's calls without a network: the chunks that the client offers for each procedure,
 * and the error that an inconsistent reply gives. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/client/client_in.h"
#include "rpc/requester_in.h"

static struct requester requester = {.next_xid = 7};
static struct nfs_client client = {.requester = &requester, .attr.cred = {.flavor = RPC_AUTH_SYS, .uid = 1, .gid = 2}};
static const struct nfs3_fh handle = {.length = 3, .data = {1, 2, 3}};

/* RFC 8267 4.1 */
static void chunks(void **state)
{
    static const uint8_t data[100];
    uint8_t buffer[NFS3_PATH_MAX];
    struct nfs_op op = {.proc = NFS3_READ, .buffer = buffer};

    (void)state;
    op.args.range.fh = handle;
    op.args.range.count = 77;
    assert_true(op_encode(&client, &op));
    assert_int_equal(op.request.results, 1);
    assert_ptr_equal(op.request.result[0].data, buffer);
    assert_int_equal(op.request.result[0].length, 77);
    assert_int_equal(op.request.arguments, 0);
    /* The client offers no chunk of zero octets because some servers refuse such a chunk. */
    op.args.range.count = 0;
    assert_true(op_encode(&client, &op));
    assert_int_equal(op.request.results, 0);
    op.proc = NFS3_READLINK;
    op.args.fh = handle;
    assert_true(op_encode(&client, &op));
    assert_int_equal(op.request.result[0].length, NFS3_PATH_MAX);
    op.proc = NFS3_WRITE;
    op.args.write.fh = handle;
    op.args.write.offset = 0;
    op.args.write.stable = NFS3_UNSTABLE;
    op.args.write.data = data;
    for (uint32_t n = 0; n <= sizeof(data); n++) {
        op.args.write.count = op.args.write.length = n;
        assert_true(op_encode(&client, &op));
        assert_int_equal(op.request.results, 0);
        assert_int_equal(op.request.arguments, n > 0);
        assert_true(n == 0 || op.request.argument[0].data == data);
        assert_true(n == 0 || op.request.argument[0].length == n);
        /* The chunk's position is after the length word, which stays inline. */
        assert_true(n == 0 || op.request.argument[0].position == op.request.call_length);
    }
    nfs_forget(&op);
}

static void names(void **state)
{
    struct nfs_op op = {.proc = NFS3_LOOKUP};
    static char name[NFS3_PATH_MAX + 1];

    (void)state;
    memset(name, 'n', sizeof(name));
    op.args.where.dir = handle;
    op.args.where.name = (struct nfs3_text){name, NFS3_NAME_MAX};
    assert_true(op_encode(&client, &op));
    op.args.where.name.length = NFS3_PATH_MAX + 1;
    assert_false(op_encode(&client, &op));
    assert_int_equal(op.error, -ENAMETOOLONG);
    op.proc = NFS3_PROCS;
    assert_false(op_encode(&client, &op));
    assert_int_equal(op.error, -EINVAL);
    nfs_forget(&op);
}

/* Encode `result` as a server does, claim that the server wrote `used` octets into the chunk, and decode the reply. */
static enum op_verdict reply(struct nfs_op *op, struct nfs3_result *result, uint32_t used, bool reduce)
{
    struct rpc_reply header = {.xid = 1};
    struct coder c;

    assert_true(op_encode(&client, op));
    coder_write(&c, op->request.reply, op->request.reply_size);
    rpc_code_reply(&c, &header);
    c.reduce = reduce;
    nfs3_code_result(&c, op->proc, result);
    assert_false(c.bad);
    op->request.reply_length = coder_length(&c);
    op->request.status = REQUEST_OK;
    op->request.result[0].used = used;
    return op_decode(op);
}

static void reads(void **state)
{
    static const uint8_t inlined[20] = {9, 8, 7};
    static const struct {
        uint32_t count, used;
        bool reduce;
        int error;
    } row[] = {
        {16, 16, true, 0},       {16, 15, true, -EPROTO}, {16, 20, true, -EPROTO}, {16, 0, true, -EPROTO},
        {13, 16, true, -EPROTO}, {0, 0, true, 0},         {17, 17, true, -EPROTO}, {0, 16, true, -EPROTO},
        {16, 0, false, 0},       {17, 0, false, -EPROTO}, {5, 0, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        uint8_t buffer[17] = {[16] = 0xa5};
        struct nfs_op op = {.proc = NFS3_READ, .buffer = buffer};
        struct nfs3_result result = {.read = {row[i].count, true, inlined}};

        op.args.range.fh = handle;
        op.args.range.count = 16;
        assert_int_equal(reply(&op, &result, row[i].used, row[i].reduce), OP_DONE);
        if (op.error != row[i].error)
            fail_msg("row %zu: %d", i, op.error);
        if (!op.error && !row[i].reduce)
            assert_memory_equal(buffer, inlined, row[i].count);
        assert_int_equal(buffer[16], 0xa5);
        nfs_forget(&op);
    }
}

/* Each NFS3ERR_JUKEBOX doubles the delay before the next try, up to a limit. */
static void later(void **state)
{
    struct nfs_op op = {.proc = NFS3_GETATTR, .args.fh = handle};
    struct nfs3_result result = {.status = NFS3ERR_JUKEBOX};
    unsigned want = JUKEBOX_MIN_MS;

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(reply(&op, &result, 0, true), OP_AGAIN);
        assert_int_equal(op.delay_ms, want);
        want = want * 2 < JUKEBOX_MAX_MS ? want * 2 : JUKEBOX_MAX_MS;
    }
    result.status = NFS3ERR_STALE;
    assert_int_equal(reply(&op, &result, 0, true), OP_DONE);
    assert_int_equal(op.error, 0);
    assert_int_equal(op.result.status, NFS3ERR_STALE);
    nfs_forget(&op);
}

static void errors(void **state)
{
    static const struct {
        enum nfs3_status status;
        int error;
    } row[] = {
        {NFS3_OK, 0},
        {NFS3ERR_NOENT, -ENOENT},
        {NFS3ERR_ACCES, -EACCES},
        {NFS3ERR_NOTEMPTY, -ENOTEMPTY},
        {NFS3ERR_NAMETOOLONG, -ENAMETOOLONG},
        {NFS3ERR_DQUOT, -EDQUOT},
        {NFS3ERR_STALE, -ESTALE},
        {NFS3ERR_BADHANDLE, -ESTALE},
        {NFS3ERR_JUKEBOX, -EAGAIN},
        {NFS3ERR_NOTSUPP, -EOPNOTSUPP},
        {(enum nfs3_status)4711, -EIO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
        assert_int_equal(nfs3_errno(row[i].status), row[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks), cmocka_unit_test(names),  cmocka_unit_test(reads),
        cmocka_unit_test(later),  cmocka_unit_test(errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
