/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* landing.h - a file whose octets come from a connection: those that were placed lie in it already. It gets its name
 * when all of it is there. */
#ifndef RDDP_HTTP_LANDING_H
#define RDDP_HTTP_LANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/xfer/path.h"

struct landing {
    int parent, fd; /* fd below 0: nothing is open */
    char name[XFER_NAME + 1], temp[XFER_NAME + 1];
    uint8_t *map;              /* NULL: the file cannot be mapped, or is not worth it */
    size_t mapped, reserved;   /* reserved: of the map, octets that have a place on the disk and may be written to */
    size_t ahead;              /* so many are reserved before the next that comes */
    uint64_t position, placed; /* octets so far; of them, those that lay there already */
};

/* Begins the file `name` in the directory `parent`, which becomes the landing's. `space`: map so many octets, and make
 * space for the first `ahead` of them, so that a placed octet can meet no full disk; 0: map nothing. Returns 0 or a
 * negative errno, and then nothing is open. */
int landing_open(struct landing *landing, int parent, const char *name, uint64_t space, uint64_t ahead);
/* Reserves more when half of what lies ahead was used. True: `reserved` has grown. */
bool landing_grow(struct landing *landing);
/* Takes the next octets; `placed`: they are in a buffer, which may be this file. 0 or a negative errno. */
int landing_take(struct landing *landing, const uint8_t *octets, size_t n, bool placed);
/* Gives the file its length and its name, and closes it. No peer may write to the map any longer. 0 or a negative
 * errno; the file is gone then. */
int landing_finish(struct landing *landing, bool sync);
/* Gives it up. Safe when nothing is open. */
void landing_drop(struct landing *landing);

#endif
