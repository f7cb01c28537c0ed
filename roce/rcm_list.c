/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_list.c - doubly linked rings. */
#include <stddef.h>

#include "roce/rcm_inner.h"

void rcm_list_init(struct rcm_link *head)
{
    head->next = head->before = head;
}

bool rcm_list_is_empty(const struct rcm_link *head)
{
    return head->next == head;
}

void rcm_list_add(struct rcm_link *head, struct rcm_link *link)
{
    if (link->next)
        return;
    link->next = head;
    link->before = head->before;
    link->before->next = head->before = link;
}

void rcm_list_remove(struct rcm_link *link)
{
    if (!link->next)
        return;
    link->next->before = link->before;
    link->before->next = link->next;
    link->next = link->before = NULL;
}
