/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_memory.c - what calls hold, against one limit for all and a share for each connection: a peer that does not take
 * its replies holds back nobody but itself. One call is always admitted, however large, and so somebody gets on. */
#include <stdlib.h>

#include "nfs/server/nfsd_in.h"

void memory_init(struct memory *memory, uint64_t max)
{
    *memory = (struct memory){.max = max, .last = &memory->waiting};
}

void memory_fini(struct memory *memory)
{
    while (memory->buffers)
        free(memory->buffer[--memory->buffers]);
}

static bool fits(uint64_t held, size_t charge, uint64_t max)
{
    return held == 0 || (held <= max && charge <= max - held);
}

static bool take(struct memory *memory, struct job *job)
{
    if (!fits(memory->held, job->charge, memory->max) ||
        !fits(job->owner->held, job->charge, memory->max / NFSD_SHARES))
        return false;
    memory->held += job->charge;
    job->owner->held += job->charge;
    return true;
}

bool memory_admit(struct memory *memory, struct job *job)
{
    /* Nobody overtakes a call of the same connection, or one that waits for the same memory. */
    if (job->owner->waiting == 0 && !memory->starved && take(memory, job))
        return true;
    memory->starved = memory->starved || !fits(memory->held, job->charge, memory->max);
    job->owner->waiting++;
    job->next = NULL;
    *memory->last = job;
    memory->last = &job->next;
    return false;
}

static void unlink_at(struct memory *memory, struct job **at)
{
    struct job *job = *at;

    *at = job->next;
    if (memory->last == &job->next)
        memory->last = at;
    job->next = NULL;
    job->owner->waiting--;
}

/* In turn; but who has his share lets the others pass. */
struct job *memory_next(struct memory *memory)
{
    if (!memory->freed)
        return NULL;
    for (struct job **at = &memory->waiting; *at; at = &(*at)->next) {
        struct job *job = *at;

        if (take(memory, job)) {
            unlink_at(memory, at);
            return job;
        }
        memory->starved = !fits(memory->held, job->charge, memory->max);
        if (memory->starved)
            break;
    }
    if (!memory->waiting)
        memory->starved = false;
    memory->freed = false;
    return NULL;
}

void memory_refund(struct memory *memory, struct job *job, size_t octets)
{
    job->charge -= octets;
    memory->held -= octets;
    job->owner->held -= octets;
    memory->freed = true;
}

void memory_release(struct memory *memory, struct job *job)
{
    memory_refund(memory, job, job->charge);
}

struct job *memory_withdraw(struct memory *memory, const struct owner *owner)
{
    struct job *list = NULL;

    memory->freed = true;
    for (struct job **at = &memory->waiting; *at;) {
        struct job *job = *at;

        if (owner && job->owner != owner) {
            at = &job->next;
            continue;
        }
        unlink_at(memory, at);
        job->charge = 0; /* it was never given */
        job->next = list;
        list = job;
    }
    return list;
}

/* Room for a large READ comes from the one before. */
static bool is_kept(size_t room)
{
    return room > NFSD_BUFFER_MIN && room <= NFSD_BUFFER;
}

uint8_t *memory_buffer(struct memory *memory, size_t room)
{
    if (is_kept(room) && memory->buffers)
        return memory->buffer[--memory->buffers];
    return is_kept(room) ? aligned_alloc(4096, NFSD_BUFFER) : malloc(room);
}

void memory_give_back(struct memory *memory, uint8_t *buffer, size_t room)
{
    if (is_kept(room) && memory->buffers < NFSD_BUFFERS)
        memory->buffer[memory->buffers++] = buffer;
    else
        free(buffer);
}
