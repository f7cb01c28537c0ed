/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_memory.c - accounts for the memory of calls, with a limit for all and a share for each connection
 * (rpc/budget.h), so that a peer that does not take its replies delays no other. */
#include <stdlib.h>

#include "nfs/server/nfsd_in.h"

void memory_init(struct memory *memory, uint64_t max, uint64_t export_max)
{
    *memory = (struct memory){.last = &memory->waiting, .export_max = export_max};
    budget_init(&memory->budget, max);
}

void memory_fini(struct memory *memory)
{
    while (memory->buffers)
        free(memory->buffer[--memory->buffers]);
}

static void nfsd_memory_queue(struct memory *memory, struct owner *owner)
{
    owner->next = NULL;
    *memory->last = owner;
    memory->last = &owner->next;
}

static void nfsd_memory_unqueue(struct memory *memory, struct owner **at)
{
    struct owner *owner = *at;

    *at = owner->next;
    if (!*at)
        memory->last = at;
}

/* Whether the calls of the job's export leave it room; the first one is always admitted. */
static bool is_within_share(const struct memory *memory, const struct nfsd_job *job)
{
    const struct nfsd_export *e = job->export;

    return !e || !e->held || (e->held <= memory->export_max && job->charge <= memory->export_max - e->held);
}

static bool reserve(struct memory *memory, struct nfsd_job *job)
{
    if (!is_within_share(memory, job) || !budget_reserve(&memory->budget, job->charge, &job->owner->held))
        return false;
    if (job->export)
        job->export->held += job->charge;
    return true;
}

bool memory_admit(struct memory *memory, struct nfsd_job *job)
{
    struct owner *owner = job->owner;

    /* Calls of one connection are admitted in their order. */
    if (!owner->waiting && reserve(memory, job))
        return true;
    if (!owner->waiting) {
        owner->last = &owner->waiting;
        nfsd_memory_queue(memory, owner);
    }
    job->next = NULL;
    *owner->last = job;
    owner->last = &job->next;
    return false;
}

/* Tries the owners in turn; one whose call finds too little memory does not hold up the others. */
struct nfsd_job *memory_next(struct memory *memory)
{
    if (!memory->freed)
        return NULL;
    for (struct owner **at = &memory->waiting, *owner; (owner = *at); at = &owner->next) {
        struct nfsd_job *job = owner->waiting;

        if (!reserve(memory, job))
            continue;
        nfsd_memory_unqueue(memory, at);
        owner->waiting = job->next;
        if (owner->waiting)
            nfsd_memory_queue(memory, owner);
        job->next = NULL;
        return job;
    }
    memory->freed = false;
    return NULL;
}

void memory_refund(struct memory *memory, struct nfsd_job *job, size_t octets)
{
    job->charge -= octets;
    if (job->export)
        job->export->held -= octets;
    budget_return(&memory->budget, octets, &job->owner->held);
    memory->freed = true;
}

void memory_release(struct memory *memory, struct nfsd_job *job)
{
    memory_refund(memory, job, job->charge);
}

/* Puts the owner's waiting jobs in front of `list`. Their charge is set to 0, since it was never reserved. */
static struct nfsd_job *withdraw_at(struct memory *memory, struct owner **at, struct nfsd_job *list)
{
    struct owner *owner = *at;

    nfsd_memory_unqueue(memory, at);
    for (struct nfsd_job *job = owner->waiting, *next; job; job = next) {
        next = job->next;
        job->charge = 0;
        job->next = list;
        list = job;
    }
    owner->waiting = NULL;
    return list;
}

struct nfsd_job *memory_withdraw(struct memory *memory, struct owner *owner)
{
    struct owner **at = &memory->waiting;
    struct nfsd_job *list = NULL;

    memory->freed = true;
    while (*at)
        if (!owner || *at == owner)
            list = withdraw_at(memory, at, list);
        else
            at = &(*at)->next;
    return list;
}

bool memory_is_pressed(const struct memory *memory)
{
    for (const struct owner *owner = memory->waiting; owner; owner = owner->next)
        if (owner->held == 0 && is_within_share(memory, owner->waiting))
            return true;
    return false;
}

/* Buffers for large READs are kept and reused. */
static bool is_kept(size_t capacity)
{
    return capacity > NFSD_BUFFER_MIN && capacity <= NFSD_BUFFER;
}

uint8_t *memory_buffer(struct memory *memory, size_t capacity)
{
    if (is_kept(capacity) && memory->buffers)
        return memory->buffer[--memory->buffers];
    return is_kept(capacity) ? aligned_alloc(4096, NFSD_BUFFER) : malloc(capacity);
}

void memory_give_back(struct memory *memory, uint8_t *buffer, size_t capacity)
{
    if (is_kept(capacity) && memory->buffers < NFSD_BUFFERS)
        memory->buffer[memory->buffers++] = buffer;
    else
        free(buffer);
}
