/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* walk.h - walks a tree entry by entry; directories come before and after their contents. */
#ifndef TOOLS_XFER_WALK_H
#define TOOLS_XFER_WALK_H

#include <dirent.h>
#include <stdbool.h>

#include "tools/xfer/xfer.h"

/* How to treat a symbolic link that leads out of the tree. */
enum walk_links {
    LINKS_KEEP,   /* as any entry: the sink refuses it */
    LINKS_SKIP,   /* skip and count it */
    LINKS_FOLLOW, /* copy its target instead */
};

enum walk_kind {
    WALK_OVER,
    WALK_SKIPPED, /* internal: never returned */
    WALK_FILE,
    WALK_DIRECTORY,
    WALK_DIRECTORY_END,
    WALK_LINK,
    WALK_TROUBLE, /* cannot be copied; `result` says why */
};

struct walk_entry {
    enum walk_kind kind;
    enum xfer_result result;
    int fd; /* WALK_FILE: open for reading, to be closed by the caller; -1: not opened */
    uint32_t mode;
    uint64_t size, stored; /* octets of the file, and octets that it takes on the disk */
    int64_t seconds;
    uint32_t nanoseconds;
    char path[XFER_PATH + 1]; /* "" is the top */
    char target[XFER_PATH + 1];
};

struct walk {
    int top;            /* borrowed; -1 once it was returned */
    uint64_t open_from; /* smaller files are not opened */
    bool flat;          /* directories below the top are not entered and have no end */
    enum walk_links links;
    uint64_t skipped;
    unsigned depth; /* open directories */
    struct walk_level {
        DIR *dir;
        size_t length; /* of the path of the directory */
        bool unreadable;
        uint32_t mode, nanoseconds;
        int64_t seconds;
    } level[XFER_DEPTH];
    char path[XFER_PATH + 1];
};

enum { WALK_OPEN_NONE = -1 };

/* `top` is a file or directory open for reading, and is borrowed. Files of at least `open_from` octets are opened;
 * WALK_OPEN_NONE: only the top. Set walk->links afterwards if links are not to be kept. */
void walk_init(struct walk *walk, int top, int64_t open_from);
void walk_fini(struct walk *walk);
void walk_next(struct walk *walk, struct walk_entry *entry);
/* Opens a file below `top` that the walk did not open, and updates its entry. */
enum xfer_result walk_open(int top, struct walk_entry *entry);

#endif
