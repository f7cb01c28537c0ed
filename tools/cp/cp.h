/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cp.h - what the files of `rddp cp` share: the options, the report to the user, and the parsing of HOST:PATH. */
#ifndef TOOLS_CP_CP_H
#define TOOLS_CP_CP_H

#include "tools/xfer/copy.h"

struct cp_options {
    bool recursive, quiet, json, resume, sync, checksum, dry, list;
    uint64_t port;
    enum walk_links links;
    struct rddp_wire_attr wire;
};

enum { CP_ERRORS = 100 }; /* failures that --json lists at most */

/* What is reported during the copy and at its end. */
struct cp_report {
    const struct cp_options *options;
    struct xfer_copy *copy;
    struct rddp_qp_info connection; /* at the end of the connection */
    bool pull;
    bool terminal; /* stderr is a terminal: redraw one line; else print a line now and then */
    bool drawn;
    const char *source, *destination;              /* as the user wrote them */
    uint64_t start_ns, shown_ns, still_ns, end_ns; /* still_ns: when data last moved */
    double start_cpu_s, end_cpu_s;
    uint64_t shown_octets, shown_all;
    double rate;                   /* recent rate in octets per second */
    char trouble[XFER_TEXT + 256]; /* why the copy is incomplete */
    char failed[XFER_PATH + 1];    /* the path that failed last */
    unsigned errors;
    struct cp_error {
        char path[XFER_TEXT];
        enum xfer_result result;
    } error[CP_ERRORS];
};

void report_start(struct cp_report *report);
/* Shows the progress if that is due. */
void report_progress(struct cp_report *report);
/* Reports a failure of the copy as a whole in one line. Returns `code`. */
int report_failure(struct cp_report *report, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Prints the summary, or the JSON object. */
void report_end(struct cp_report *report, int code);

/* HOST:PATH or [V6]:PATH. A colon after a slash belongs to a name. */
struct cp_remote {
    char host[256];
    char path[XFER_PATH + 1]; /* normalized: no empty names, no ".", no slash at the end */
    bool into;                /* the path was written with a slash at its end */
    bool contents;            /* its last name was ".": copy the contents of the directory */
};

bool is_remote(const char *text);
/* Parses HOST:PATH. Returns EXIT_OK or another exit code. */
int remote_parse(struct cp_remote *remote, const char *text);
/* Copies the last name of a path, or "" if a copy cannot have it: ".", "..", "/". */
void last_name(char name[XFER_NAME + 1], const char *path);

/* --list: collects the lines and sorts them; a very long list in batches. */
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
