/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* source.h - the end that sends files: reads them into the ring, and learns from the sink how each one ended. */
#ifndef TOOLS_XFER_SOURCE_H
#define TOOLS_XFER_SOURCE_H

#include "tools/xfer/digest.h"
#include "tools/xfer/copy_link.h"
#include "tools/xfer/tally.h"
#include "tools/xfer/walk.h"

enum { SOURCE_AHEAD = 256 }; /* limit for entries that are known before their turn */

/* An entry to be sent. */
struct source_entry {
    struct walk_entry *walk;
    uint32_t id;
    bool offered;  /* the sink was asked whether it has the file or a part of it */
    bool hashed;   /* its answer may be a digest */
    bool answered; /* the sink has answered, with the fields below */
    bool same;     /* it has the file; if `have` is 0, by size and time */
    uint64_t have;
    uint8_t have_digest[XFER_DIGEST];
};

enum source_phase {
    SOURCE_NEXT,   /* between entries */
    SOURCE_PREFIX, /* reading again what the sink has, to compare */
    SOURCE_DATA,
};

struct xfer_source {
    struct xfer_link *link;
    struct xfer_tally *tally;
    struct walk walk, count;
    bool counting; /* until TOTAL is known and put */
    bool put_total;
    bool resume, checksum, dry, list;
    int top;
    bool walked;                       /* the walk is finished */
    bool ended;                        /* END was put */
    uint32_t last_id, put_id, done_id; /* entries found, completely put, and acknowledged by the sink */

    struct source_entry *ahead; /* a queue of SOURCE_AHEAD entries; its counters are not reduced modulo its size */
    struct walk_entry *walks;   /* the walk entries that `ahead` points to */
    unsigned head, asked, tail; /* entries before `asked` were offered, if necessary */
    unsigned offers;            /* those of them that are hashed */

    enum source_phase phase;   /* of the oldest entry, a file */
    uint64_t offset, data_end; /* there is no hole from `offset` up to `data_end` */
    bool refused;              /* the sink has given up the file */
    struct file_digest digest;
};

struct source_attr {
    int top;       /* a file or directory, open for reading; borrowed until source_close() */
    bool resume;   /* ask the sink what it has */
    bool checksum; /* compare octets, not only size and time */
    bool dry;      /* only report what would be copied */
    bool list;     /* put ENTRY records and nothing else */
    bool flat;     /* do not enter directories below the top */
    enum walk_links links;
    bool count;     /* count everything before the first entry is sent */
    bool put_total; /* and put the sum as a TOTAL record */
};

/* Returns 0 or an exit code. */
int source_open(struct xfer_source *source, struct xfer_link *link, struct xfer_tally *tally,
                const struct source_attr *attr);
void source_close(struct xfer_source *source); /* safe on zeros */

/* Takes a record from the sink, HAVE or DONE. Any other is a protocol error. */
void source_take(struct xfer_source *source, const struct xfer_record *record);
/* Does a little work. Returns false if there is nothing to do now. */
bool source_step(struct xfer_source *source);
/* Whether the sink has acknowledged all entries. */
bool source_over(const struct xfer_source *source);

#endif
