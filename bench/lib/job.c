/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* job.c - arguments, test pattern and figures of the NFS benchmark. */
#include "bench/lib/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const char *const kinds[] = {[JOB_READ] = "read", [JOB_WRITE] = "write", [JOB_GETATTR] = "getattr"};

void job_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static uint64_t number(const char *text, uint64_t max)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);

    if (!*text || *end || v > max)
        job_fail(text, "not a valid number");
    return v;
}

void job_arguments(struct job *job, int argc, char **argv)
{
    if (argc < 10)
        job_fail("usage", "read|write|getattr HOST PORT MOUNT_PORT EXPORT FILE TOTAL SIZE DEPTH [nocrc]");
    *job = (struct job){.host = argv[2], .export = argv[5], .file = argv[6], .crc = argc < 11};
    while (job->kind < JOB_GETATTR && strcmp(argv[1], kinds[job->kind]) != 0)
        job->kind++;
    job->port = (int)number(argv[3], 65535);
    job->mount_port = (int)number(argv[4], 65535);
    job->total = number(argv[7], UINT64_MAX);
    job->size = (uint32_t)number(argv[8], JOB_SIZE_MAX);
    job->depth = (uint32_t)number(argv[9], JOB_DEPTH_MAX);
    if (!job->size || !job->depth)
        job_fail("usage", "size and depth must be at least 1");
}

void job_pattern(uint8_t *to, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        to[i] = (uint8_t)(i * 31 + (i >> 8));
}

void job_check(const uint8_t *data, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        if (data[i] != (uint8_t)(i * 31 + (i >> 8)))
            job_fail("read", "wrong data");
}

static double clock_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void job_begin(struct job *job)
{
    job->start_s = clock_s();
    job->start_cpu_s = cpu_s();
}

void job_end(const struct job *job)
{
    printf("{\"kind\": \"%s\", \"total\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", kinds[job->kind],
           (unsigned long long)job->total, clock_s() - job->start_s, cpu_s() - job->start_cpu_s);
}
