/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* source.h - the end that has the files: reads them into the ring, and learns from the sink how each one ended. */
#ifndef TOOLS_XFER_SOURCE_H
#define TOOLS_XFER_SOURCE_H

#include <xxhash.h>

#include "tools/xfer/link.h"
#include "tools/xfer/tally.h"
#include "tools/xfer/walk.h"

/* An entry that is on its way out. */
struct source_entry {
    struct walk_entry walk;
    uint32_t id;
    bool offered;  /* the sink was asked whether a part of the file is there */
    bool answered; /* and this is what it said: */
    uint64_t have;
    uint8_t have_digest[XFER_DIGEST];
};

enum source_phase {
    SOURCE_NEXT,   /* between entries */
    SOURCE_PREFIX, /* reads again what the sink has, to compare */
    SOURCE_DATA,
};

struct xfer_source {
    struct xfer_link *link;
    struct xfer_tally *tally;
    struct walk walk, count;
    bool counting; /* until TOTAL is known and put */
    bool tell_total;
    bool resume;
    bool walked;                       /* the walk is over */
    bool ended;                        /* END is put */
    uint32_t last_id, put_id, done_id; /* of the entries: met, wholly put, and ended by the sink */

    struct source_entry *ahead; /* a queue of XFER_OFFERS; counters run free */
    unsigned head, tail;

    enum source_phase phase; /* of the oldest entry, a file */
    uint64_t offset;
    bool refused; /* the sink has given it up */
    XXH3_state_t *digest;
};

struct source_attr {
    int top; /* file or directory, open to read; borrowed until source_close() */
    bool resume;
    enum walk_links links;
    bool count;      /* count everything before the first entry leaves */
    bool tell_total; /* and put it as a TOTAL record */
};

/* 0 or an exit code. */
int source_open(struct xfer_source *source, struct xfer_link *link, struct xfer_tally *tally,
                const struct source_attr *attr);
void source_close(struct xfer_source *source); /* safe on zeros */

/* Takes a record from the sink: HAVE or DONE. Any other blames the peer. */
void source_take(struct xfer_source *source, const struct xfer_record *record);
/* Does a little. False if there is nothing to do now. */
bool source_step(struct xfer_source *source);
/* Has the sink told of every entry? */
bool source_over(const struct xfer_source *source);

#endif
