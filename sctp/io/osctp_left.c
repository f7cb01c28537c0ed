/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_left.c - frees associations, and keeps those for a time whose owner has left them with a SHUTDOWN-ACK to
 * repeat. */
#include <stdlib.h>

#include "sctp/io/osctp_inner.h"

void osctp_assoc_unlink(struct osctp_assoc *s)
{
    struct osctp_port *port = s->port;
    struct osctp_assoc **at;

    if (s->ready) {
        for (at = &port->ready; *at != s;)
            at = &(*at)->next_ready;
        *at = s->next_ready;
    }
    if (s->touched) {
        for (at = &port->touched; *at != s;)
            at = &(*at)->next_touched;
        *at = s->next_touched;
    }
    s->ready = s->touched = false;
}

void osctp_assoc_forget_news(struct osctp_assoc *s)
{
    osctp_inbox_fini(&s->inbox);
    s->inbox = (struct osctp_inbox){0};
    s->kept = 0;
    osctp_assoc_drop_held(s);
}

void osctp_assoc_discard(struct osctp_assoc *s)
{
    osctp_assoc_unlink(s);
    osctp_table_remove(s);
    osctp_free(&s->engine);
    osctp_assoc_forget_news(s);
    free(s->sent);
    free(s);
}

void osctp_queue_push(struct osctp_queue *queue, struct osctp_assoc *s)
{
    s->next = NULL;
    if (queue->count++)
        queue->last->next = s;
    else
        queue->first = s;
    queue->last = s;
}

struct osctp_assoc *osctp_queue_pop(struct osctp_queue *queue)
{
    struct osctp_assoc *s = queue->first;

    queue->first = s->next;
    queue->count--;
    return s;
}

void osctp_port_forget_left(struct osctp_port *port, uint32_t n)
{
    while (port->left.count > n)
        osctp_assoc_discard(osctp_queue_pop(&port->left));
}

void osctp_assoc_reap(struct osctp_assoc *s)
{
    struct osctp_queue *queue = &s->port->left;
    struct osctp_assoc **at = &queue->first, *before = NULL;

    for (; *at != s; at = &before->next)
        before = *at;
    *at = s->next;
    if (queue->last == s)
        queue->last = before;
    queue->count--;
    osctp_assoc_discard(s);
}
