/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libnfs.c - the benchmark's other client: libnfs over TCP, with the same number of calls under way. libnfs reads into
 * its own buffers, so a program has to copy the data to where it needs them: that is part of the work. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nfsc/libnfs.h>

#include "bench/lib/job.h"

static struct job job;
static struct nfs_context *nfs;
static struct nfsfh *file;
static uint64_t next, finished;

static void done(int status, struct nfs_context *context, void *data, void *user);

static void start(uint8_t *buffer)
{
    uint64_t at = next;
    int error;

    if (at >= job.total)
        return;
    next += job.kind == JOB_GETATTR ? 1 : job.size;
    if (job.kind == JOB_GETATTR)
        error = nfs_fstat64_async(nfs, file, done, buffer);
    else if (job.kind == JOB_READ)
        error = nfs_pread_async(nfs, file, at, job.size, done, buffer);
    else
        error = nfs_pwrite_async(nfs, file, at, job.size, buffer, done, buffer);
    if (error)
        job_fail("libnfs", nfs_get_error(nfs));
}

static void done(int status, struct nfs_context *context, void *data, void *user)
{
    if (status < 0)
        job_fail("libnfs", nfs_get_error(context));
    if (job.kind != JOB_GETATTR && (uint32_t)status != job.size)
        job_fail("libnfs", "a short transfer");
    if (job.kind == JOB_READ)
        memcpy(user, data, job.size);
    finished += job.kind == JOB_GETATTR ? 1 : job.size;
    start(user);
}

static void open_all(void)
{
    char text[1200];
    struct nfs_url *url;

    nfs = nfs_init_context();
    snprintf(text, sizeof(text), "nfs://%s%s/?nfsport=%d&mountport=%d", job.host, job.export, job.port, job.mount_port);
    url = nfs ? nfs_parse_url_dir(nfs, text) : NULL;
    if (!url || nfs_mount(nfs, url->server, url->path) != 0)
        job_fail(text, nfs ? nfs_get_error(nfs) : "out of memory");
    nfs_destroy_url(url);
    if (nfs_open(nfs, job.file, job.kind == JOB_WRITE ? O_RDWR : O_RDONLY, &file) != 0)
        job_fail(job.file, nfs_get_error(nfs));
}

int main(int argc, char **argv)
{
    uint8_t *buffer[JOB_DEPTH_MAX];

    job_arguments(&job, argc, argv);
    open_all();
    for (uint32_t i = 0; i < job.depth; i++) {
        buffer[i] = aligned_alloc(4096, (job.size + 4095) / 4096 * 4096);
        if (!buffer[i])
            job_fail("libnfs", "out of memory");
        job_pattern(buffer[i], job.kind == JOB_READ ? 0 : job.size);
    }
    job_begin(&job);
    for (uint32_t i = 0; i < job.depth; i++)
        start(buffer[i]);
    while (finished < job.total) {
        struct pollfd fd = {.fd = nfs_get_fd(nfs), .events = (short)nfs_which_events(nfs)};

        if (poll(&fd, 1, 1000) < 0 || nfs_service(nfs, fd.revents) < 0)
            job_fail("libnfs", nfs_get_error(nfs));
    }
    if (job.kind == JOB_WRITE && nfs_fsync(nfs, file) != 0)
        job_fail("fsync", nfs_get_error(nfs));
    job_end(&job);
    for (uint32_t i = 0; i < job.depth; i++) {
        if (job.kind == JOB_READ)
            job_check(buffer[i], job.size);
        free(buffer[i]);
    }
    nfs_close(nfs, file);
    nfs_destroy_context(nfs);
    return 0;
}
