/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.c - the NFS server's dispatch over both transports: who is answered, and in which form. */
#include "tests/suite/lib/nfsd_fake.h"

#include "base/bytes.h"

/* --- what RPC refuses -------------------------------------------------------------------------------------------- */

enum { ACCEPTED = 0, DENIED = 1, ANY = 0xffff };

/* The words after XID, REPLY and the verifier, if there is one (RFC 5531 9). */
static const struct refusal {
    uint32_t rpc_version, program, version, procedure, flavor, cred_length;
    unsigned words; /* words of the body, all 0 */
    uint32_t denied, expected[3];
    unsigned expects;
} refusals[] = {
    {3, 100003, 3, 0, 0, 0, 0, DENIED, {0, 2, 2}, 3},
    {0, 100003, 3, 0, 0, 0, 0, DENIED, {0, 2, 2}, 3},
    {2, 100227, 3, 0, 0, 0, 0, ACCEPTED, {1}, 1}, /* NFSACL */
    {2, 100021, 4, 0, 0, 0, 0, ACCEPTED, {1}, 1},
    {2, 100003, 2, 0, 0, 0, 0, ACCEPTED, {2, 3, 3}, 3},
    {2, 100003, 4, 0, 0, 0, 0, ACCEPTED, {2, 3, 3}, 3},
    {2, 100005, 1, 0, 0, 0, 0, ACCEPTED, {2, 3, 3}, 3},
    {2, 100003, 3, 22, 0, 0, 0, ACCEPTED, {3}, 1},
    {2, 100003, 3, 0xffffffff, 0, 0, 0, ACCEPTED, {3}, 1},
    {2, 100005, 3, 6, 0, 0, 0, ACCEPTED, {3}, 1},
    {2, 100003, 3, 1, 0, 0, 0, ACCEPTED, {4}, 1},  /* GETATTR without arguments */
    {2, 100003, 3, 0, 0, 0, 1, ACCEPTED, {4}, 1},  /* NULL with arguments */
    {2, 100005, 3, 1, 0, 0, 0, ACCEPTED, {4}, 1},  /* MNT without arguments */
    {2, 100003, 3, 0, 6, 8, 0, DENIED, {1, 5}, 2}, /* RPCSEC_GSS */
    {2, 100003, 3, 0, 1, 8, 0, DENIED, {1, 1}, 2}, /* AUTH_SYS, truncated */
    {2, 100003, 3, 0, 0, 0, 0, ACCEPTED, {0}, 1},
    {2, 100005, 3, 0, 0, 0, 0, ACCEPTED, {0}, 1},
};

static void build_refusal(const struct refusal *r)
{
    uint8_t *p = message;

    p = put32(put32(put32(p, ++xid), 0), r->rpc_version);
    p = put32(put32(put32(p, r->program), r->version), r->procedure);
    p = put32(put32(p, r->flavor), r->cred_length);
    memset(p, 0, 256);
    message_length = (size_t)(p - message) + r->cred_length + 8 + 4 * r->words;
}

static void check_refusal(const struct refusal *r, unsigned k)
{
    const uint8_t *p = answer + (r->denied ? 12 : 20);

    assert_int_equal(answer_xid(), xid);
    assert_int_equal(get32(answer + 4), 1);
    assert_int_equal(get32(answer + 8), r->denied);
    if (answer_length != (size_t)(p - answer) + 4 * r->expects)
        fail_msg("case %u: %zu octets", k, answer_length);
    for (unsigned i = 0; i < r->expects; i++)
        if (get32(p + 4 * i) != r->expected[i])
            fail_msg("case %u: word %u is %u", k, i, get32(p + 4 * i));
}

static void refused(void **state)
{
    (void)state;
    start();
    for (int rdma = 0; rdma < 2; rdma++) {
        call_open(rdma);
        for (unsigned k = 0; k < sizeof(refusals) / sizeof(*refusals); k++) {
            build_refusal(&refusals[k]);
            plain_exchange();
            check_refusal(&refusals[k], k);
        }
        call_close();
    }
    eventually(stats_now().errors == 2 * (sizeof(refusals) / sizeof(*refusals) - 2));
}

/* --- forms of calls ---------------------------------------------------------------------------------------------- */

static const uint32_t sizes[] = {0, 1, 3, 4, 100, 3000, 4096, 65535, 65536, 65537, (1 << 20) - 1, 1 << 20};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static uint8_t data[(1 << 20) + 64];

static void read_of_each_size(void **state)
{
    struct nfs3_result result;
    uint32_t came;

    (void)state;
    start();
    for (unsigned k = 0; k < 4 * SIZES; k++) {
        union nfs3_args args = {.range = {.fh = some_file.fh, .offset = k, .count = sizes[k / 4]}};
        bool rdma = k % 4 > 1;

        fake.slow = k % 2;
        call_open(rdma);
        build(NFS3_READ, &args, false, NULL);
        assert_int_equal(exchange(NULL, data, rdma ? args.range.count : 0, &came), REQUEST_OK);
        assert_int_equal(came, rdma ? args.range.count : 0);
        check_answer(NFS3_READ, &result, data, came);
        assert_int_equal(result.read.count, args.range.count);
        for (uint32_t i = 0; i < result.read.count; i++)
            if (((const uint8_t *)result.read.data)[i] != octet(k + i))
                fail_msg("octet %u of %u is wrong", i, result.read.count);
        call_close();
    }
}

static void write_of_each_size(void **state)
{
    struct nfs3_result result;
    struct stream_item item;
    uint32_t came;

    (void)state;
    start();
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = octet(i);
    for (unsigned k = 0; k < 4 * SIZES; k++) {
        uint32_t n = sizes[k / 4];
        union nfs3_args args = {.write = {.fh = some_file.fh, .count = n, .data = data, .length = n}};
        bool rdma = k % 4 > 1;

        fake.slow = k % 2;
        call_open(rdma);
        build(NFS3_WRITE, &args, rdma, &item);
        assert_int_equal(exchange(rdma ? &item : NULL, NULL, 0, &came), REQUEST_OK);
        check_answer(NFS3_WRITE, &result, NULL, 0);
        assert_int_equal(result.write.count, n);
        assert_int_equal(fake.sum, sum_of(data, n));
        call_close();
    }
}

static void lists_and_links(void **state)
{
    union nfs3_args list = {.list = {.dir = some_file.fh, .maxcount = 30000}}, link = {.fh = some_file.fh};
    struct nfs3_result result;
    uint32_t came;

    (void)state;
    start();
    for (int rdma = 0; rdma < 2; rdma++) {
        call_open(rdma);
        build(NFS3_READDIR, &list, false, NULL);
        plain_exchange();
        check_answer(NFS3_READDIR, &result, NULL, 0);
        assert_in_range(result.list.length, 29000, 30000);
        build(NFS3_READLINK, &link, false, NULL);
        assert_int_equal(exchange(NULL, data, rdma ? NFS3_PATH_MAX : 0, &came), REQUEST_OK);
        assert_int_equal(came, rdma ? 1000 : 0);
        check_answer(NFS3_READLINK, &result, data, came);
        assert_int_equal(result.target.length, 1000);
        call_close();
    }
    /* A client that offers less room than the reply needs. */
    call_open(true);
    build(NFS3_READDIR, &list, false, NULL);
    assert_int_equal(exchange(NULL, data, 4096, &came), REQUEST_REFUSED);
    call_close();
}

/* RPCR-6-01, RPCR-6.1-05: only WRITE's data and SYMLINK's path may be in a Read chunk, and only at their positions. */
static void not_eligible(void **state)
{
    union nfs3_args write = {.write = {.fh = some_file.fh, .count = 5000, .data = data, .length = 5000}};
    union nfs3_args getattr = {.fh = some_file.fh};
    struct stream_item item;
    struct nfs3_result result;
    uint32_t came;

    (void)state;
    start();
    call_open(true);
    build(NFS3_GETATTR, &getattr, false, NULL);
    message_length -= 8; /* the file handle: short items go inline */
    item = (struct stream_item){(uint32_t)message_length, 5000, data};
    assert_int_equal(exchange(&item, NULL, 0, &came), REQUEST_REFUSED);
    for (int off = -8; off <= 0; off += 4) {
        build(NFS3_WRITE, &write, true, &item);
        item.position = (uint32_t)((int)item.position + off);
        assert_int_equal(exchange(&item, NULL, 0, &came), off ? REQUEST_REFUSED : REQUEST_OK);
    }
    build(NFS3_WRITE, &write, true, &item);
    item.length += 1;
    assert_int_equal(exchange(&item, NULL, 0, &came), REQUEST_REFUSED);
    /* In the header of the call. */
    build(NFS3_WRITE, &write, true, &item);
    item.position = 24;
    assert_int_equal(exchange(&item, NULL, 0, &came), REQUEST_REFUSED);
    put32(message + 12, 100227); /* ... of an unknown program */
    assert_int_equal(exchange(&item, NULL, 0, &came), REQUEST_REFUSED);
    assert_int_equal(fake.done, 1);
    /* The connection still works. */
    build(NFS3_GETATTR, &getattr, false, NULL);
    plain_exchange();
    check_answer(NFS3_GETATTR, &result, NULL, 0);
    call_close();
}

/* --- MOUNT ------------------------------------------------------------------------------------------------------- */

static void build_mount(uint32_t procedure, const char *path, uint32_t uid)
{
    struct rpc_call call = header(MOUNT_PROGRAM, 3, procedure);
    struct nfs3_text text = {path, (uint32_t)strlen(path)};
    struct coder c;
    bool bad;

    call.cred.uid = uid;
    coder_write(&c, message, sizeof(message));
    rpc_code_call(&c, &call, &bad);
    mount3_code_args(&c, procedure, &text);
    assert_false(c.bad);
    message_length = coder_length(&c);
}

static void begin_answer(struct coder *c)
{
    struct rpc_reply reply;

    coder_read(c, answer, answer_length);
    rpc_code_reply(c, &reply);
    assert_int_equal(reply.result, RPC_SUCCESS);
}

static void check_exports(void)
{
    struct nfs3_text path, group[4];
    struct coder c;
    uint32_t groups;

    begin_answer(&c);
    assert_true(mount3_code_export(&c, &path, group, &groups, 4));
    assert_int_equal(path.length, 4);
    assert_int_equal(groups, 2);
    assert_memory_equal(group[0].at, "127.0.0.0/8", group[0].length);
    assert_false(mount3_code_export(&c, &path, group, &groups, 4));
    assert_false(c.bad);
    assert_int_equal(c.in.left, 0);
}

static void mounts(void **state)
{
    struct mount3_result result;
    struct coder c;

    (void)state;
    start();
    for (int way = 0; way < 3; way++) {
        call_open(way == 1);
        if (way == 2) {
            close(caller.fd);
            caller.fd = tcp_connect(nfsd_mount_port(nfsd));
        }
        for (uint32_t uid = 12; uid < 14; uid++) {
            build_mount(MOUNT3_MNT, "/srv/x", uid);
            plain_exchange();
            begin_answer(&c);
            mount3_code_mnt(&c, &result);
            assert_false(c.bad);
            assert_int_equal(result.status, uid == 12 ? MNT3_OK : MNT3ERR_ACCES);
        }
        build_mount(MOUNT3_EXPORT, "", 0);
        plain_exchange();
        check_exports();
        build_mount(MOUNT3_DUMP, "", 0);
        plain_exchange();
        assert_int_equal(answer_length, 28);
        build_mount(MOUNT3_UMNT, "/srv/x", 0);
        plain_exchange();
        assert_int_equal(answer_length, 24);
        call_close();
    }
}

/* --- transports ------------------------------------------------------------------------------------------------------
 */

/* Without a port of its own NFS is not served over TCP, but MOUNT is. */
static void rdma_alone(void **state)
{
    static const struct refusal nfs = {2, 100003, 3, 0, 0, 0, 0, ACCEPTED, {1}, 1};
    static const struct refusal mount = {2, 100005, 3, 0, 0, 0, 0, ACCEPTED, {0}, 1};

    (void)state;
    attr.tcp_port = -1;
    start();
    assert_int_equal(nfsd_tcp_port(nfsd), -1);
    caller = (struct caller){.fd = tcp_connect(nfsd_mount_port(nfsd))};
    build_refusal(&nfs);
    plain_exchange();
    check_refusal(&nfs, 0);
    build_refusal(&mount);
    plain_exchange();
    check_refusal(&mount, 1);
    call_close();
    call_open(true);
    build_refusal(&nfs);
    plain_exchange();
    assert_int_equal(get32(answer + 20), 0);
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refused), TEST(read_of_each_size), TEST(write_of_each_size), TEST(lists_and_links), TEST(not_eligible),
        TEST(mounts),  TEST(rdma_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
