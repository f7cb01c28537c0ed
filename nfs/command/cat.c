/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cat.c - `rddp nfs cat`: writes a file to standard output, with READs under way ahead of the output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs/command/nfs.h"

struct cat_piece {
    struct nfs_op op;
    uint8_t *buffer;
    uint64_t offset;
    uint32_t length, got; /* octets that the piece has in all, and that have been read */
    bool ready, eof;
    struct nfs_client *client;
};

struct cat {
    struct nfs_session *session;
    struct nfs3_fh fh;
    struct cat_piece *piece; /* a ring, in the order of the file */
    unsigned depth, head, count;
    uint64_t next, size;
    uint32_t capacity;
};

static void cat_ask(struct cat_piece *p)
{
    p->op.args.range.offset = p->offset + p->got;
    p->op.args.range.count = p->length - p->got;
    p->op.buffer = p->buffer + p->got;
    nfs_start(p->client, &p->op);
}

/* A server may return less than asked for; the rest is then requested. */
static void cat_take(struct nfs_op *op)
{
    struct cat_piece *p = op->user;
    bool good = !op->error && op->result.status == NFS3_OK;
    if (good) {
        p->got += op->result.read.count;
        p->eof = op->result.read.eof;
    }
    if (good && !p->eof && p->got < p->length && op->result.read.count)
        cat_ask(p);
    else
        p->ready = true;
}

static void ask_ahead(struct cat *cat)
{
    while (cat->count < cat->depth && cat->next < cat->size) {
        struct cat_piece *p = &cat->piece[(cat->head + cat->count++) % cat->depth];
        uint64_t left = cat->size - cat->next;
        p->offset = cat->next;
        p->length = left < cat->capacity ? (uint32_t)left : cat->capacity;
        p->got = 0;
        p->ready = p->eof = false;
        p->op.args.range.fh = cat->fh;
        cat->next += p->length;
        cat_ask(p);
    }
}

static int write_out(const uint8_t *from, size_t n)
{
    while (n) {
        ssize_t done = write(STDOUT_FILENO, from, n);
        if (done < 0 && errno != EINTR)
            return fail(EXIT_FAILED, "cannot write to standard output: %s", error_text(errno));
        if (done < 0 && tool_stopped)
            return EXIT_FAILED;
        from += done < 0 ? 0 : done;
        n -= done < 0 ? 0 : (size_t)done;
    }
    return 0;
}

/* Writes the oldest piece, which is complete. */
static int put_out(struct cat *cat)
{
    struct cat_piece *p = &cat->piece[cat->head];
    cat->head = (cat->head + 1) % cat->depth;
    cat->count--;
    if (p->op.error || p->op.result.status != NFS3_OK)
        return nfs_fail(cat->session, nfs_exit_code(p->op.error), "", nfs_why(&p->op));
    int code = write_out(p->buffer, p->got);
    if (!code && p->got < p->length)
        return nfs_fail(cat->session, EXIT_FAILED, "",
                        p->eof ? xfer_result_text(XFER_CHANGED) : "the server gives neither octets nor the end");
    return code;
}

static int run_cat(struct cat *cat)
{
    int code = 0;
    while (!code && (cat->count || cat->next < cat->size)) {
        ask_ahead(cat);
        if (cat->piece[cat->head].ready)
            code = put_out(cat);
        else
            nfs_session_wait(cat->session);
        if (!code && tool_stopped)
            code = fail(EXIT_FAILED, "interrupted");
    }
    return code;
}

static bool make_pieces(struct cat *cat)
{
    cat->piece = calloc(cat->depth, sizeof(*cat->piece));
    for (unsigned i = 0; cat->piece && i < cat->depth; i++) {
        struct cat_piece *p = &cat->piece[i];
        p->client = cat->session->client;
        p->op.proc = NFS3_READ;
        p->op.done = cat_take;
        p->op.user = p;
        p->buffer = malloc(cat->capacity);
        if (!p->buffer)
            return false;
    }
    return cat->piece;
}

static int cat_one(struct nfs_session *s)
{
    struct cat cat = {.session = s, .depth = s->options->depth, .capacity = nfs_read_max(s->client)};
    struct nfs3_attr attr;
    int error = nfs_lookup(s->client, s->inside, true, &cat.fh, &attr);
    if (!error && attr.type != NFS3_REG)
        error = attr.type == NFS3_DIR ? -EISDIR : -EINVAL;
    if (error)
        return nfs_fail(s, nfs_exit_code(error), "", nfs_errno_text(error));
    cat.size = attr.size;
    int code = make_pieces(&cat) ? run_cat(&cat) : fail(EXIT_FAILED, "out of memory");
    /* READs under way may still write into the buffers, so they are cancelled first. */
    for (unsigned i = 0; cat.piece && i < cat.depth; i++) {
        if (i < cat.count && !cat.piece[(cat.head + i) % cat.depth].ready)
            nfs_cancel(s->client, &cat.piece[(cat.head + i) % cat.depth].op);
    }
    for (unsigned i = 0; cat.piece && i < cat.depth; i++) {
        nfs_forget(&cat.piece[i].op);
        free(cat.piece[i].buffer);
    }
    free(cat.piece);
    return code;
}

int nfs_cat(const struct nfs_options *options, int argc, char **argv)
{
    int code = 0;
    for (int i = 0; i < argc && !code; i++) {
        struct nfs_session s;
        code = nfs_session_open(&s, options, argv[i]);
        if (!code)
            code = cat_one(&s);
        nfs_session_close(&s);
    }
    return code;
}
