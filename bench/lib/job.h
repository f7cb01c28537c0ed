/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* job.h - what every NFS client of the benchmark does: its arguments, the octets of the file, and the figures. */
#ifndef RDDP_BENCH_JOB_H
#define RDDP_BENCH_JOB_H

#include <stdbool.h>
#include <stdint.h>

enum { JOB_DEPTH_MAX = 64, JOB_SIZE_MAX = 1 << 20 };

enum job_kind { JOB_READ, JOB_WRITE, JOB_GETATTR };

struct job {
    enum job_kind kind;
    const char *host, *export, *file;
    int port, mount_port;
    uint64_t total; /* octets, or calls of GETATTR */
    uint32_t size, depth;
    bool crc;
    double start_s, start_cpu_s;
};

/* NAME read|write|getattr HOST PORT MOUNT_PORT EXPORT FILE TOTAL SIZE DEPTH [nocrc]; ends the program if they are
 * wrong. */
void job_arguments(struct job *job, int argc, char **argv);

/* The octets of the file at `offset`: it is the same at every place of a size that divides the offset. */
void job_pattern(uint8_t *to, uint32_t length);
void job_check(const uint8_t *data, uint32_t length);

void job_begin(struct job *job);
/* Prints one line of JSON. */
void job_end(const struct job *job);
_Noreturn void job_fail(const char *what, const char *why);

#endif
