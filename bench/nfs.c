/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs.c - the benchmark's client with this NFS client: READs and WRITEs of a file, or GETATTRs, several under way at
 * once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/job.h"
#include "nfs/client/nfs_client.h"

static struct job job;
static struct nfs_client *client;
static struct nfs3_fh file;
static struct nfs_op op[JOB_DEPTH_MAX];
static uint64_t next, finished;

static void start(struct nfs_op *o)
{
    uint64_t at = next;

    if (at >= job.total)
        return;
    next += job.kind == JOB_GETATTR ? 1 : job.size;
    if (job.kind == JOB_GETATTR) {
        o->args.fh = file;
    } else if (job.kind == JOB_READ) {
        o->args.range.fh = file;
        o->args.range.offset = at;
        o->args.range.count = job.size;
    } else {
        o->args.write.fh = file;
        o->args.write.offset = at;
        o->args.write.count = o->args.write.length = job.size;
        o->args.write.stable = NFS3_UNSTABLE;
        o->args.write.data = o->user;
    }
    nfs_start(client, o);
}

static void done(struct nfs_op *o)
{
    if (o->error)
        job_fail("nfs", strerror(-o->error));
    if (o->result.status != NFS3_OK)
        job_fail("nfs", nfs3_status_str(o->result.status));
    if (job.kind == JOB_READ && o->result.read.count != job.size)
        job_fail("nfs", "a short READ");
    if (job.kind == JOB_WRITE && o->result.write.count != job.size)
        job_fail("nfs", "a short WRITE");
    finished += job.kind == JOB_GETATTR ? 1 : job.size;
    start(o);
}

static void commit(void)
{
    struct nfs_op o = {.proc = NFS3_COMMIT, .args.range.fh = file};
    int error = nfs_call(client, &o);

    if (error)
        job_fail("COMMIT", strerror(-error));
    nfs_forget(&o);
}

static void open_all(void)
{
    struct nfs_client_attr attr;
    char error[NFS_CLIENT_TEXT];
    struct nfs3_attr ignored;
    int failed;

    nfs_client_attr_init(&attr);
    attr.host = job.host;
    attr.path = job.export;
    attr.port = job.port;
    attr.mount_port = job.mount_port;
    attr.wire.crc = job.crc;
    client = nfs_client_open(&attr, error);
    if (!client)
        job_fail("nfs", error);
    failed = nfs_lookup(client, job.file, true, &file, &ignored);
    if (failed)
        job_fail(job.file, strerror(-failed));
}

int main(int argc, char **argv)
{
    static const enum nfs3_proc proc[] = {
        [JOB_READ] = NFS3_READ, [JOB_WRITE] = NFS3_WRITE, [JOB_GETATTR] = NFS3_GETATTR};

    job_arguments(&job, argc, argv);
    open_all();
    for (uint32_t i = 0; i < job.depth; i++) {
        void *buffer = aligned_alloc(4096, (job.size + 4095) / 4096 * 4096);

        if (!buffer)
            job_fail("nfs", "out of memory");
        op[i] = (struct nfs_op){.proc = proc[job.kind], .done = done, .user = buffer};
        op[i].buffer = job.kind == JOB_READ ? buffer : NULL;
        job_pattern(buffer, job.kind == JOB_READ ? 0 : job.size);
    }
    job_begin(&job);
    for (uint32_t i = 0; i < job.depth; i++)
        start(&op[i]);
    while (finished < job.total)
        nfs_wait(client, -1);
    if (job.kind == JOB_WRITE)
        commit();
    job_end(&job);
    for (uint32_t i = 0; i < job.depth; i++) {
        if (job.kind == JOB_READ)
            job_check(op[i].user, job.size);
        nfs_forget(&op[i]);
        free(op[i].user);
    }
    nfs_client_close(client);
    return 0;
}
