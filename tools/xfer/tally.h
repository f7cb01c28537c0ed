/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tally.h - counters of a copy, and callbacks for its events. */
#ifndef TOOLS_XFER_TALLY_H
#define TOOLS_XFER_TALLY_H

#include "tools/lib/tool.h"
#include "tools/xfer/xfer.h"

enum tally_event {
    TALLY_FAILED,  /* the sink failed; `result` says why */
    TALLY_UNREAD,  /* the source failed */
    TALLY_RESUMED, /* the first `octets` of the file were there and are correct */
    TALLY_RESTART, /* they were there and are wrong */
    TALLY_WOULD,   /* dry run: this file would be copied */
};

struct xfer_tally {
    uint64_t files, directories, links, failed;
    uint64_t unchanged;                              /* files that were the same already */
    uint64_t octets;                                 /* octets of files that were sent, or in a dry run would be */
    uint64_t resumed, unchanged_octets, hole_octets; /* octets that need not be sent */
    uint64_t left_out;                               /* symbolic links that lead out and were skipped */
    uint64_t total_files, total_octets;
    bool total_known;
    void (*report)(void *user, enum tally_event event, const char *path, enum xfer_result result, uint64_t octets);
    void *user;
    void (*line)(void *user, const struct xfer_record *record); /* a line of a list */
    void *line_user;
};

static inline void tally_report(struct xfer_tally *tally, enum tally_event event, const char *path,
                                enum xfer_result result, uint64_t octets)
{
    if (tally->report)
        tally->report(tally->user, event, path, result, octets);
}

/* Counts an entry of this type, or a failure; XFER_TROUBLE: the source could not read it. */
static inline void tally_entry(struct xfer_tally *tally, unsigned type, const char *path, enum xfer_result result)
{
    if (result)
        tally->failed++;
    else if (type == XFER_FILE)
        tally->files++;
    else if (type == XFER_SKIP)
        tally->unchanged++;
    else if (type == XFER_LINK)
        tally->links++;
    else if (type == XFER_DIRECTORY)
        tally->directories++;
    if (result)
        tally_report(tally, type == XFER_TROUBLE ? TALLY_UNREAD : TALLY_FAILED, path, result, 0);
}

static inline bool tally_has_rate(const struct xfer_tally *tally, double seconds)
{
    return tally->octets >= RATE_OCTETS && seconds >= 0.01;
}

#endif
