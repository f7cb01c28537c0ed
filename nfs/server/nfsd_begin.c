/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_begin.c - a call begins: when there is memory for it, here if it waits for nothing, else in a thread of its
 * export. */
#include "nfs/server/nfsd_in.h"

static void serve_in_worker(struct work *work)
{
    job_run((struct nfsd_job *)work, false);
}

static void job_done(struct work *work)
{
    struct nfsd_job *job = (struct nfsd_job *)work;

    if (job->search)
        nfsd_search(job->nfsd, job);
    else
        job_finish(job);
}

static bool is_slow(const struct nfsd_job *job)
{
    return job_is_nfs(job) ? nfs_is_slow(job_proc(job), &job->args) : job->call.procedure == MOUNT3_MNT;
}

/* Whether the file system of the job may be asked here for what it has in memory. */
static bool may_try(const struct nfsd_job *job)
{
    return !job->export || job->export->export->local;
}

/* A READ from a view or a WRITE to memory is classed as slow, but often need not block. */
static bool may_be_quick(const struct nfsd_job *job)
{
    if (job->reply.result != RPC_SUCCESS || !job_is_nfs(job) || !job->export || !may_try(job))
        return false;
    return (job->call.procedure == NFS3_READ && job->views && is_slow(job)) ||
           (job->call.procedure == NFS3_WRITE && job->export->export->in_memory);
}

/* Tries to execute the call without a buffer. On success the memory reserved for the buffer is returned. */
static bool serve_now(struct nfsd_job *job)
{
    if (!may_be_quick(job) || !job_serve(job, true, false))
        return false;
    memory_refund(&job->nfsd->memory, job, job->capacity);
    job->capacity = 0;
    return true;
}

/* Begins a job whose memory is reserved. */
static void nfsd_job_begin(struct nfsd_job *job)
{
    struct nfsd *d = job->nfsd;

    if (!job->ops->begin(job))
        return;
    atomic_fetch_add(&d->counters.calls, 1);
    if (serve_now(job)) {
        job_finish(job);
        return;
    }
    if (job->capacity) {
        job->buffer = memory_buffer(&d->memory, job->capacity);
        if (!job->buffer)
            job->reply.result = RPC_SYSTEM_ERR;
    }
    if (job->reply.result != RPC_SUCCESS) {
        job_finish(job);
    } else if (!job->export) {
        job_serve(job, false, true);
        job_finish(job);
    } else if (!job->search && !is_slow(job) && may_try(job) && job_serve(job, true, false)) {
        job_finish(job);
    } else if (job->search) {
        nfsd_search(d, job);
    } else {
        job_give(job, job_is_nfs(job) ? job->export->calls : job->export->mounts, serve_in_worker, job_done);
    }
}

/* The export whose file system the call looks at. */
static struct nfsd_export *job_export_of(const struct nfsd_job *job)
{
    const struct nfs_server *server = job->nfsd->attr.server;
    const struct export *e = NULL;

    if (job_is_nfs(job))
        e = nfs_export_of(server, job_proc(job), &job->args);
    else if (job->call.procedure == MOUNT3_MNT)
        e = mount_export_of(server, &job->path);
    return e ? &job->nfsd->export[e - server->export] : NULL;
}

/* What a DIGEST reads it does not hold, but it counts as if it did: calls of few octets, queued by one client, could
 * else keep the threads of an export for as long as it takes to read gigabytes. */
static size_t work_of(const struct nfsd_job *job)
{
    uint64_t most = job->nfsd->memory.budget.max / NFSD_DIGESTS, count = job->args.range.count;

    if (job_proc(job) != NFS3_DIGEST)
        return 0;
    count = count < NFS3_DIGEST_MAX ? count : NFS3_DIGEST_MAX;
    return (size_t)(count < most ? count : most);
}

void job_start(struct nfsd_job *job)
{
    enum said said = job_decode(job);

    job->charge = sizeof(*job) + job->length;
    for (unsigned i = 0; i < job->items; i++)
        job->charge += job->item[i].length;
    if (said == SAID_CALL && job->reply.result == RPC_SUCCESS)
        job->export = job_export_of(job);
    if (said == SAID_CALL && job->reply.result == RPC_SUCCESS && job_is_nfs(job)) {
        job->capacity = nfs_result_size(job_proc(job), &job->args);
        job->capacity = job->capacity < NFSD_RESULT_MAX ? job->capacity : NFSD_RESULT_MAX;
        job->charge += work_of(job);
    }
    job->charge += job->capacity;
    job->owner->jobs++;
    if (said == SAID_CALL) {
        if (memory_admit(&job->nfsd->memory, job))
            nfsd_job_begin(job);
        return;
    }
    job->charge = 0;
    if (said == SAID_BAD_CHUNK)
        job->ops->refuse(job);
    else
        job->ops->drop(job);
}

void jobs_resume(struct nfsd *d)
{
    struct nfsd_job *job;

    while ((job = memory_next(&d->memory)))
        nfsd_job_begin(job);
}
