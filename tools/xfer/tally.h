/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tally.h - what a copy has done so far, and who is told of what happens in it. */
#ifndef TOOLS_XFER_TALLY_H
#define TOOLS_XFER_TALLY_H

#include "tools/lib/tool.h"
#include "tools/xfer/xfer.h"

enum tally_event {
    TALLY_FAILED,  /* the sink could not: `result` says why */
    TALLY_UNREAD,  /* the source could not */
    TALLY_RESUMED, /* the first `octets` of the file were there and are right */
    TALLY_RESTART, /* they were there and are wrong */
    TALLY_WOULD,   /* a dry run: this file would be copied */
};

struct xfer_tally {
    uint64_t files, directories, links, failed;
    uint64_t unchanged;                              /* files that stayed as they were */
    uint64_t octets;                                 /* of files, that moved, or in a dry run would */
    uint64_t resumed, unchanged_octets, hole_octets; /* that did not have to */
    uint64_t left_out;                               /* links that lead out, as the user wanted */
    uint64_t total_files, total_octets;
    bool total_known;
    void (*tell)(void *user, enum tally_event event, const char *path, enum xfer_result result, uint64_t octets);
    void *user;
    void (*line)(void *user, const struct xfer_record *record); /* of a listing */
    void *line_user;
};

static inline void tally_tell(struct xfer_tally *tally, enum tally_event event, const char *path,
                              enum xfer_result result, uint64_t octets)
{
    if (tally->tell)
        tally->tell(tally->user, event, path, result, octets);
}

/* Counts an entry of a type as done, or as failed; XFER_TROUBLE: one that the source could not read. */
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
        tally_tell(tally, type == XFER_TROUBLE ? TALLY_UNREAD : TALLY_FAILED, path, result, 0);
}

static inline bool tally_has_rate(const struct xfer_tally *tally, double seconds)
{
    return tally->octets >= RATE_OCTETS && seconds >= 0.01;
}

#endif
