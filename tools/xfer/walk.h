/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* walk.h - a tree, entry by entry, each directory before and after what is in it. */
#ifndef TOOLS_XFER_WALK_H
#define TOOLS_XFER_WALK_H

#include <dirent.h>
#include <stdbool.h>

#include "tools/xfer/xfer.h"

/* What becomes of a symbolic link that leads out of the tree. */
enum walk_links {
    LINKS_KEEP,   /* it is an entry like any other: the sink refuses it */
    LINKS_SKIP,   /* it is left out, and counted */
    LINKS_FOLLOW, /* what it leads to is copied in its place */
};

enum walk_kind {
    WALK_OVER,
    WALK_SKIPPED, /* never given out */
    WALK_FILE,
    WALK_DIRECTORY,
    WALK_DIRECTORY_END,
    WALK_LINK,
    WALK_TROUBLE, /* `result` says why it cannot be copied */
};

struct walk_entry {
    enum walk_kind kind;
    enum xfer_result result;
    int fd; /* of a WALK_FILE, open to read: the taker closes it. -1 if none, or not opened. */
    uint32_t mode;
    uint64_t size, stored; /* octets of it, and that it takes on the disk */
    int64_t seconds;
    uint32_t nanoseconds;
    char path[XFER_PATH + 1]; /* "" is the top */
    char target[XFER_PATH + 1];
};

struct walk {
    int top;            /* borrowed; -1 once it was given out */
    uint64_t open_from; /* files of fewer octets are not opened */
    bool flat;          /* directories below the top are not entered: they have no end */
    enum walk_links links;
    uint64_t skipped;
    unsigned depth; /* directories open */
    struct walk_level {
        DIR *dir;
        size_t length; /* of the path up to it */
        uint32_t mode, nanoseconds;
        int64_t seconds;
    } level[XFER_DEPTH];
    char path[XFER_PATH + 1];
};

enum { WALK_OPEN_NONE = -1 };

/* `top` is a file or directory open to read, and stays the caller's. Files of `open_from` octets and more are opened;
 * WALK_OPEN_NONE: none but the top. Links are kept unless walk->links is set behind. */
void walk_init(struct walk *walk, int top, int64_t open_from);
void walk_fini(struct walk *walk);
void walk_next(struct walk *walk, struct walk_entry *entry);
/* Opens a file that the walk did not, below `top`, and says how it is now. */
enum xfer_result walk_open(int top, struct walk_entry *entry);

#endif
