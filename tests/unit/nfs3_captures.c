/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_captures.c - decode each NFS call and reply of Linux 6.1's client and server, and encode it back to the same
 * octets, both with reduced chunks and with whole streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/rpcmsg.h"
#include "rpc/rpcrdma.h"
#include "tests/lib/capture.h"

enum { BUFFER = 20000, CALLS = 256 };

/* The calls of one capture, and the numbers of calls, replies and reduced messages that were checked. */
static struct {
    uint32_t xid;
    enum nfs3_proc proc;
} calls[CALLS];
static unsigned call_count, seen_calls, seen_replies, seen_items;

static void code(struct coder *c, enum nfs3_proc proc, bool call, union nfs3_args *args, struct nfs3_result *result)
{
    if (call)
        nfs3_code_args(c, proc, args);
    else
        nfs3_code_result(c, proc, result);
}

/* Decode a message and compare its encoding with the input. `in` is positioned after the RPC header. */
static void comes_back(struct coder *in, enum nfs3_proc proc, bool call)
{
    static uint8_t again[BUFFER];
    const uint8_t *from = in->in.at;
    size_t n = in->in.left;
    struct nfs3_result result;
    union nfs3_args args;
    struct coder out;

    coder_write(&out, again, sizeof(again));
    out.position = in->position;
    out.reduce = in->item.length > 0;
    code(in, proc, call, &args, &result);
    if (in->bad)
        fail_msg("%s of %s is bad", call ? "a call" : "a reply", nfs3_proc_str(proc));
    code(&out, proc, call, &args, &result);
    assert_false(out.bad);
    assert_int_equal(coder_length(&out), n);
    assert_memory_equal(again, from, n);
    assert_int_equal(out.reduced, in->reduced);
    if (out.reduced)
        assert_int_equal(out.item.position, in->item.position);
    seen_calls += call;
    seen_replies += !call;
    seen_items += in->reduced;
}

static void take_call(struct coder *c)
{
    struct rpc_call call;
    bool bad_cred;

    rpc_code_call(c, &call, &bad_cred);
    assert_false(c->bad || bad_cred);
    assert_int_equal(call.rpc_version, 2);
    if (call.program != NFS_PROGRAM)
        return;
    assert_true(call.version == NFS_VERSION && call_count < CALLS);
    calls[call_count].xid = call.xid;
    calls[call_count++].proc = call.procedure;
    comes_back(c, call.procedure, true);
}

static void take_reply(struct coder *c)
{
    struct rpc_reply reply;

    rpc_code_reply(c, &reply);
    assert_false(c->bad);
    for (unsigned i = 0; i < call_count; i++)
        if (calls[i].xid == reply.xid && reply.result == RPC_SUCCESS)
            comes_back(c, calls[i].proc, false);
}

/* The captures hold the length of each chunk but not its data. */
static void take_message(char side, const uint8_t *p, size_t n)
{
    static const uint8_t data[1 << 20];
    struct rpcrdma h;
    struct coder c;

    if (side == 'C')
        assert_int_equal(rpcrdma_decode_call(&h, p, n), RPCRDMA_ACCEPT);
    else
        assert_int_equal(rpcrdma_decode_reply(&h, p, n), RPCRDMA_ACCEPT);
    if (h.proc != RDMA_MSG)
        return;
    coder_read(&c, p + h.length, n - h.length);
    c.item.data = data;
    for (uint32_t i = 0; i < h.reads; i++) {
        c.item.position = h.position[i];
        c.item.length += h.segment[i].length;
    }
    if (side == 'S' && h.writes)
        c.item.length = (uint32_t)rpcrdma_chunk_length(&h, h.write[0]);
    assert_true(c.item.length <= sizeof(data));
    if (side == 'C')
        take_call(&c);
    else
        take_reply(&c);
}

static void run(const char *name)
{
    call_count = seen_calls = seen_replies = seen_items = 0;
    capture_each(name, take_message);
}

static void nfs3(void **state)
{
    (void)state;
    run("linux_nfs3");
    assert_int_equal(seen_calls, 45);
    assert_int_equal(seen_replies, 43);
    assert_true(seen_items >= 2);
}

static void long_calls(void **state)
{
    (void)state;
    run("linux_nfs3_long");
    assert_int_equal(seen_calls, 12);
    assert_int_equal(seen_replies, 12);
}

/* Decode the whole streams in the fuzzer's corpus. The first two octets of a file are the fuzzer's own. */
static void whole_streams(void **state)
{
    static uint8_t bytes[BUFFER];
    char path[256];

    (void)state;
    seen_calls = seen_replies = 0;
    for (enum nfs3_proc proc = NFS3_NULL; proc < NFS3_STANDARD; proc++) {
        for (unsigned reply = 0; reply < 2; reply++) {
            size_t n = (size_t)snprintf(path, sizeof(path), RDDP_SOURCE_DIR "/fuzz/corpus/nfs3/linux-%s-",
                                        reply ? "reply" : "call");
            struct coder c;
            FILE *file;

            for (const char *p = nfs3_proc_str(proc); *p; p++)
                path[n++] = (char)(*p | 0x20);
            path[n] = 0;
            call_count = reply;
            file = fopen(path, "rb");
            /* Linux sends READDIRPLUS by default, so the corpus has no READDIR. */
            assert_int_equal(file != NULL, proc != NFS3_READDIR);
            if (!file)
                continue;
            n = fread(bytes, 1, sizeof(bytes), file);
            fclose(file);
            assert_true(n > 2 && bytes[0] == reply && bytes[1] == proc);
            coder_read(&c, bytes + 2, n - 2);
            if (reply) {
                calls[0].xid = (uint32_t)bytes[2] << 24 | (uint32_t)bytes[3] << 16 | (uint32_t)bytes[4] << 8 | bytes[5];
                calls[0].proc = proc;
                take_reply(&c);
            } else {
                take_call(&c);
            }
        }
    }
    assert_int_equal(seen_calls, NFS3_STANDARD - 1);
    assert_int_equal(seen_replies, NFS3_STANDARD - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nfs3),
        cmocka_unit_test(long_calls),
        cmocka_unit_test(whole_streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
