/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* source.h - the end that has the files: reads them into the ring, and learns from the sink how each one ended. */
#ifndef TOOLS_XFER_SOURCE_H
#define TOOLS_XFER_SOURCE_H

#include <xxhash.h>

#include "tools/xfer/link.h"
#include "tools/xfer/tally.h"
#include "tools/xfer/walk.h"

enum { SOURCE_AHEAD = 256 }; /* entries that are known before their turn */

/* An entry that is on its way out. */
struct source_entry {
    struct walk_entry *walk;
    uint32_t id;
    bool offered;  /* the sink was asked whether the file or a part of it is there */
    bool hashed;   /* and its answer may be a digest */
    bool answered; /* and this is what it said: */
    bool same;     /* it is there; if `have` is 0, size and time tell */
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
    bool resume, checksum, dry, list;
    int top;
    bool walked;                       /* the walk is over */
    bool ended;                        /* END is put */
    uint32_t last_id, put_id, done_id; /* of the entries: met, wholly put, and ended by the sink */

    struct source_entry *ahead; /* a queue of SOURCE_AHEAD; counters run free */
    struct walk_entry *walks;   /* what they point at */
    unsigned head, asked, tail; /* those before `asked` were offered, if there was a need */
    unsigned offers;            /* of them, that are hashed */

    enum source_phase phase;   /* of the oldest entry, a file */
    uint64_t offset, data_end; /* there is no hole from `offset` up to `data_end` */
    bool refused;              /* the sink has given it up */
    XXH3_state_t *digest;
};

struct source_attr {
    int top;       /* file or directory, open to read; borrowed until source_close() */
    bool resume;   /* ask the sink what it has */
    bool checksum; /* ... and believe octets alone */
    bool dry;      /* only tell what would be copied */
    bool list;     /* put ENTRY records and nothing else */
    bool flat;     /* do not go into directories below the top */
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
