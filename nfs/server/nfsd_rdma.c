/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_rdma.c - calls over RDMA: the responder delivers them whole and takes replies with READ's data apart, so that
 * the data go from where they were read directly to the peer's memory. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "nfs/server/nfsd_in.h"

/* Receives hold headers and small arguments; the rest comes in chunks. */
enum { RDMA_INLINE = 4096 };

struct rdma_peer { /* a connection that has calls in the server */
    struct owner owner;
    struct rpc_conn *conn;
    struct rdma_peer *next;
};

struct rdma_call {
    struct nfsd_job job; /* the first member */
    struct responder_call *call;
    struct rdma_peer *peer;
};

static struct rdma_peer *find_peer(struct rdma *rdma, struct rpc_conn *conn)
{
    struct rdma_peer *peer = rdma->peers;

    while (peer && peer->conn != conn)
        peer = peer->next;
    if (peer)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    peer->conn = conn;
    peer->next = rdma->peers;
    rdma->peers = peer;
    return peer;
}

static void put_peer(struct rdma *rdma, struct rdma_peer *peer)
{
    struct rdma_peer **at = &rdma->peers;

    if (peer->owner.jobs)
        return;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    free(peer);
}

static void nfsd_rdma_end_call(struct rdma_call *call)
{
    job_end(&call->job);
    put_peer(&call->job.nfsd->rdma, call->peer);
    free(call);
}

/* The responder no longer needs the reply: it was sent, or its connection has ended. */
static void nfsd_rdma_release(void *user)
{
    nfsd_rdma_end_call(user);
}

/* The responder itself has looked for an earlier call with the same XID. */
static bool nfsd_rdma_begin(struct nfsd_job *job)
{
    if (!job_is_once_only(job))
        call_is_repeatable(((struct rdma_call *)job)->call);
    return true;
}

static void nfsd_rdma_answer(struct nfsd_job *job)
{
    struct rdma_call *call = (struct rdma_call *)job;
    struct reply reply = {.payload = job->head,
                          .length = job->head_length,
                          .items = job->datas,
                          .item = {job->data},
                          .may_change = job->view != NULL,
                          .release = nfsd_rdma_release,
                          .user = call};

    call->job.nfsd->rdma.answered = !call->job.nfsd->rdma.in_run;
    call_reply(call->call, &reply);
}

static void nfsd_rdma_refuse(struct nfsd_job *job)
{
    struct rdma_call *call = (struct rdma_call *)job;

    call_refuse(call->call);
    nfsd_rdma_end_call(call);
}

static void nfsd_rdma_drop(struct nfsd_job *job)
{
    struct rdma_call *call = (struct rdma_call *)job;

    call_drop(call->call);
    nfsd_rdma_end_call(call);
}

static bool nfsd_rdma_is_over(const struct nfsd_job *job)
{
    return !((const struct rdma_call *)job)->call->conn;
}

static const struct job_ops ops = {.begin = nfsd_rdma_begin,
                                   .answer = nfsd_rdma_answer,
                                   .refuse = nfsd_rdma_refuse,
                                   .drop = nfsd_rdma_drop,
                                   .is_over = nfsd_rdma_is_over};

static void handle(void *user, struct responder_call *incoming)
{
    struct nfsd *d = user;
    struct rdma_peer *peer = d->stopping ? NULL : find_peer(&d->rdma, incoming->conn);
    struct rdma_call *call = peer ? calloc(1, sizeof(*call)) : NULL;

    if (!call) {
        if (peer)
            put_peer(&d->rdma, peer);
        call_drop(incoming);
        return;
    }
    call->call = incoming;
    call->peer = peer;
    call->job.ops = &ops;
    call->job.nfsd = d;
    call->job.owner = &peer->owner;
    call->job.views = true;
    call->job.peer = incoming->peer;
    call->job.message = incoming->payload;
    call->job.length = incoming->length;
    call->job.item = incoming->item;
    call->job.items = incoming->items;
    job_start(&call->job);
}

static void nfsd_rdma_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
    nfsrdma_run(d);
}

void nfsrdma_run(struct nfsd *d)
{
    struct responder_stats stats;

    if (!d->rdma.responder)
        return;
    d->rdma.answered = false;
    d->rdma.in_run = true;
    responder_run(d->rdma.responder, 0);
    d->rdma.in_run = false;
    responder_stats(d->rdma.responder, &stats);
    atomic_store(&d->counters.rdma_connections, stats.connections);
    atomic_store(&d->counters.rdma_replayed, stats.replayed);
}

bool nfsrdma_is_quiet(const struct nfsd *d)
{
    struct responder_stats stats = {0};

    if (d->rdma.responder)
        responder_stats(d->rdma.responder, &stats);
    return stats.calls_held == 0;
}

static void log_line(void *user, enum rddp_log_level level, const char *line)
{
    struct nfsd *d = user;

    rpc_log_line(&d->log, level, line);
}

static bool admit(void *user, const struct sockaddr_storage *peer)
{
    struct nfsd *d = user;

    return nfsd_admits(d, peer);
}

int nfsrdma_listen(struct nfsd *d, const struct sockaddr *addr, socklen_t length)
{
    struct responder_attr attr;

    responder_attr_init(&attr);
    attr.credits = d->attr.credits;
    attr.send_size = attr.receive_size = RDMA_INLINE;
    attr.replay_entries = NFSD_REPLAYS;
    attr.connections_max = d->attr.connections_max;
    attr.address_max = d->attr.address_max;
    attr.rest_ms = d->attr.rest_ms;
    attr.stall_ms = d->attr.idle_ms;
    attr.admit = admit;
    attr.memory_max = d->attr.memory_max;
    attr.wire = d->attr.wire;
    attr.log_level = d->attr.log_level;
    attr.log = log_line;
    attr.handle = handle;
    attr.user = d;
    d->rdma.responder = responder_open(addr, length, &attr);
    if (!d->rdma.responder)
        return errno ? -errno : -EIO;
    d->rdma.source = (struct source){.ready = nfsd_rdma_ready, .fd = responder_fd(d->rdma.responder)};
    return source_watch(d, &d->rdma.source, EPOLLIN);
}

/* Replies that are not sent yet are given up, which ends their calls. */
void nfsrdma_fini(struct nfsd *d)
{
    if (d->rdma.responder)
        responder_close(d->rdma.responder);
    d->rdma.responder = NULL;
}
