/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_search.c - calls whose objects must be searched for. They run in one thread of their export, one at a time, and
 * the connections take turns, so that each waits for at most one search of each other connection. */
#include "nfs/server/nfsd_in.h"

static void nfsd_search_run(struct work *work)
{
    job_run((struct nfsd_job *)work, true);
}

static void search_done(struct work *work);

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
            job_give(job, job->export->searches, nfsd_search_run, search_done);
            return;
        }
        last = !owner->searches;
        job->ops->drop(job);
        if (last)
            return; /* dropping its last job may have freed the owner */
    }
}

static void search_done(struct work *work)
{
    struct nfsd_job *job = (struct nfsd_job *)work;

    job->owner->is_searching = false;
    nfsd_search_begin(job->nfsd, job->owner);
    job_finish(job);
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
