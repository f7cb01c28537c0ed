/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opened.c - lists of what is open, and the memory of an open file: calls for it may end later than the file itself. */
#ifdef RDDP_FUSE
#include <stdlib.h>

#include "nfs/mount/mount.h"

void opened_add(struct opened **list, struct opened *h, void *of)
{
    *h = (struct opened){.next = *list, .at = list, .of = of};
    if (h->next)
        h->next->at = &h->next;
    *list = h;
}

void opened_remove(struct opened *h)
{
    *h->at = h->next;
    if (h->next)
        h->next->at = h->at;
}

void handle_leave(struct file *f)
{
    if (!--f->users)
        free(f);
}
#endif
