/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry_order.h - which entry may come next: no other than was asked for, and each in the directory that was announced.
 */
#ifndef TOOLS_XFER_ORDER_H
#define TOOLS_XFER_ORDER_H

#include "tools/xfer/xfer.h"

enum order_asked {
    ORDER_ANY,  /* the source chooses, as in a push */
    ORDER_FILE, /* one file */
    ORDER_TREE, /* one directory and what is below it */
};

struct entry_order {
    enum order_asked asked;
    bool over;                     /* everything that was asked for has come */
    unsigned depth;                /* directories that have not ended */
    char directory[XFER_PATH + 1]; /* the innermost of them */
};

/* Takes the next entry into account. Returns false if it may not come now. */
bool order_admits(struct entry_order *order, enum xfer_type type, const char *path);
/* Whether the source may end here. */
bool order_may_end(const struct entry_order *order);

#endif
