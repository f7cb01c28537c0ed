/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sink.h - the end that gets the files: verifies each one and only then gives it its name. */
#ifndef TOOLS_XFER_SINK_H
#define TOOLS_XFER_SINK_H

#include "tools/xfer/file.h"
#include "tools/xfer/link.h"
#include "tools/xfer/path.h"
#include "tools/xfer/tally.h"

/* A file of which a part was found here: kept open and hashed until the source has compared. */
struct sink_offer {
    uint32_t id; /* 0: not in use */
    struct file_part part;
};

/* A directory that stays open for the next entry, which is likely to be in it too. */
struct sink_directory {
    int fd;                   /* -1 if none is */
    char path[XFER_PATH + 1]; /* from place.base on */
};

struct xfer_sink {
    struct xfer_link *link;
    struct xfer_tally *tally;
    struct path_place place;
    bool resume, checksum, dry; /* checksum: size and time alone do not make a file the same */
    bool list;                  /* there are no entries, only lines for tally->line() */
    bool skip_links;            /* those that lead out are no failure: they are left out */
    bool sync;                  /* fsync before a file gets its name */

    char path[XFER_PATH + XFER_NAME + 2]; /* of the entry at hand, from place.base on */
    char *name;                           /* its last name, in `path` */
    struct sink_directory parent, ahead;  /* of entries, and of offers, which come before their turn */

    struct sink_offer offers[XFER_OFFERS];
    struct sink_offer *hashing; /* answered when it is hashed */
    uint8_t buffer[PART_ROOM];  /* for that */
    uint32_t last_offer, last_id;

    struct file_in file; /* that is coming in; fd -1 if none */
    uint32_t file_id;    /* 0: between files */
    enum xfer_result file_result;
    char file_path[XFER_PATH + 1]; /* as the source calls it */
    bool ended;                    /* END came */
};

/* `place` becomes the sink's; its base may be -1 if there will only be a list. */
void sink_open(struct xfer_sink *sink, struct xfer_link *link, struct xfer_tally *tally,
               const struct path_place *place);
/* What has not all come stays as a temporary if it is large enough to be resumed. Once, after sink_open(). */
void sink_close(struct xfer_sink *sink);

/* Goes on with what takes longer. False if there is nothing of the kind, and a record may be taken. */
bool sink_step(struct xfer_sink *sink);
/* Takes a record from the source; before, xfer_link_can_put() said yes. */
void sink_take(struct xfer_sink *sink, const struct xfer_record *record);

#endif
