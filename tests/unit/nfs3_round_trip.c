/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_round_trip.c - encode and decode random arguments and results of each procedure. The decoder returns the same
 * values and refuses a shorter or longer stream. No result is longer than nfs3_result_max(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/nfs3_xdr.h"
#include "tests/lib/rng.h"

enum { BUFFER = 1 << 16, DRAWS = 200, CUT_DRAWS = 20 };

static uint8_t stream[BUFFER], again[BUFFER], entries[BUFFER / 2], pool[3 * NFS3_TEXT_MAX];

/* --- drawing --------------------------------------------------------------------------------------------------- */

struct draw {
    struct rng rng;
    uint32_t longest; /* longest text, in octets */
    bool full;        /* every optional field is present and every handle has its longest length */
};

static bool draw_bool(struct draw *d)
{
    return d->full || rng_one_in(&d->rng, 2);
}

static uint32_t draw32(struct draw *d)
{
    return (uint32_t)rng_next(&d->rng);
}

/* Member by member: whole structures are compared below, and a copied one could bring other padding. */
static void draw_text(struct draw *d, struct nfs3_text *text)
{
    text->length = rng_one_in(&d->rng, 8) ? d->longest : rng_size(&d->rng, d->longest);
    text->at = (const char *)pool + rng_below(&d->rng, NFS3_TEXT_MAX);
}

static void draw_fh(struct draw *d, struct nfs3_fh *fh)
{
    fh->length = d->full ? NFS3_FH_MAX : rng_below(&d->rng, NFS3_FH_MAX + 1);
    rng_fill(&d->rng, fh->data, fh->length);
}

static struct nfs3_time draw_time(struct draw *d)
{
    uint32_t s = draw32(d);

    return (struct nfs3_time){s, draw32(d)};
}

static void draw_where(struct draw *d, struct nfs3_where *where)
{
    draw_fh(d, &where->dir);
    draw_text(d, &where->name);
}

static void draw_attr(struct draw *d, struct nfs3_attr *attr)
{
    attr->type = rng_between(&d->rng, NFS3_REG, NFS3_FIFO);
    attr->mode = draw32(d);
    attr->nlink = draw32(d);
    attr->uid = draw32(d);
    attr->gid = draw32(d);
    attr->size = rng_next(&d->rng);
    attr->used = rng_next(&d->rng);
    attr->major = draw32(d);
    attr->minor = draw32(d);
    attr->fsid = rng_next(&d->rng);
    attr->fileid = rng_next(&d->rng);
    attr->atime = draw_time(d);
    attr->mtime = draw_time(d);
    attr->ctime = draw_time(d);
}

static void draw_sattr(struct draw *d, struct nfs3_sattr *attr)
{
    attr->set_mode = draw_bool(d);
    attr->mode = attr->set_mode ? draw32(d) : 0;
    attr->set_uid = draw_bool(d);
    attr->uid = attr->set_uid ? draw32(d) : 0;
    attr->set_gid = draw_bool(d);
    attr->gid = attr->set_gid ? draw32(d) : 0;
    attr->set_size = draw_bool(d);
    attr->size = attr->set_size ? rng_next(&d->rng) : 0;
    attr->set_atime = rng_below(&d->rng, 3);
    if (attr->set_atime == NFS3_CLIENT_TIME)
        attr->atime = draw_time(d);
    attr->set_mtime = rng_below(&d->rng, 3);
    if (attr->set_mtime == NFS3_CLIENT_TIME)
        attr->mtime = draw_time(d);
}

static void draw_post_attr(struct draw *d, struct nfs3_post_attr *attr)
{
    attr->present = draw_bool(d);
    if (attr->present)
        draw_attr(d, &attr->attr);
}

static void draw_wcc(struct draw *d, struct nfs3_wcc *wcc)
{
    wcc->had = draw_bool(d);
    if (wcc->had) {
        wcc->size = rng_next(&d->rng);
        wcc->mtime = draw_time(d);
        wcc->ctime = draw_time(d);
    }
    draw_post_attr(d, &wcc->after);
}

static void draw_make(struct draw *d, enum nfs3_proc proc, struct nfs3_make *make)
{
    draw_where(d, &make->where);
    if (proc == NFS3_CREATE)
        make->how = rng_below(&d->rng, 3);
    if (proc == NFS3_MKNOD)
        make->type = rng_between(&d->rng, NFS3_REG, NFS3_FIFO);
    if (make->how == NFS3_EXCLUSIVE)
        rng_fill(&d->rng, make->verifier, NFS3_VERIFIER);
    else if (proc != NFS3_MKNOD || (make->type > NFS3_DIR && make->type != NFS3_LNK))
        draw_sattr(d, &make->attr);
    if (make->type == NFS3_BLK || make->type == NFS3_CHR) {
        make->major = draw32(d);
        make->minor = draw32(d);
    }
    if (proc == NFS3_SYMLINK)
        draw_text(d, &make->target);
}

static void draw_list(struct draw *d, enum nfs3_proc proc, struct nfs3_list *list)
{
    draw_fh(d, &list->dir);
    list->cookie = rng_next(&d->rng);
    rng_fill(&d->rng, list->verifier, NFS3_VERIFIER);
    list->dircount = proc == NFS3_READDIRPLUS ? draw32(d) : 0;
    list->maxcount = rng_between(&d->rng, 8, sizeof(entries)) & ~3U;
}

static void draw_args(struct draw *d, enum nfs3_proc proc, union nfs3_args *args)
{
    memset(args, 0, sizeof(*args));
    if (proc == NFS3_NULL)
        return;
    draw_fh(d, &args->fh);
    if (proc == NFS3_SETATTR) {
        draw_sattr(d, &args->setattr.attr);
        args->setattr.guarded = draw_bool(d);
        if (args->setattr.guarded)
            args->setattr.ctime = draw_time(d);
    } else if (proc == NFS3_LOOKUP || proc == NFS3_REMOVE || proc == NFS3_RMDIR) {
        draw_text(d, &args->where.name);
    } else if (proc == NFS3_ACCESS) {
        args->access.access = draw32(d);
    } else if (proc == NFS3_READ || proc == NFS3_COMMIT || proc == NFS3_DIGEST) {
        args->range.offset = rng_next(&d->rng);
        args->range.count = draw32(d);
    } else if (proc == NFS3_WRITE) {
        args->write.offset = rng_next(&d->rng);
        args->write.count = draw32(d);
        args->write.stable = rng_below(&d->rng, 3);
        args->write.data = pool + rng_below(&d->rng, 8);
        args->write.length = rng_size(&d->rng, 2 * d->longest);
    } else if (proc >= NFS3_CREATE && proc <= NFS3_MKNOD) {
        memset(args, 0, sizeof(*args));
        draw_make(d, proc, &args->make);
    } else if (proc == NFS3_RENAME) {
        draw_text(d, &args->rename.from.name);
        draw_where(d, &args->rename.to);
    } else if (proc == NFS3_LINK) {
        draw_where(d, &args->link.to);
    } else if (proc == NFS3_READDIR || proc == NFS3_READDIRPLUS) {
        memset(args, 0, sizeof(*args));
        draw_list(d, proc, &args->list);
    }
}

/* Draw as many entries as fit into `space` octets. */
static void draw_entries(struct draw *d, bool plus, uint32_t space, struct nfs3_result *result)
{
    struct xdr_out out = {.at = entries, .left = space};
    struct nfs3_entry entry;

    do {
        memset(&entry, 0, sizeof(entry));
        entry.fileid = rng_next(&d->rng);
        draw_text(d, &entry.name);
        entry.cookie = rng_next(&d->rng);
        draw_post_attr(d, &entry.attr);
        entry.fh.present = draw_bool(d);
        draw_fh(d, &entry.fh.fh);
    } while (nfs3_put_entry(&out, &entry, plus));
    assert_false(out.bad);
    result->list.entries = entries;
    result->list.length = space - (uint32_t)out.left;
}

/* Draw the fields that a result has for every status. */
static void draw_always(struct draw *d, enum nfs3_proc proc, struct nfs3_result *result)
{
    if (proc == NFS3_LOOKUP)
        draw_post_attr(d, &result->dir);
    else if (proc == NFS3_SETATTR || (proc >= NFS3_WRITE && proc <= NFS3_RENAME) || proc == NFS3_COMMIT)
        draw_wcc(d, &result->wcc);
    else if (proc != NFS3_GETATTR)
        draw_post_attr(d, &result->attr);
    if (proc == NFS3_RENAME || proc == NFS3_LINK)
        draw_wcc(d, &result->to_wcc);
}

static void draw_numbers(struct draw *d, enum nfs3_proc proc, struct nfs3_result *result)
{
    if (proc == NFS3_FSSTAT) {
        rng_fill(&d->rng, &result->fsstat.total_bytes, 6 * sizeof(uint64_t));
        result->fsstat.invariant_s = draw32(d);
    } else if (proc == NFS3_FSINFO) {
        rng_fill(&d->rng, &result->fsinfo.rtmax, 7 * sizeof(uint32_t));
        result->fsinfo.maxfilesize = rng_next(&d->rng);
        result->fsinfo.time_delta = draw_time(d);
        result->fsinfo.properties = draw32(d);
    } else if (proc == NFS3_PATHCONF) {
        result->pathconf.linkmax = draw32(d);
        result->pathconf.name_max = draw32(d);
        result->pathconf.no_trunc = draw_bool(d);
        result->pathconf.chown_restricted = draw_bool(d);
        result->pathconf.case_insensitive = draw_bool(d);
        result->pathconf.case_preserving = draw_bool(d);
    }
}

static void draw_done(struct draw *d, enum nfs3_proc proc, const union nfs3_args *args, struct nfs3_result *result)
{
    if (proc == NFS3_GETATTR || proc == NFS3_LOOKUP || (proc >= NFS3_CREATE && proc <= NFS3_MKNOD)) {
        draw_post_attr(d, &result->attr);
        if (proc == NFS3_GETATTR && !result->attr.present)
            draw_attr(d, &result->attr.attr);
        result->attr.present |= proc == NFS3_GETATTR;
    }
    if (proc == NFS3_LOOKUP) {
        draw_fh(d, &result->fh);
    } else if (proc >= NFS3_CREATE && proc <= NFS3_MKNOD) {
        result->made.present = draw_bool(d);
        if (result->made.present)
            draw_fh(d, &result->made.fh);
    } else if (proc == NFS3_ACCESS) {
        result->access = draw32(d);
    } else if (proc == NFS3_READLINK) {
        draw_text(d, &result->target);
    } else if (proc == NFS3_READ) {
        result->read.count = rng_size(&d->rng, 2 * d->longest);
        result->read.eof = draw_bool(d);
        result->read.data = pool + 1;
    } else if (proc == NFS3_WRITE || proc == NFS3_COMMIT) {
        result->write.count = proc == NFS3_WRITE ? draw32(d) : 0;
        result->write.committed = proc == NFS3_WRITE ? rng_below(&d->rng, 3) : 0;
        rng_fill(&d->rng, result->write.verifier, NFS3_VERIFIER);
    } else if (proc == NFS3_DIGEST) {
        rng_fill(&d->rng, &result->digest, sizeof(result->digest));
    } else if (proc == NFS3_READDIR || proc == NFS3_READDIRPLUS) {
        rng_fill(&d->rng, result->list.verifier, NFS3_VERIFIER);
        draw_entries(d, proc == NFS3_READDIRPLUS, args->list.maxcount - 8, result);
        result->list.eof = draw_bool(d);
    } else {
        draw_numbers(d, proc, result);
    }
}

static void draw_result(struct draw *d, enum nfs3_proc proc, const union nfs3_args *args, struct nfs3_result *result)
{
    memset(result, 0, sizeof(*result));
    if (proc == NFS3_NULL)
        return;
    result->status = draw_bool(d) ? NFS3_OK : draw32(d) | 1;
    draw_always(d, proc, result);
    if (result->status == NFS3_OK)
        draw_done(d, proc, args, result);
}

/* --- comparing ------------------------------------------------------------------------------------------------- */

/* Assert that the octets are equal, and set `*got` to `want` so that the caller can compare the whole structures. */
static void same_octets(const void *want, uint32_t length, const void **got, uint32_t got_length)
{
    assert_int_equal(length, got_length);
    if (length)
        assert_memory_equal(want, *got, length);
    *got = want;
}

static void same_text(const struct nfs3_text *want, struct nfs3_text *got)
{
    const void *at = got->at;

    same_octets(want->at, want->length, &at, got->length);
    got->at = want->at;
}

static void same_args(enum nfs3_proc proc, const union nfs3_args *want, union nfs3_args *got)
{
    if (proc == NFS3_LOOKUP || proc == NFS3_REMOVE || proc == NFS3_RMDIR)
        same_text(&want->where.name, &got->where.name);
    if (proc >= NFS3_CREATE && proc <= NFS3_MKNOD)
        same_text(&want->make.where.name, &got->make.where.name);
    if (proc == NFS3_SYMLINK)
        same_text(&want->make.target, &got->make.target);
    if (proc == NFS3_RENAME) {
        same_text(&want->rename.from.name, &got->rename.from.name);
        same_text(&want->rename.to.name, &got->rename.to.name);
    }
    if (proc == NFS3_LINK)
        same_text(&want->link.to.name, &got->link.to.name);
    if (proc == NFS3_WRITE)
        same_octets(want->write.data, want->write.length, &got->write.data, got->write.length);
    assert_memory_equal(want, got, sizeof(*want));
}

static void same_result(enum nfs3_proc proc, const struct nfs3_result *want, struct nfs3_result *got)
{
    const void *at = got->list.entries;

    if (proc == NFS3_READLINK && want->status == NFS3_OK)
        same_text(&want->target, &got->target);
    if (proc == NFS3_READ && want->status == NFS3_OK)
        same_octets(want->read.data, want->read.count, &got->read.data, got->read.count);
    if ((proc == NFS3_READDIR || proc == NFS3_READDIRPLUS) && want->status == NFS3_OK) {
        same_octets(want->list.entries, want->list.length, &at, got->list.length);
        got->list.entries = at;
    }
    assert_memory_equal(want, got, sizeof(*want));
}

/* --- one message ----------------------------------------------------------------------------------------------- */

union message {
    union nfs3_args args;
    struct nfs3_result result;
};

static void code(struct coder *c, enum nfs3_proc proc, bool call, union message *m)
{
    if (call)
        nfs3_code_args(c, proc, &m->args);
    else
        nfs3_code_result(c, proc, &m->result);
}

static size_t encode(enum nfs3_proc proc, bool call, union message *m, struct coder *c, bool reduce)
{
    coder_write(c, stream, sizeof(stream));
    c->reduce = reduce;
    code(c, proc, call, m);
    assert_false(c->bad);
    return coder_length(c);
}

/* Decode from a heap copy of the exact size, so that a sanitizer detects a read beyond its end. */
static bool is_taken(enum nfs3_proc proc, bool call, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    union message m;
    struct coder c;

    assert_non_null(copy);
    memcpy(copy, stream, n);
    coder_read(&c, copy, n);
    code(&c, proc, call, &m);
    free(copy);
    return !c.bad;
}

static void round_trip(enum nfs3_proc proc, bool call, union message *m, bool reduce)
{
    union message got;
    struct coder out, in, back;
    size_t n = encode(proc, call, m, &out, reduce);

    memset(&got, 0, sizeof(got));
    coder_read(&in, stream, n);
    in.item = out.item;
    code(&in, proc, call, &got);
    assert_false(in.bad);
    assert_true(in.reduced == out.reduced && in.position == out.position);
    coder_write(&back, again, sizeof(again));
    back.reduce = reduce;
    code(&back, proc, call, &got);
    assert_false(back.bad);
    assert_int_equal(coder_length(&back), n);
    assert_memory_equal(again, stream, n);
    if (call)
        same_args(proc, &m->args, &got.args);
    else
        same_result(proc, &m->result, &got.result);
}

/* --- tests ----------------------------------------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
    struct draw d = {.rng = {1}, .longest = NFS3_TEXT_MAX};
    union nfs3_args args;
    union message m;

    (void)state;
    for (enum nfs3_proc proc = NFS3_NULL; proc < NFS3_PROCS; proc++) {
        for (unsigned i = 0; i < DRAWS; i++) {
            draw_args(&d, proc, &args);
            m.args = args;
            round_trip(proc, true, &m, i % 2);
            draw_result(&d, proc, &args, &m.result);
            round_trip(proc, false, &m, i % 2);
        }
    }
}

static void every_cut_is_bad(void **state)
{
    struct draw d = {.rng = {2}, .longest = 17};
    union nfs3_args args;
    union message m;
    struct coder c;

    (void)state;
    for (enum nfs3_proc proc = NFS3_GETATTR; proc < NFS3_PROCS; proc++) {
        for (unsigned i = 0; i < 2 * CUT_DRAWS; i++) {
            bool call = i % 2;
            size_t n;

            draw_args(&d, proc, &args);
            m.args = args;
            args.list.maxcount = 200;
            if (!call)
                draw_result(&d, proc, &args, &m.result);
            n = encode(proc, call, &m, &c, false);
            assert_true(is_taken(proc, call, n));
            for (size_t k = 0; k < n; k++)
                assert_false(is_taken(proc, call, k));
            for (size_t k = 1; k <= 4; k++)
                assert_false(is_taken(proc, call, n + k));
            /* The encoder fails in a buffer that is one octet too short. */
            coder_write(&c, again, n - 1);
            code(&c, proc, call, &m);
            assert_true(c.bad);
        }
    }
}

/* A full result is exactly as long as nfs3_result_max(); no other result is longer. */
static void longest_results(void **state)
{
    struct draw full = {.rng = {3}, .longest = 64, .full = true}, any = {.rng = {4}, .longest = 64};
    union nfs3_args args;
    union message m;
    struct coder c;

    (void)state;
    for (enum nfs3_proc proc = NFS3_GETATTR; proc < NFS3_PROCS; proc++) {
        for (unsigned i = 0; i < DRAWS; i++) {
            draw_args(&any, proc, &args);
            draw_result(&any, proc, &args, &m.result);
            assert_true(encode(proc, false, &m, &c, true) <= nfs3_result_max(proc, &args));
        }
        memset(&args, 0, sizeof(args));
        args.list.maxcount = 1008;
        draw_result(&full, proc, &args, &m.result);
        if (proc == NFS3_READ)
            m.result.read.count = 5;
        if (proc == NFS3_READLINK)
            m.result.target.length = 5;
        if (proc == NFS3_READDIR || proc == NFS3_READDIRPLUS)
            m.result.list.length = 1000;
        assert_int_equal(encode(proc, false, &m, &c, true), nfs3_result_max(proc, &args));
    }
    args.list.maxcount = 0;
    assert_int_equal(nfs3_result_max(NFS3_READDIR, &args), 4 + 88 + 8 + 8);
    assert_int_equal(nfs3_result_max(NFS3_NULL, NULL), 0);
}

static int fill_pool(void **state)
{
    struct rng rng = {5};

    (void)state;
    rng_fill(&rng, pool, sizeof(pool));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(every_cut_is_bad),
        cmocka_unit_test(longest_results),
    };

    return cmocka_run_group_tests(tests, fill_pool, NULL);
}
