/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reports.c - objects that have something to report, oldest first, each once with all its kinds of reports. */
#include "loop/reports.h"

#include <stddef.h>

#include "loop/cancel.h"

int reports_init(struct reports *reports)
{
    int error = notifier_init(&reports->notifier);

    if (error)
        return error;
    pthread_mutex_init(&reports->lock, NULL);
    pthread_cond_init(&reports->acknowledged, NULL);
    reports->first = reports->last = NULL;
    return 0;
}

void reports_fini(struct reports *reports)
{
    pthread_cond_destroy(&reports->acknowledged);
    pthread_mutex_destroy(&reports->lock);
    notifier_fini(&reports->notifier);
}

static void reports_append(struct reports *reports, struct reporter *from)
{
    from->next = NULL;
    if (reports->last)
        reports->last->next = from;
    else
        reports->first = from;
    reports->last = from;
    notifier_raise(&reports->notifier);
}

void reports_add(struct reports *reports, struct reporter *from, unsigned kind)
{
    pthread_mutex_lock(&reports->lock);
    if (!from->pending)
        reports_append(reports, from);
    from->pending |= UINT32_C(1) << kind;
    pthread_mutex_unlock(&reports->lock);
}

/* Removes an object with nothing left to report. `before` is the one in front of it, or NULL. */
static void reports_remove(struct reports *reports, struct reporter *from, struct reporter *before)
{
    if (before)
        before->next = from->next;
    else
        reports->first = from->next;
    if (reports->last == from)
        reports->last = before;
    if (!reports->first)
        notifier_lower(&reports->notifier);
}

struct reporter *reports_take(struct reports *reports, unsigned *kind)
{
    struct reporter *from;

    pthread_mutex_lock(&reports->lock);
    from = reports->first;
    if (from) {
        *kind = (unsigned)__builtin_ctz(from->pending);
        from->pending &= from->pending - 1;
        from->taken++;
        if (!from->pending)
            reports_remove(reports, from, NULL);
    }
    pthread_mutex_unlock(&reports->lock);
    return from;
}

/* A child of fork() may acknowledge what its parent took, and what was forgotten since: that is not counted. */
void reports_acknowledge(struct reports *reports, struct reporter *from, uint32_t n)
{
    pthread_mutex_lock(&reports->lock);
    from->taken -= n < from->taken ? n : from->taken;
    if (!from->taken)
        pthread_cond_broadcast(&reports->acknowledged);
    pthread_mutex_unlock(&reports->lock);
}

static void reports_clear(struct reports *reports, struct reporter *from)
{
    struct reporter *before = NULL;

    if (!from->pending)
        return;
    for (struct reporter *at = reports->first; at != from; at = at->next)
        before = at;
    from->pending = 0;
    reports_remove(reports, from, before);
}

void reports_drop(struct reports *reports, struct reporter *from)
{
    pthread_mutex_lock(&reports->lock);
    reports_clear(reports, from);
    pthread_mutex_unlock(&reports->lock);
}

void reports_withdraw(struct reports *reports, struct reporter *from)
{
    cancel_hold(); /* pthread_cond_wait() is a cancellation point */
    pthread_mutex_lock(&reports->lock);
    reports_clear(reports, from);
    while (from->taken)
        pthread_cond_wait(&reports->acknowledged, &reports->lock);
    pthread_mutex_unlock(&reports->lock);
    cancel_release();
}

void reports_forget_taken(struct reporter *from)
{
    from->taken = 0;
}

void reports_leave(struct reports *reports)
{
    pthread_cond_init(&reports->acknowledged, NULL);
    notifier_leave(&reports->notifier);
}

int reports_renew(struct reports *reports)
{
    int error;

    pthread_mutex_lock(&reports->lock);
    error = notifier_renew(&reports->notifier);
    pthread_mutex_unlock(&reports->lock);
    return error;
}

void reports_forget_descriptors(struct reports *reports)
{
    pthread_mutex_lock(&reports->lock);
    notifier_forget_descriptors(&reports->notifier);
    pthread_mutex_unlock(&reports->lock);
}
