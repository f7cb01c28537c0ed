/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_item.c - test the position and the length of the DDP-eligible item beside the stream (RFC 8166 3.4,
 * RFC 8267 4.1), and which procedures have such an item. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/nfs3_xdr.h"

enum { BUFFER = 256, BEFORE = 12 };

static const char data[] = "fourteen octet";

/* code() puts three words before each message in place of an RPC header. */
union message {
    union nfs3_args args;
    struct nfs3_result result;
};

static void code(struct coder *c, enum nfs3_proc proc, bool call, union message *m)
{
    uint32_t word = 0;

    for (unsigned i = 0; i < BEFORE / 4; i++)
        code32(c, &word);
    if (call)
        nfs3_code_args(c, proc, &m->args);
    else
        nfs3_code_result(c, proc, &m->result);
}

static size_t encode(struct coder *c, uint8_t *octets, enum nfs3_proc proc, bool call, union message m, bool reduce)
{
    coder_write(c, octets, BUFFER);
    c->reduce = reduce;
    code(c, proc, call, &m);
    assert_false(c->bad);
    return coder_length(c);
}

static bool takes(const uint8_t *stream, size_t n, struct stream_item item, enum nfs3_proc proc, bool call)
{
    union message m;
    struct coder c;

    coder_read(&c, stream, n);
    c.item = item;
    code(&c, proc, call, &m);
    return !c.bad;
}

static union message write_message(uint32_t length)
{
    return (union message){.args.write = {.fh = {.length = 3}, .count = length, .data = data, .length = length}};
}

static union message symlink_message(uint32_t length)
{
    return (union message){.args.make = {.where = {.name = {"a", 1}}, .target = {data, length}}};
}

static union message read_message(uint32_t length)
{
    return (union message){.result.read = {.count = length, .data = data}};
}

static union message readlink_message(uint32_t length)
{
    return (union message){.result.target = {data, length}};
}

static const struct {
    enum nfs3_proc proc;
    bool call;
    union message (*make)(uint32_t length);
    uint32_t position; /* calculated by hand */
} eligible[] = {
    {NFS3_WRITE, true, write_message, BEFORE + 8 + 8 + 4 + 4 + 4},
    {NFS3_SYMLINK, true, symlink_message, BEFORE + 4 + 8 + 6 * 4 + 4},
    {NFS3_READ, false, read_message, BEFORE + 4 + 4 + 4 + 4 + 4},
    {NFS3_READLINK, false, readlink_message, BEFORE + 4 + 4 + 4},
};
enum { ELIGIBLE = sizeof(eligible) / sizeof(eligible[0]) };

/* The encoder returns the data as the item. stream_join() of the item and the payload gives the whole stream. */
static void left_out(void **state)
{
    uint8_t whole[BUFFER], payload[BUFFER], joined[BUFFER];
    struct coder c;

    (void)state;
    for (unsigned i = 0; i < ELIGIBLE; i++) {
        for (uint32_t length = 1; length < sizeof(data); length++) {
            union message m = eligible[i].make(length);
            size_t n = encode(&c, whole, eligible[i].proc, eligible[i].call, m, false);

            assert_false(c.reduced || c.item.length);
            assert_int_equal(c.position, n);
            assert_int_equal(encode(&c, payload, eligible[i].proc, eligible[i].call, m, true),
                             n - length - xdr_roundup(length));
            assert_true(c.reduced && c.item.data == data);
            assert_int_equal(c.item.length, length);
            assert_int_equal(c.item.position, eligible[i].position);
            assert_int_equal(c.position, n);
            stream_join(joined, payload, coder_length(&c), &c.item, 1);
            assert_memory_equal(joined, whole, n);
        }
    }
}

/* Empty data makes no chunk (RFC 8166 3.4.5.2, 3.4.6.2). */
static void nothing_is_not_left_out(void **state)
{
    uint8_t octets[BUFFER];
    struct coder c;

    (void)state;
    for (unsigned i = 0; i < ELIGIBLE; i++) {
        size_t n = encode(&c, octets, eligible[i].proc, eligible[i].call, eligible[i].make(0), true);
        struct stream_item item = {eligible[i].position, 4, data};

        assert_false(c.reduced || c.item.length);
        assert_int_equal(n, eligible[i].position);
        assert_true(takes(octets, n, (struct stream_item){0}, eligible[i].proc, eligible[i].call));
        assert_false(takes(octets, n, item, eligible[i].proc, eligible[i].call));
    }
}

static void taken_in(void **state)
{
    uint8_t octets[BUFFER];
    struct coder c;

    (void)state;
    for (unsigned i = 0; i < ELIGIBLE; i++) {
        enum nfs3_proc proc = eligible[i].proc;
        bool call = eligible[i].call;
        size_t n = encode(&c, octets, proc, call, eligible[i].make(6), true);
        struct stream_item item = c.item;

        assert_true(takes(octets, n, item, proc, call));
        assert_false(takes(octets, n, (struct stream_item){0}, proc, call));
        /* An argument item has a position; the decoder ignores the position of a result item. */
        for (int by = -4; by <= 4; by++) {
            struct stream_item moved = {item.position + (uint32_t)by, item.length, data};

            assert_int_equal(takes(octets, n, moved, proc, call), by == 0 || !call);
        }
        /* An argument item may include its roundup (RFC 8166 3.4.5.2); a result item must not (3.4.6.2). */
        for (uint32_t length = 1; length <= 10; length++) {
            struct stream_item other = {item.position, length, data};

            assert_int_equal(takes(octets, n, other, proc, call), length == 6 || (length == 8 && call));
        }
        /* The decoder accepts inline data, and refuses an item in addition to inline data. */
        n = encode(&c, octets, proc, call, eligible[i].make(6), false);
        assert_true(takes(octets, n, (struct stream_item){0}, proc, call));
        assert_false(takes(octets, n, item, proc, call));
    }
}

/* A message without an eligible item is never reduced, and the decoder refuses an item with it (RFC 8166 6.1). */
static void not_eligible(void **state)
{
    uint8_t octets[BUFFER];
    struct coder c;

    (void)state;
    for (enum nfs3_proc proc = NFS3_NULL; proc < NFS3_PROCS; proc++) {
        for (unsigned i = 0; i < 3; i++) {
            bool call = i == 0;
            union message m;
            size_t n;

            memset(&m, 0, sizeof(m));
            if (call && (proc == NFS3_WRITE || proc == NFS3_SYMLINK))
                continue;
            if (i == 1 && (proc == NFS3_READ || proc == NFS3_READLINK))
                continue;
            if (call && proc == NFS3_MKNOD)
                m.args.make.type = NFS3_FIFO;
            if (!call && proc == NFS3_GETATTR)
                m.result.attr.attr.type = NFS3_REG;
            if (i == 2)
                m.result.status = NFS3ERR_IO;
            n = encode(&c, octets, proc, call, m, true);
            assert_false(c.reduced);
            assert_true(takes(octets, n, (struct stream_item){0}, proc, call));
            for (uint32_t at = 0; at <= n; at += 4)
                assert_false(takes(octets, n, (struct stream_item){at, 4, data}, proc, call));
        }
    }
}

/* The decoded data of a READ points into the caller's buffer. */
static void data_is_not_copied(void **state)
{
    union message m = read_message(9);
    uint8_t octets[BUFFER], buffer[16];
    struct coder c;
    size_t n = encode(&c, octets, NFS3_READ, false, m, true);

    (void)state;
    coder_read(&c, octets, n);
    c.item = (struct stream_item){0, 9, buffer};
    code(&c, NFS3_READ, false, &m);
    assert_false(c.bad);
    assert_true(c.reduced && m.result.read.data == buffer);
    assert_int_equal(m.result.read.count, 9);
}

/* The encoder refuses an item that would end beyond the largest 32-bit position. */
static void positions_do_not_wrap(void **state)
{
    union message m = write_message(8);
    uint8_t octets[BUFFER];
    struct coder c;

    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        coder_write(&c, octets, sizeof(octets));
        c.reduce = true;
        c.position = UINT32_MAX - 28 - BEFORE - 8 - 3 + more;
        code(&c, NFS3_WRITE, true, &m);
        assert_int_equal(c.bad, more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_out),           cmocka_unit_test(nothing_is_not_left_out),
        cmocka_unit_test(taken_in),           cmocka_unit_test(not_eligible),
        cmocka_unit_test(data_is_not_copied), cmocka_unit_test(positions_do_not_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
