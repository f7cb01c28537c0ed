/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cp.h - what the files of `rddp cp` share: the options, and who tells the user what happens. */
#ifndef TOOLS_CP_CP_H
#define TOOLS_CP_CP_H

#include "tools/xfer/copy.h"

struct cp_options {
    bool recursive, quiet, json, resume, sync, checksum, dry, list;
    uint64_t port;
    enum walk_links links;
    struct rddp_wire_attr wire;
};

enum { CP_ERRORS = 100 }; /* failures that --json lists */

/* What is told while it happens, and at the end. */
struct cp_report {
    const struct cp_options *options;
    struct xfer_copy *copy;
    struct rddp_qp_info connection; /* as it was at the end */
    bool pull;
    bool terminal; /* one line that is written again and again; else now and then a line */
    bool drawn;
    const char *source, *destination;              /* as the user wrote them */
    uint64_t start_ns, shown_ns, still_ns, end_ns; /* still: when last something came or went */
    double start_cpu_s, end_cpu_s;
    uint64_t shown_octets, shown_all;
    double rate;                   /* of late, octets a second */
    char trouble[XFER_TEXT + 256]; /* why the copy did not come to its end */
    char failed[XFER_PATH + 1];    /* the last that did */
    unsigned errors;
    struct cp_error {
        char path[XFER_TEXT];
        enum xfer_result result;
    } error[CP_ERRORS];
};

void report_start(struct cp_report *report);
/* Shows how far it is if that is due. */
void report_progress(struct cp_report *report);
/* A failure that is not one file's: one line. Returns `code`. */
int report_failure(struct cp_report *report, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The summary, or the JSON object. */
void report_end(struct cp_report *report, int code);

/* HOST:PATH, [V6]:PATH; a colon behind a slash is part of a name. */
struct cp_remote {
    char host[256];
    char path[XFER_PATH + 1]; /* normal: no empty name and no "." in it, no slash at its end */
    bool into;                /* it was written with a slash at its end */
    bool contents;            /* its last name was ".": what is in it is meant */
};

bool is_remote(const char *text);
/* EXIT_OK or an exit code. */
int remote_parse(struct cp_remote *remote, const char *text);
/* The last name of a path, "" if that is none to give to a copy: ".", "..", "/". */
void last_name(char name[XFER_NAME + 1], const char *path);

/* --list: lines are gathered and sorted; very many in batches. */
struct cp_list {
    const struct cp_options *options;
    const struct cp_remote *remote;
    struct cp_line **line;
    size_t count, capacity, octets;
    struct json json;
};

void list_start(struct cp_list *list, struct xfer_tally *tally);
void list_end(struct cp_list *list, int code);

#endif
