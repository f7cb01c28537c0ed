/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_report.h - the output of a copy by `rddp nfs`: a line of progress, failures, and the final figures. */
#ifndef RDDP_NFS_COMMAND_NFS_REPORT_H
#define RDDP_NFS_COMMAND_NFS_REPORT_H

#include "nfs/command/nfs.h"

struct nfs_report {
    const struct nfs_options *options;
    const char *source, *destination;
    bool pull, terminal, drawn;
    uint64_t files, directories, links, failed, octets, resumed, restarts, verified;
    uint64_t start_ns, shown_ns, still_ns, shown_octets, shown_files; /* still_ns: when data last moved */
    double start_cpu_s, rate;
    char trouble[XFER_TEXT + 256]; /* the first failure, for --json */
    uint64_t placed;               /* octets placed in the buffers of READs, with --packet */
    bool unsummed;                 /* the server gave no digest to compare files with */
};

void nfs_report_start(struct nfs_report *report);
void nfs_report_progress(struct nfs_report *report);
/* Prints one line and returns `code`. */
int nfs_report_failure(struct nfs_report *report, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports that the first `octets` of a file were there already. */
void nfs_report_resumed(struct nfs_report *report, const char *name, uint64_t octets);
void nfs_report_end(struct nfs_report *report, int code);

#endif
