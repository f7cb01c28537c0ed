/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcmsg.c - the ONC RPC headers: golden octets of RFC 5531 9, credentials at and above their limits, truncated
 * input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/rpcmsg.h"

enum { BUFFER = 2048 };

/* A call with AUTH_SYS, stamp 0 and no machine name: 24 + 8 + 28 + 8 octets. */
static const uint8_t sys_call[] = {
    0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0,  0, 0, 2, 0, 1,  0x86, 0xa3, 0, 0, 0, 3, 0,    0, 0,
    7,    0,    0,    0,    1, 0, 0, 0, 28, 0, 0, 0, 0, 0,  0,    0,    0, 0, 0, 3, 0xe8, 0, 0,
    0,    100,  0,    0,    0, 2, 0, 0, 0,  4, 0, 0, 0, 27, 0,    0,    0, 0, 0, 0, 0,    0,
};

static bool take_call(const uint8_t *octets, size_t n, struct rpc_call *call, bool *bad_cred)
{
    uint8_t *copy = malloc(n ? n : 1);
    struct coder c;

    assert_non_null(copy);
    if (n)
        memcpy(copy, octets, n);
    coder_read(&c, copy, n);
    rpc_code_call(&c, call, bad_cred);
    free(copy);
    return !c.bad;
}

static bool take_reply(const uint8_t *octets, size_t n, struct rpc_reply *reply)
{
    uint8_t *copy = malloc(n ? n : 1);
    struct coder c;

    assert_non_null(copy);
    if (n)
        memcpy(copy, octets, n);
    coder_read(&c, copy, n);
    rpc_code_reply(&c, reply);
    free(copy);
    return !c.bad;
}

static void calls(void **state)
{
    struct rpc_call call = {0x12345678, 2, 100003, 3, 7, {RPC_AUTH_SYS, 1000, 100, 2, {4, 27}}}, got;
    uint8_t buffer[BUFFER];
    struct coder c;
    bool bad_cred;

    (void)state;
    coder_write(&c, buffer, sizeof(buffer));
    rpc_code_call(&c, &call, &bad_cred);
    assert_false(c.bad || bad_cred);
    assert_int_equal(coder_length(&c), sizeof(sys_call));
    assert_int_equal(c.position, sizeof(sys_call));
    assert_memory_equal(buffer, sys_call, sizeof(sys_call));
    for (size_t n = 0; n <= sizeof(sys_call); n++) {
        memset(&got, 0, sizeof(got));
        assert_int_equal(take_call(sys_call, n, &got, &bad_cred), n == sizeof(sys_call));
        assert_false(bad_cred);
    }
    assert_memory_equal(&got, &call, sizeof(got));
}

/* AUTH_NONE: two empty opaques. */
static void calls_of_nobody(void **state)
{
    static const uint8_t want[16];
    struct rpc_call call = {.xid = 1, .rpc_version = 2, .cred.flavor = RPC_AUTH_NONE};
    uint8_t buffer[BUFFER];
    struct coder c;
    bool bad_cred;

    (void)state;
    coder_write(&c, buffer, sizeof(buffer));
    rpc_code_call(&c, &call, &bad_cred);
    assert_int_equal(coder_length(&c), 40);
    assert_memory_equal(buffer + 24, want, 16);
}

static void not_a_call(void **state)
{
    uint8_t octets[sizeof(sys_call)];
    struct rpc_call call;
    bool bad_cred;

    (void)state;
    memcpy(octets, sys_call, sizeof(octets));
    octets[7] = 1;
    assert_false(take_call(octets, sizeof(octets), &call, &bad_cred));
    octets[7] = 2;
    assert_false(take_call(octets, sizeof(octets), &call, &bad_cred));
}

/* The decoder accepts a call of another RPC version after 12 octets and returns its XID for the reply. */
static void other_versions(void **state)
{
    uint8_t octets[sizeof(sys_call)];
    struct rpc_call call;
    bool bad_cred;

    (void)state;
    memcpy(octets, sys_call, sizeof(octets));
    for (uint8_t version = 1; version <= 3; version++) {
        octets[11] = version;
        assert_int_equal(take_call(octets, 12, &call, &bad_cred), version != 2);
        assert_int_equal(call.xid, 0x12345678);
        assert_int_equal(call.rpc_version, version);
        if (version != 2)
            assert_int_equal(call.procedure, 0);
    }
}

/* Encode a call with the given credential and a verifier of the given length. */
static size_t put_call(uint8_t *to, uint32_t flavor, const void *cred, uint32_t cred_length, uint32_t verifier_length)
{
    static const uint8_t zeros[RPC_AUTH_MAX + 8];
    struct xdr_out out = {.at = to, .left = BUFFER};

    xdr_putopaque(&out, sys_call, 24);
    xdr_put32(&out, flavor);
    xdr_put32(&out, cred_length);
    xdr_putopaque(&out, cred, cred_length);
    xdr_put32(&out, 6);
    xdr_put32(&out, verifier_length);
    xdr_putopaque(&out, zeros, verifier_length);
    assert_false(out.bad);
    return BUFFER - out.left;
}

/* Encode an AUTH_SYS body with the given lengths of machine name and group list, and append `more` octets. */
static size_t put_sys(uint8_t *to, uint32_t machine, uint32_t groups, uint32_t more)
{
    static const uint8_t letters[512];
    struct xdr_out out = {.at = to, .left = BUFFER};

    xdr_put32(&out, 99);
    xdr_put32(&out, machine);
    xdr_putopaque(&out, letters, machine);
    xdr_put32(&out, 1000);
    xdr_put32(&out, 100);
    xdr_put32(&out, groups);
    for (uint32_t i = 0; i < groups; i++)
        xdr_put32(&out, i);
    xdr_putopaque(&out, letters, more);
    return BUFFER - out.left;
}

static void credentials(void **state)
{
    static const struct {
        uint32_t machine, groups, more;
        bool bad;
    } row[] = {
        {0, 0, 0, false},  {254, 0, 0, false}, {255, 0, 0, false},  {256, 0, 0, true}, {0, 15, 0, false},
        {0, 16, 0, false}, {0, 17, 0, true},   {255, 16, 0, false}, {7, 3, 4, true},   {0, 16, 400, true},
    };
    static uint8_t body[BUFFER], octets[BUFFER];
    struct rpc_call call;
    bool bad_cred;

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        size_t n = put_sys(body, row[i].machine, row[i].groups, row[i].more);

        n = put_call(octets, RPC_AUTH_SYS, body, (uint32_t)n, 0);
        assert_true(take_call(octets, n, &call, &bad_cred));
        assert_int_equal(bad_cred, row[i].bad);
        assert_int_equal(call.procedure, 7);
        assert_int_equal(call.cred.flavor, RPC_AUTH_SYS);
        assert_int_equal(call.cred.uid, row[i].bad ? 0 : 1000);
        assert_int_equal(call.cred.groups, row[i].bad ? 0 : row[i].groups);
    }
    /* A truncated AUTH_SYS body spoils the credential, not the call. */
    for (uint32_t n = 0; n < put_sys(body, 3, 2, 0); n++) {
        size_t length = put_call(octets, RPC_AUTH_SYS, body, n, 0);

        assert_true(take_call(octets, length, &call, &bad_cred));
        assert_true(bad_cred);
    }
}

/* The decoder skips a body of an unknown flavor, and a verifier, of up to 400 octets. A longer credential is a bad
 * credential; a longer verifier makes the call invalid. */
static void long_bodies(void **state)
{
    static const uint8_t zeros[RPC_AUTH_MAX + 8];
    static uint8_t octets[BUFFER];
    struct rpc_call call;
    bool bad_cred;

    (void)state;
    for (uint32_t n = RPC_AUTH_MAX - 1; n <= RPC_AUTH_MAX + 1; n++) {
        size_t length = put_call(octets, 6, zeros, n, 0);

        assert_true(take_call(octets, length, &call, &bad_cred));
        assert_int_equal(bad_cred, n > RPC_AUTH_MAX);
        assert_int_equal(call.cred.flavor, bad_cred ? RPC_AUTH_SYS : 6);
        length = put_call(octets, RPC_AUTH_NONE, zeros, 0, n);
        assert_int_equal(take_call(octets, length, &call, &bad_cred), n <= RPC_AUTH_MAX);
        assert_false(bad_cred);
    }
    assert_int_equal(put_call(octets, 6, zeros, RPC_AUTH_MAX, RPC_AUTH_MAX), RPC_CALL_MAX);
}

static void many_groups_are_not_written(void **state)
{
    struct rpc_call call = {.rpc_version = 2, .cred = {.flavor = RPC_AUTH_SYS, .groups = RPC_GROUPS_MAX}};
    uint8_t buffer[BUFFER];
    struct coder c;
    bool bad_cred;

    (void)state;
    coder_write(&c, buffer, sizeof(buffer));
    rpc_code_call(&c, &call, &bad_cred);
    assert_false(c.bad);
    call.cred.groups++;
    coder_write(&c, buffer, sizeof(buffer));
    rpc_code_call(&c, &call, &bad_cred);
    assert_true(c.bad);
}

static const struct {
    struct rpc_reply reply;
    size_t length;
    uint8_t octets[32];
} replies[] = {
    {{1, RPC_SUCCESS, 0, 0, 0}, 24, {[3] = 1, [7] = 1}},
    {{2, RPC_PROG_UNAVAIL, 0, 0, 0}, 24, {[3] = 2, [7] = 1, [23] = 1}},
    {{3, RPC_PROG_MISMATCH, 3, 4, 0}, 32, {[3] = 3, [7] = 1, [23] = 2, [27] = 3, [31] = 4}},
    {{4, RPC_PROC_UNAVAIL, 0, 0, 0}, 24, {[3] = 4, [7] = 1, [23] = 3}},
    {{5, RPC_GARBAGE_ARGS, 0, 0, 0}, 24, {[3] = 5, [7] = 1, [23] = 4}},
    {{6, RPC_SYSTEM_ERR, 0, 0, 0}, 24, {[3] = 6, [7] = 1, [23] = 5}},
    {{7, RPC_MISMATCH, 2, 2, 0}, 24, {[3] = 7, [7] = 1, [11] = 1, [19] = 2, [23] = 2}},
    {{8, RPC_AUTH_ERROR, 0, 0, RPC_AUTH_TOOWEAK}, 20, {[3] = 8, [7] = 1, [11] = 1, [15] = 1, [19] = 5}},
};

static void all_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        struct rpc_reply reply = replies[i].reply, got;
        uint8_t buffer[64] = {0};
        struct coder c;

        coder_write(&c, buffer, sizeof(buffer));
        rpc_code_reply(&c, &reply);
        assert_false(c.bad);
        assert_int_equal(coder_length(&c), replies[i].length);
        assert_memory_equal(buffer, replies[i].octets, replies[i].length);
        for (size_t n = 0; n <= replies[i].length; n++)
            assert_int_equal(take_reply(buffer, n, &got), n == replies[i].length);
        assert_memory_equal(&got, &reply, sizeof(got));
        /* Only a successful reply may have results. */
        assert_int_equal(take_reply(buffer, replies[i].length + 4, &got), reply.result == RPC_SUCCESS);
    }
}

/* Message type, reply status, accept status and reject status above their largest value; message type 0 as well. */
static void wrong_replies(void **state)
{
    struct rpc_reply got;
    uint8_t octets[32];

    (void)state;
    memcpy(octets, replies[0].octets, sizeof(octets));
    octets[7] = 0;
    assert_false(take_reply(octets, 24, &got));
    octets[7] = 2;
    assert_false(take_reply(octets, 24, &got));
    octets[7] = 1;
    octets[11] = 2;
    assert_false(take_reply(octets, 24, &got));
    octets[11] = 0;
    octets[23] = 6;
    assert_false(take_reply(octets, 24, &got));
    memcpy(octets, replies[7].octets, sizeof(octets));
    octets[15] = 2;
    assert_false(take_reply(octets, 20, &got));
}

static void verifiers_of_replies(void **state)
{
    static const uint8_t zeros[RPC_AUTH_MAX + 8];
    uint8_t octets[BUFFER];
    struct rpc_reply got;

    (void)state;
    for (uint32_t n = RPC_AUTH_MAX - 1; n <= RPC_AUTH_MAX + 1; n++) {
        struct xdr_out out = {.at = octets, .left = sizeof(octets)};

        xdr_putopaque(&out, replies[2].octets, 12);
        xdr_put32(&out, 6);
        xdr_put32(&out, n);
        xdr_putopaque(&out, zeros, n);
        xdr_putopaque(&out, replies[2].octets + 20, 12);
        assert_int_equal(take_reply(octets, sizeof(octets) - out.left, &got), n <= RPC_AUTH_MAX);
        if (n == RPC_AUTH_MAX)
            assert_int_equal(sizeof(octets) - out.left, RPC_REPLY_MAX);
    }
}

static void mine(void **state)
{
    struct rpc_cred cred;
    int groups = getgroups(0, NULL);

    (void)state;
    rpc_cred_mine(&cred);
    assert_int_equal(cred.flavor, RPC_AUTH_SYS);
    assert_int_equal(cred.uid, geteuid());
    assert_int_equal(cred.gid, getegid());
    assert_int_equal(cred.groups, groups < RPC_GROUPS_MAX ? groups : RPC_GROUPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(calls_of_nobody),
        cmocka_unit_test(not_a_call),
        cmocka_unit_test(other_versions),
        cmocka_unit_test(credentials),
        cmocka_unit_test(long_bodies),
        cmocka_unit_test(many_groups_are_not_written),
        cmocka_unit_test(all_replies),
        cmocka_unit_test(wrong_replies),
        cmocka_unit_test(verifiers_of_replies),
        cmocka_unit_test(mine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
