/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_search.c - calls whose objects must be searched for. They run in one thread, one at a time, and the connections
 * take turns, so that each waits for at most one search of each other connection. */
#include "nfs/server/nfsd_in.h"

static void nfsd_search_run(struct work *work)
{
    job_run((struct nfsd_job *)work, true);
}

/* Begins the next search of this connection. Jobs whose peer has gone are dropped. */
static void nfsd_search_begin(struct nfsd *d, struct owner *owner)
{
    bool last;

    while (owner->searches) {
        struct nfsd_job *job = owner->searches;

        owner->searches = job->next;
        job->next = NULL;
        if (!d->stopping && !job->ops->is_over(job)) {
            owner->is_searching = true;
            d->in_work++;
            job->work.run = nfsd_search_run;
            workers_give(d->searcher, &job->work);
            return;
        }
        last = !owner->searches;
        job->ops->drop(job);
        if (last)
            return; /* dropping its last job may have freed the owner */
    }
}

void nfsd_search(struct nfsd *d, struct nfsd_job *job)
{
    struct owner *owner = job->owner;

    job->next = NULL;
    if (!owner->searches)
        owner->last_search = &owner->searches;
    *owner->last_search = job;
    owner->last_search = &job->next;
    if (!owner->is_searching)
        nfsd_search_begin(d, owner);
}

void nfsd_search_done(struct nfsd *d)
{
    for (struct work *work = workers_take(d->searcher), *next; work; work = next) {
        struct nfsd_job *job = (struct nfsd_job *)work;

        next = work->next;
        d->in_work--;
        job->owner->is_searching = false;
        nfsd_search_begin(d, job->owner);
        job_finish(job);
    }
}
