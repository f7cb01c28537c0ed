/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* landing.h - a file whose octets come from a connection: those that were placed lie in it already. It gets its name
 * when all of it is there and stored; until then it has none, where the file system can make such a file, so that
 * nothing of it is left behind however the process ends. */
#ifndef RDDP_HTTP_LANDING_H
#define RDDP_HTTP_LANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/xfer/path.h"

struct landing {
    int parent, fd;                                /* fd below 0: nothing is open */
    char name[XFER_NAME + 1], temp[XFER_NAME + 1]; /* temp: "" if the file has no name yet */
    uint8_t *map;                                  /* NULL: the file cannot be mapped, or is not worth it */
    size_t mapped, reserved;   /* reserved: of the map, octets that have a place on the disk and may be written to */
    size_t ahead;              /* octets to reserve in advance of those that are received */
    uint64_t position, placed; /* octets so far; of them, those that lay there already */
    uint64_t start;            /* where the octets that come begin: behind those of an earlier attempt */
    bool lands;                /* a stream has the map for a buffer, as far as it is reserved */
};

/* Begins the file `name` in the directory `parent`, which becomes the landing's. `space`: the
 * octets to map, with disk space for the first `ahead` of them, so that no placed octet meets a full disk; 0: map none.
 * Returns 0 or a negative errno, and then nothing is open. */
int landing_open(struct landing *landing, int parent, const char *name, uint64_t space, uint64_t ahead);
/* The same for a file of which landing_keep() has left the first part as `temp`: position and start say how much that
 * is. -ENOENT: there is no such part, or something has written to it since; then it is gone. */
int landing_resume(struct landing *landing, int parent, const char *name, const char *temp, uint64_t space);
/* The octets that come are those of the whole file: forgets what an earlier attempt has left. 0 or a negative errno. No
 * peer may write to the map any longer. */
int landing_restart(struct landing *landing);
/* Reserves more when half of what lies ahead was used. True: `reserved` has grown. */
bool landing_grow(struct landing *landing);
/* Do the next octets lie in their place in the file already? `placed`: they are in a buffer. */
bool landing_has(const struct landing *landing, const uint8_t *octets, size_t n, bool placed);
/* Takes the next octets; `placed`: they are in a buffer, which may be this file. 0 or a negative errno. */
int landing_take(struct landing *landing, const uint8_t *octets, size_t n, bool placed);
enum { LANDING_DIGEST = 16 };

enum {
    LANDING_SYNC = 1, /* fsync() */
    LANDING_NEW = 2,  /* only if no file has the name: else -EEXIST */
};

/* Gives the file its length and its name, and closes it. No peer may write to the map any longer. 0 or a negative
 * errno, such as one with which a file system says only now that the disk is full; the file is gone then. */
int landing_finish(struct landing *landing, unsigned flags);
/* Writes the canonical XXH3 with 128 bits of what the file has. 0 or a negative errno. No peer may write to the map any
 * longer. */
int landing_digest(const struct landing *landing, uint8_t value[LANDING_DIGEST]);
/* Closes the file and leaves what has come under the name `temp`. 0 or a negative errno, and then nothing is left. */
int landing_keep(struct landing *landing, const char *temp);
/* Gives it up. Safe when nothing is open. */
void landing_drop(struct landing *landing);

#endif
