/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c - protection domains and memory regions for the application. context->mrs_lock guards changes of the table
 * of keys; look-ups take no lock (core/visit.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "endpoint/objects.h"
#include "drive/inherit.h"
#include "base/spin.h"
#include "loop/cancel.h"

enum {
    SPINS = 200,      /* attempts before sleeping: most visitors have left by then */
    PAUSE_NS = 20000, /* then the pause between two attempts */
    ACCESS_ALL = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ |
                 RDDP_ACCESS_REMOTE_ATOMIC | RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE | RDDP_ACCESS_ZERO_BASED
};

struct rddp_pd *rddp_alloc_pd(struct rddp_context *context)
{
    struct rddp_pd *pd = calloc(1, sizeof(*pd));

    if (!pd)
        return NULL;
    pd->context = context;
    context->objects++;
    return pd;
}

int rddp_dealloc_pd(struct rddp_pd *pd)
{
    if (pd->pd.users)
        return -EBUSY;
    pd->context->objects--;
    free(pd);
    return 0;
}

/* Returns 32 unguessable bits (RFC 5040 8.1.1), fetched from the kernel 64 words at a time; 0 if there are none. Under
 * mrs_lock. */
static uint32_t memory_draw(struct rddp_context *context)
{
    if (!context->randoms) {
        if (getrandom(context->random, sizeof(context->random), 0) != sizeof(context->random))
            return 0;
        context->randoms = sizeof(context->random) / sizeof(*context->random);
    }
    return context->random[--context->randoms];
}

/* Waits until every placement and emission that may have looked at the table before this call has ended. None takes
 * longer than a turn of one endpoint. The caller holds no lock, because a visitor may be waiting for it. */
static void wait_for_lookups(struct rddp_context *context)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t moment = visits_part(&context->mrs.visits);

    cancel_hold(); /* nanosleep() is a cancellation point */
    for (unsigned i = 0; !visits_are_over(&context->mrs.visits, moment); i++)
        if (i < SPINS)
            spin_pause();
        else
            nanosleep(&pause, NULL);
    cancel_release();
}

/* Copies what endpoints of this loop still send from `mr`, as TCP would have done. Takes the token, then each bell. */
static void take_over(struct progress *progress, const struct mr *mr)
{
    progress_take(progress);
    for (struct endpoint *endpoint = progress->endpoints; endpoint && mr->sending; endpoint = endpoint->next) {
        if (!endpoint->borrows)
            continue;
        endpoint_hold(endpoint);
        if (endpoint->life->out && out_uses(endpoint->life->out, mr))
            out_own(endpoint->life->out);
        endpoint_let_go(endpoint, ENDPOINT_POSTER);
    }
    progress_give(progress);
}

/* Makes room for one more region. Under mrs_lock. Look-ups may still use *old, which the caller frees. */
static int memory_make_space(struct mr_table *mrs, void **old)
{
    uint32_t slots = MR_SLOTS;
    void *buffer;

    if (mr_table_has_space(mrs))
        return 0;
    while (slots < 4 * (mrs->live + 1))
        slots *= 2;
    buffer = calloc(1, mr_slots_size(slots));
    if (!buffer)
        return -ENOMEM;
    *old = mr_table_move(mrs, buffer, slots);
    return 0;
}

/* Enters a region under a new key. Under mrs_lock. */
static int memory_insert(struct rddp_context *context, struct rddp_mr *mr, void **old)
{
    int error = memory_make_space(&context->mrs, old);
    uint32_t key;

    if (error)
        return error;
    do {
        key = memory_draw(context);
        if (!key && !context->randoms)
            return -ENOMEM;
    } while (!mr_insert(&context->mrs, &mr->mr, key));
    mr->mr.pd->users++;
    return 0;
}

static bool is_sane(const void *addr, size_t length, unsigned access)
{
    if (access & ~(unsigned)ACCESS_ALL)
        return false;
    if ((access & RDDP_ACCESS_STABLE) && (access & RDDP_ACCESS_VOLATILE))
        return false;
    if ((access & (RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_ATOMIC)) &&
        (!(access & RDDP_ACCESS_LOCAL_WRITE) || (access & RDDP_ACCESS_STABLE)))
        return false;
    return length <= UINTPTR_MAX - (uintptr_t)addr && (addr || !length);
}

/* Enters `mr`, which is filled in except for its key, and returns it. NULL: it was freed; errno says why. */
static struct rddp_mr *memory_enter(struct rddp_context *context, struct rddp_mr *mr)
{
    int error = context_enter(context);
    void *old = NULL;

    mr->context = context;
    if (!error) {
        pthread_mutex_lock(&context->mrs_lock);
        error = memory_insert(context, mr, &old);
        pthread_mutex_unlock(&context->mrs_lock);
    }
    if (old)
        wait_for_lookups(context);
    free(old);
    if (!error)
        return mr;
    free(mr);
    errno = -error;
    return NULL;
}

struct rddp_mr *rddp_reg_mr(struct rddp_pd *pd, void *addr, size_t length, unsigned access)
{
    struct rddp_mr *mr;

    if (!is_sane(addr, length, access)) {
        errno = EINVAL;
        return NULL;
    }
    if (!memory_allows(addr, length, access)) {
        errno = EFAULT;
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    mr->mr = (struct mr){.pd = &pd->pd, .base = addr, .length = length, .access = access};
    mr->mr.start = access & RDDP_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
    return memory_enter(pd->context, mr);
}

struct rddp_mr *rddp_reg_sub_mr(struct rddp_mr *parent, void *addr, size_t length, unsigned access)
{
    struct rddp_mr *mr = calloc(1, sizeof(*mr));

    if (!mr)
        return NULL;
    if (!mr_part(&mr->mr, &parent->mr, addr, length, access)) {
        free(mr);
        errno = EINVAL;
        return NULL;
    }
    return memory_enter(parent->context, mr);
}

int rddp_dereg_mr(struct rddp_mr *mr)
{
    struct rddp_context *context = mr->context;
    int error = context_enter(context);
    bool in_use;

    if (error)
        return error;
    pthread_mutex_lock(&context->mrs_lock);
    in_use = mr->mr.parts;
    if (!in_use)
        mr_remove(&context->mrs, &mr->mr);
    pthread_mutex_unlock(&context->mrs_lock);
    if (in_use)
        return -EBUSY;
    wait_for_lookups(context);
    for (uint32_t i = 0; i < context->loops && mr->mr.sending; i++)
        take_over(&context->progress[i], &mr->mr);
    mr->mr.pd->users--;
    free(mr);
    return 0;
}

uint32_t rddp_mr_key(const struct rddp_mr *mr)
{
    return mr->mr.key;
}

uint64_t rddp_mr_offset(const struct rddp_mr *mr, const void *local)
{
    return mr->mr.start + ((uintptr_t)local - (uintptr_t)mr->mr.base);
}

bool rddp_mr_is_valid(const struct rddp_mr *mr)
{
    return mr_is_valid(&mr->mr);
}
