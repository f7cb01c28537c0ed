/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_tcp_call.c - calls over TCP: makes a job of each record, unless it is a retransmission, and sends the reply when
 * the socket takes it. Replies may leave in another order than the calls; the XID tells which call they belong to. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "nfs/server/nfsd_tcp.h"
#include "rpc/clock.h"
#include "rpc/xdrbytes.h"

enum { SEND_CALLS = 16, REPLAY_OCTETS = 8192 };

/* --- the end of a call ----------------------------------------------------------------------------------------- */

/* When a call ends, its connection may be read again, or freed if it is closed. */
static void nfsd_tcp_call_look_at(const struct tcp_conn *conn)
{
    if (conn->source.fd < 0 || conn->over || conn->carried || !(conn->events & EPOLLIN))
        conn->nfsd->tcp.resume = true;
}

void nfstcp_end_call(struct nfsd_tcp_call *call)
{
    if (call->conn->packet)
        call->conn->stream->end_call(call);
    job_end(&call->job);
    nfsd_tcp_call_look_at(call->conn);
    free(call->record);
    free(call);
}

static struct nfsd_tcp_call *part_waiter(struct replay_entry *entry)
{
    struct responder_call *waiter = entry->waiter;

    entry->waiter = NULL;
    return waiter ? waiter->user : NULL;
}

/* --- the same call again --------------------------------------------------------------------------------------- */

static void queue_reply(struct nfsd_tcp_call *call)
{
    struct tcp_conn *conn = call->conn;
    struct tcp *tcp = &conn->nfsd->tcp;
    size_t length = stream_length(call->job.head_length, &call->job.data, call->job.datas);

    if (conn->source.fd < 0) {
        nfstcp_end_call(call);
        return;
    }
    if (!conn->out)
        conn->moved_ms = clock_ms();
    record_mark(call->mark, length);
    call->next = NULL;
    *conn->out_last = call;
    conn->out_last = &call->next;
    conn->outs++;
    if (!conn->dirty) {
        conn->dirty = true;
        conn->next_dirty = tcp->dirty;
        tcp->dirty = conn;
    }
}

/* Answers with a reply from the cache; it has no separate data. */
static void answer_as_before(struct nfsd_tcp_call *call, const struct reply *reply)
{
    struct nfsd_job *job = &call->job;

    atomic_fetch_add(&job->nfsd->counters.replayed, 1);
    job->head = reply->length <= NFSD_HEAD ? job->small : malloc(reply->length);
    if (!job->head) {
        nfstcp_end_call(call);
        return;
    }
    memcpy(job->head, reply->payload, reply->length);
    job->head_length = reply->length;
    job->datas = 0;
    queue_reply(call);
}

static bool nfsd_tcp_call_begin(struct nfsd_job *job)
{
    struct nfsd_tcp_call *call = (struct nfsd_tcp_call *)job, *older;
    struct replay *replay = &job->nfsd->tcp.replay;
    struct replay_entry *entry;
    struct replay_key key;
    uint64_t now;

    nfsd_tcp_call_look_at(call->conn);
    if (!job_is_once_only(job))
        return true;
    now = clock_ms();
    replay_key(&key, &job->peer, job->call.xid, &call->rpc);
    entry = replay_find(replay, &key, now);
    if (!entry) {
        call->entry = replay_add(replay, &key, now);
        return true;
    }
    if (entry->state == REPLAY_KEPT) {
        answer_as_before(call, &entry->reply);
        return false;
    }
    /* The first call is still executed. The last retransmission gets its reply too; an earlier one is dropped. */
    older = part_waiter(entry);
    if (older)
        nfstcp_end_call(older);
    entry->waiter = &call->rpc;
    return false;
}

static void nfsd_tcp_call_answer(struct nfsd_job *job)
{
    struct nfsd_tcp_call *call = (struct nfsd_tcp_call *)job, *waiter = NULL;
    struct reply reply = {.payload = job->head, .length = job->head_length};

    if (call->entry) {
        assert(job->datas == 0);
        waiter = part_waiter(call->entry);
        if (waiter)
            answer_as_before(waiter, &reply);
        replay_keep(&job->nfsd->tcp.replay, call->entry, &reply, REPLAY_OCTETS, clock_ms());
        call->entry = NULL;
    }
    queue_reply(call);
}

static void nfsd_tcp_call_drop(struct nfsd_job *job)
{
    struct nfsd_tcp_call *call = (struct nfsd_tcp_call *)job, *waiter;

    if (call->entry) {
        waiter = part_waiter(call->entry);
        if (waiter)
            nfstcp_end_call(waiter);
        replay_drop(&job->nfsd->tcp.replay, call->entry);
        call->entry = NULL;
    }
    nfstcp_end_call(call);
}

static bool nfsd_tcp_call_is_over(const struct nfsd_job *job)
{
    return ((const struct nfsd_tcp_call *)job)->conn->source.fd < 0;
}

static const struct job_ops ops = {.begin = nfsd_tcp_call_begin,
                                   .answer = nfsd_tcp_call_answer,
                                   .refuse = nfsd_tcp_call_drop,
                                   .drop = nfsd_tcp_call_drop,
                                   .is_over = nfsd_tcp_call_is_over};

bool nfstcp_may_call(const struct tcp_conn *conn)
{
    return conn->owner.jobs < conn->nfsd->attr.calls_max && !conn->owner.waiting;
}

bool nfstcp_call(struct tcp_conn *conn, uint8_t *record, size_t length, const struct stream_item *item, int offer)
{
    struct nfsd_tcp_call *call = calloc(1, sizeof(*call));

    if (!call) {
        free(record);
        return false;
    }
    call->conn = conn;
    call->record = record;
    call->offer = offer;
    call->rpc = (struct responder_call){.payload = record, .length = length, .user = call};
    if (item && item->length) {
        call->rpc.item[0] = *item;
        call->rpc.items = 1;
    }
    call->job.item = call->rpc.item;
    call->job.items = call->rpc.items;
    call->job.ops = &ops;
    call->job.nfsd = conn->nfsd;
    call->job.owner = &conn->owner;
    call->job.peer = conn->peer;
    call->job.message = record;
    call->job.length = length;
    call->job.mount_only = conn->nfsd->attr.tcp_port < 0;
    call->job.is_unadmitted = conn->is_unadmitted;
    job_start(&call->job);
    return true;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

int nfstcp_pieces(const struct nfsd_tcp_call *call, struct iovec *iov)
{
    static const uint8_t zeros[4];
    const struct nfsd_job *job = &call->job;
    size_t lead = job->datas ? job->data.position : job->head_length, skip = call->sent;
    const struct iovec all[NFSTCP_PIECES] = {
        {(void *)(uintptr_t)call->mark, RECORD_MARK},
        {job->head, lead},
        {(void *)(uintptr_t)job->data.data, job->datas ? job->data.length : 0},
        {(void *)(uintptr_t)zeros, job->datas ? xdr_roundup(job->data.length) : 0},
        {job->head + lead, job->head_length - lead},
    };
    int n = 0;

    for (int i = 0; i < NFSTCP_PIECES; i++) {
        size_t gone = skip < all[i].iov_len ? skip : all[i].iov_len;

        skip -= gone;
        if (all[i].iov_len > gone)
            iov[n++] = (struct iovec){(uint8_t *)all[i].iov_base + gone, all[i].iov_len - gone};
    }
    return n;
}

static size_t left_of(const struct nfsd_tcp_call *call)
{
    return RECORD_MARK + stream_length(call->job.head_length, &call->job.data, call->job.datas) - call->sent;
}

static void nfsd_tcp_call_advance(struct tcp_conn *conn, size_t n)
{
    conn->moved_ms = clock_ms();
    while (conn->out) {
        struct nfsd_tcp_call *call = conn->out;
        size_t left = left_of(call);

        if (n < left) {
            call->sent += n;
            return;
        }
        n -= left;
        conn->out = call->next;
        conn->outs--;
        if (!conn->out)
            conn->out_last = &conn->out;
        nfstcp_end_call(call);
    }
}

bool nfstcp_send(struct tcp_conn *conn)
{
    if (conn->packet)
        return conn->stream->send(conn);
    conn->blocked = false;
    while (conn->out && !conn->blocked) {
        struct iovec iov[SEND_CALLS * NFSTCP_PIECES];
        struct msghdr message = {.msg_iov = iov};
        const struct nfsd_tcp_call *call = conn->out;
        ssize_t n;

        for (int i = 0; call && i < SEND_CALLS; i++, call = call->next)
            message.msg_iovlen += (size_t)nfstcp_pieces(call, iov + message.msg_iovlen);
        n = sendmsg(conn->source.fd, &message, MSG_NOSIGNAL);
        if (n >= 0)
            nfsd_tcp_call_advance(conn, (size_t)n);
        else if (errno == EAGAIN)
            conn->blocked = true;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

void nfstcp_abandon(struct tcp_conn *conn)
{
    struct nfsd_job *job = memory_withdraw(&conn->nfsd->memory, &conn->owner);

    while (job) {
        struct nfsd_job *next = job->next;

        nfstcp_end_call((struct nfsd_tcp_call *)job);
        job = next;
    }
    while (conn->out) {
        struct nfsd_tcp_call *call = conn->out;

        conn->out = call->next;
        nfstcp_end_call(call);
    }
    conn->outs = 0;
    conn->out_last = &conn->out;
}
