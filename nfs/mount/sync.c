/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.c - sends written data to the server: WRITEs, COMMITs, and the calls that wait for them. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <stdlib.h>

#include "nfs/mount/mount.h"

enum {
    WRITES_MAX = 16,   /* WRITEs under way for one file; further data is gathered meanwhile */
    ACTIVES_MAX = 256, /* chunks of one file; a writer of more has to wait */
    /* A server that loses data again and again gets them after a pause, which doubles each time. */
    LOSSES_FREE = 2,
    LOSS_MS = 100,
    LOSS_DOUBLES = 7,
};

static void pump(struct mount *m, struct inode *inode);

/* --- accounts -------------------------------------------------------------------------------------------------- */

/* account() before the chunks of an inode change, sync_settle() after. */
static uint64_t account(const struct inode *inode)
{
    return inode->dirty->octets;
}

static void sync_settle(struct mount *m, struct inode *inode, uint64_t before)
{
    m->dirty_octets += inode->dirty->octets - before;
    if (inode->dirty->octets < before)
        inode->dirty->dropped = ++m->clock;
}

static void list_dirty(struct mount *m, struct inode *inode)
{
    inode_pin(inode);
    inode->next_dirty = m->dirty_first;
    m->dirty_first = inode;
}

static void unlist_clean(struct mount *m, struct inode *inode)
{
    struct inode **at = &m->dirty_first;

    while (*at && *at != inode)
        at = &(*at)->next_dirty;
    if (!*at)
        return;
    *at = inode->next_dirty;
    inode_unpin(&m->inodes, inode);
}

static bool sync_is_full(const struct mount *m)
{
    return m->dirty_octets > m->options->dirty_max;
}

static void note_error(struct inode *inode, int error)
{
    inode->error = error;
    inode->errors++;
}

/* --- a server that loses data ---------------------------------------------------------------------------------- */

/* Sets the pause before data are sent again, if the server has just lost them; `losses` is how many it had lost. */
static void pause_after_loss(struct inode *inode, unsigned losses)
{
    const struct dirty *d = inode->dirty;
    unsigned more = d->losses > LOSSES_FREE ? d->losses - LOSSES_FREE - 1 : 0;

    if (d->losses > losses && d->losses > LOSSES_FREE)
        inode->paused_until_ns =
            clock_ns() + (UINT64_C(1000000) * LOSS_MS << (more < LOSS_DOUBLES ? more : LOSS_DOUBLES));
}

static bool is_paused(const struct inode *inode)
{
    return inode->paused_until_ns && clock_ns() < inode->paused_until_ns;
}

void sync_resume(struct mount *m)
{
    for (struct inode *inode = m->dirty_first, *next; inode; inode = next) {
        next = inode->next_dirty;
        if (inode->paused_until_ns && !is_paused(inode)) {
            inode->paused_until_ns = 0;
            pump(m, inode);
        }
    }
}

/* --- WRITE ----------------------------------------------------------------------------------------------------- */

static void wrote(struct mount_call *c)
{
    struct dirty *d = c->inode->dirty;
    uint64_t before = account(c->inode);
    unsigned losses = d->losses;
    int error = call_error(c);
    uint32_t count = c->op.result.write.count;

    /* A server that takes no octets and reports success would keep us busy forever. */
    if (!error && (count == 0 || count > c->op.args.write.count))
        error = EIO;
    if (error) {
        note_error(c->inode, error);
        dirty_failed(d, c->chunk);
    } else {
        dirty_wrote(d, c->chunk, count, c->op.result.write.committed != NFS3_UNSTABLE, c->op.result.write.verifier);
        pause_after_loss(c->inode, losses);
        mount_restamp(c->inode, &c->op.result.wcc.after);
    }
    sync_settle(c->m, c->inode, before);
    pump(c->m, c->inode);
    call_end(c);
}

/* Sends a WRITE for the chunk. Returns false if there is no memory. */
static bool send_chunk(struct mount *m, struct inode *inode, struct chunk *chunk)
{
    struct mount_call *c = call_new(m, NULL);
    uint32_t left = chunk->length - chunk->done, most = nfs_write_max(m->client);

    if (!c)
        return false;
    inode_pin(inode);
    c->inode = inode;
    c->chunk = chunk;
    c->cred = chunk->cred;
    c->op.args.write.fh = inode->fh;
    c->op.args.write.offset = chunk->offset + chunk->done;
    c->op.args.write.count = c->op.args.write.length = left < most ? left : most;
    c->op.args.write.stable = chunk->sync ? NFS3_FILE_SYNC : NFS3_UNSTABLE;
    c->op.args.write.data = chunk->data + chunk->done;
    call_start(c, NFS3_WRITE, wrote);
    return true;
}

static void send_chunks(struct mount *m, struct inode *inode)
{
    struct dirty *d = inode->dirty;
    struct chunk *chunk;

    while (d->sent < WRITES_MAX && (m->closing || !is_paused(inode)) && (chunk = dirty_next(d))) {
        if (m->closing || !send_chunk(m, inode, chunk)) {
            uint64_t before = account(inode);

            note_error(inode, m->closing ? EIO : ENOMEM);
            dirty_failed(d, chunk);
            sync_settle(m, inode, before);
        }
    }
}

/* --- COMMIT ---------------------------------------------------------------------------------------------------- */

static void sync_committed(struct mount_call *c)
{
    uint64_t before = account(c->inode);
    unsigned losses = c->inode->dirty->losses;
    int error = call_error(c);

    if (error) {
        note_error(c->inode, error);
        dirty_commit_failed(c->inode->dirty);
    } else {
        dirty_committed(c->inode->dirty, c->op.result.write.verifier);
        pause_after_loss(c->inode, losses);
        mount_restamp(c->inode, &c->op.result.wcc.after);
    }
    sync_settle(c->m, c->inode, before);
    pump(c->m, c->inode);
    call_end(c);
}

static void commit(struct mount *m, struct inode *inode)
{
    const struct chunk *uncommitted = inode->dirty->uncommitted;
    struct mount_call *c = m->closing || !uncommitted || inode->dirty->committing ? NULL : call_new(m, NULL);

    if (!c) /* no memory: the next event tries again */
        return;
    dirty_commit(inode->dirty);
    inode_pin(inode);
    c->inode = inode;
    c->cred = uncommitted->cred;
    c->op.args.range.fh = inode->fh;
    c->op.args.range.offset = 0;
    c->op.args.range.count = 0;
    call_start(c, NFS3_COMMIT, sync_committed);
}

/* Commits when half of the memory is in use, so that the server's disk is busy before all of it is. */
static void commit_early(struct mount *m)
{
    if (m->dirty_octets <= m->options->dirty_max / 2)
        return;
    for (struct inode *inode = m->dirty_first; inode; inode = inode->next_dirty)
        commit(m, inode);
}

/* --- waiting calls --------------------------------------------------------------------------------------------- */

static bool sync_waits(const struct mount_call *c)
{
    const struct dirty *d = c->inode->dirty;

    if (!d)
        return false;
    if (c->wait.commit)
        return dirty_is_uncommitted(d, c->wait.seq);
    return dirty_is_unsent(d, c->wait.seq, c->wait.start, c->wait.end);
}

static bool awaits_space(const struct mount_call *c)
{
    return sync_is_full(c->m) || c->inode->dirty->actives > ACTIVES_MAX;
}

static bool wants_commit(const struct inode *inode)
{
    if (!inode->dirty)
        return false;
    for (const struct mount_call *c = inode->waiting; c; c = c->next) {
        /* All data that it waits for have been sent. */
        if (c->wait.commit && !dirty_is_unsent(inode->dirty, c->wait.seq, 0, UINT64_MAX))
            return true;
    }
    return false;
}

/* Does all that can be done after the chunks of an inode have changed. */
static void pump(struct mount *m, struct inode *inode)
{
    inode_pin(inode);
    send_chunks(m, inode);
    calls_serve(&inode->waiting, sync_waits);
    if (wants_commit(inode))
        commit(m, inode);
    commit_early(m);
    calls_serve(&m->blocked, awaits_space);
    if (dirty_is_empty(inode->dirty))
        unlist_clean(m, inode);
    inode_unpin(&m->inodes, inode);
}

static void sync_wait_for(struct mount_call *c, void (*then)(struct mount_call *))
{
    c->wait.seq = c->inode->dirty ? c->inode->dirty->seq : 0;
    if (call_waits(c, &c->inode->waiting, sync_waits, then) && c->wait.commit && wants_commit(c->inode))
        commit(c->m, c->inode);
}

void when_written(struct mount_call *c, uint64_t start, uint64_t end, void (*then)(struct mount_call *c))
{
    c->wait.commit = false;
    c->wait.start = start;
    c->wait.end = end;
    sync_wait_for(c, then);
}

void when_committed(struct mount_call *c, void (*then)(struct mount_call *c))
{
    c->wait.commit = true;
    sync_wait_for(c, then);
}

void when_space(struct mount_call *c, void (*then)(struct mount_call *c))
{
    call_waits(c, &c->m->blocked, awaits_space, then);
}

/* --- for the files --------------------------------------------------------------------------------------------- */

bool sync_write(struct mount *m, struct inode *inode, const struct rpc_cred *cred, uint64_t offset, const void *data,
                uint32_t length, bool through)
{
    uint64_t before;
    bool was_clean, ok;

    if (!inode->dirty) {
        inode->dirty = malloc(sizeof(*inode->dirty));
        if (!inode->dirty)
            return false;
        dirty_init(inode->dirty);
    }
    was_clean = dirty_is_empty(inode->dirty);
    before = account(inode);
    ok = dirty_add(inode->dirty, offset, data, length, through, cred, nfs_write_max(m->client));
    sync_settle(m, inode, before);
    if (!ok)
        return false;
    if (was_clean)
        list_dirty(m, inode);
    m->changes++;
    if (inode->reported && inode->reported_size < offset + length)
        inode->reported_size = offset + length;
    send_chunks(m, inode);
    commit_early(m);
    return true;
}

void sync_abandon(struct mount *m)
{
    while (m->dirty_first) {
        struct inode *inode = m->dirty_first;
        uint64_t before = account(inode);

        note_error(inode, EIO);
        if (dirty_commit(inode->dirty))
            dirty_commit_failed(inode->dirty);
        sync_settle(m, inode, before);
        pump(m, inode);
    }
}

int handle_error(struct file *f)
{
    if (f->seen == f->inode->errors)
        return 0;
    f->seen = f->inode->errors;
    return f->inode->error;
}

static void closed(struct mount_call *c)
{
    silly_remove(c->m, c->inode);
    call_end(c);
}

void sync_closed(struct mount *m, struct inode *inode)
{
    struct mount_call *c = call_new(m, NULL);

    if (!c)
        return;
    silly_leave(m, inode);
    inode_pin(inode);
    c->inode = inode;
    when_committed(c, closed);
}
#endif
