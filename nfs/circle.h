/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* circle.h - Brent's cycle detection for the cookies of a directory: notices a list of names that goes round in a
 * circle, with one cookie in memory. */
#ifndef RDDP_NFS_CIRCLE_H
#define RDDP_NFS_CIRCLE_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros at the beginning of a list. */
struct circle {
    uint64_t entries; /* so far */
    uint64_t mark;    /* a cookie, replaced each time the number of entries has doubled */
};

/* Takes the cookie of the next entry. Returns whether the list goes round in a circle: the mark is seen again, or 0,
 * which is the cookie of the beginning, so that no entry has it. */
static inline bool circle_closes(struct circle *c, uint64_t cookie)
{
    if (cookie == 0 || (c->entries && cookie == c->mark))
        return true;
    c->entries++;
    if ((c->entries & (c->entries - 1)) == 0)
        c->mark = cookie;
    return false;
}

#endif
