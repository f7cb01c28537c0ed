/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sink.h - the end that receives files: verifies each one before it gets its name. */
#ifndef TOOLS_XFER_SINK_H
#define TOOLS_XFER_SINK_H

#include "tools/xfer/file.h"
#include "tools/xfer/copy_link.h"
#include "tools/xfer/offer.h"
#include "tools/xfer/entry_order.h"
#include "tools/xfer/path.h"
#include "tools/xfer/tally.h"

/* A directory that stays open, since the next entry is likely to be in it. */
struct sink_directory {
    int fd;                   /* -1: none */
    char path[XFER_PATH + 1]; /* relative to place.base */
};

struct xfer_sink {
    struct xfer_link *link;
    struct xfer_tally *tally;
    struct path_place place;
    bool resume, checksum, dry; /* checksum: equal size and time do not make a file the same */
    bool list;                  /* only lines for tally->line() are received, no entries */
    bool skip_links;            /* skip symbolic links that lead out, instead of failing */
    bool sync;                  /* fsync a file before it gets its name */

    char path[XFER_PATH + XFER_NAME + 2]; /* of the current entry, relative to place.base */
    char *name;                           /* the last name in `path` */
    struct sink_directory parent, ahead;  /* for entries, and for offers, which come earlier */

    struct entry_order order;
    struct sink_offers offers;
    struct sink_offer *hashing;  /* the offer that is being hashed, to be answered then */
    uint8_t buffer[PART_BUFFER]; /* for hashing */
    uint32_t last_offer, last_id;

    struct file_in file; /* the file being received; fd -1: none */
    uint32_t file_id;    /* 0: no file is being received */
    enum xfer_result file_result;
    char file_path[XFER_PATH + 1]; /* as the source names it */
    bool ended;                    /* END was received */
};

/* Takes over `place`. Its base may be -1 if only a list is received. Set sink->order.asked, and the flags, afterwards.
 */
void sink_open(struct xfer_sink *sink, struct xfer_link *link, struct xfer_tally *tally,
               const struct path_place *place);
/* Call once after sink_open(). An incomplete file stays as a temporary if it is large enough to be resumed. */
void sink_close(struct xfer_sink *sink);

/* Continues work that takes longer. Returns false if there is none, and a record may be taken. */
bool sink_step(struct xfer_sink *sink);
/* Takes a record from the source. xfer_link_can_put() must have returned true before. */
void sink_take(struct xfer_sink *sink, const struct xfer_record *record);

#endif
