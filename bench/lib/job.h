/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* job.h - what each NFS client of the benchmark shares: arguments, the contents of the file, and figures. */
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
    uint64_t total; /* octets, or number of GETATTRs */
    uint32_t size, depth;
    bool crc;
    double start_s, start_cpu_s;
};

/* Parses NAME read|write|getattr HOST PORT MOUNT_PORT EXPORT FILE TOTAL SIZE DEPTH [nocrc]. Ends the program if they
 * are invalid. */
void job_arguments(struct job *job, int argc, char **argv);

/* The contents of the file: the same in each piece, since pieces begin at multiples of their length. */
void job_pattern(uint8_t *to, uint32_t length);
void job_check(const uint8_t *data, uint32_t length);

void job_begin(struct job *job);
/* Prints the figures as one line of JSON. */
void job_end(const struct job *job);
_Noreturn void job_fail(const char *what, const char *why);

#endif
