/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c - protection domains, memory regions and windows for the application. context->mrs_lock guards changes of
 * the table of keys; look-ups take no lock (core/epoch.h). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "endpoint/objects.h"
#include "drive/inherit.h"
#include "api/mapped.h"
#include "api/null_memory.h"
#include "api/on_demand.h"
#include "endpoint/reclaim.h"
#include "base/spin.h"
#include "loop/cancel.h"

enum {
    SPINS = 200,      /* attempts before sleeping: most readers have left by then */
    PAUSE_NS = 20000, /* then the pause between two attempts */
    ACCESS_ALL = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ |
                 RDDP_ACCESS_REMOTE_ATOMIC | RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE | RDDP_ACCESS_ZERO_BASED |
                 RDDP_ACCESS_MW_BIND | RDDP_ACCESS_ON_DEMAND,
    REREG_ALL = RDDP_REREG_MR_CHANGE_TRANSLATION | RDDP_REREG_MR_CHANGE_PD | RDDP_REREG_MR_CHANGE_ACCESS,
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
 * longer than a turn of one endpoint. The caller holds no lock, because a reader may be waiting for it. */
static void wait_for_lookups(struct rddp_context *context)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t epoch = epoch_advance(&context->mrs.epochs);

    cancel_hold(); /* nanosleep() is a cancellation point */
    for (unsigned i = 0; !epoch_is_over(&context->mrs.epochs, epoch); i++)
        if (i < SPINS)
            spin_pause();
        else
            nanosleep(&pause, NULL);
    cancel_release();
}

/* Waits until no endpoint sends from `mr` any more, whose readers have left: no more spans are lent. */
static void wait_for_spans(struct rddp_context *context, const struct mr *mr)
{
    for (uint32_t i = 0; i < context->loops && mr->sending; i++) {
        loop_lock(&context->loop[i]);
        reclaim_spans(&context->loop[i]);
        loop_unlock(&context->loop[i]);
    }
    assert(!mr->sending);
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
static int memory_insert(struct rddp_context *context, struct mr *mr, void **old)
{
    int error = memory_make_space(&context->mrs, old);
    uint32_t key;

    if (error)
        return error;
    do {
        key = memory_draw(context);
        if (!key && !context->randoms)
            return -ENOMEM;
    } while (!(mr->kind == MR_REGION ? mr_insert(&context->mrs, mr, key) : mr_insert_window(&context->mrs, mr, key)));
    mr->pd->users++;
    return 0;
}

/* Memory that a peer may write has to be writable here, and cannot be promised not to change. */
static bool rights_agree(unsigned access)
{
    bool is_written = access & (RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_ATOMIC);

    return !is_written || (access & RDDP_ACCESS_LOCAL_WRITE && !(access & RDDP_ACCESS_STABLE));
}

static bool is_sane(const void *addr, size_t length, unsigned access)
{
    unsigned of_memory = access & (RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE | RDDP_ACCESS_ON_DEMAND);

    if (access & ~(unsigned)ACCESS_ALL || !rights_agree(access) || of_memory & (of_memory - 1))
        return false;
    return length <= UINTPTR_MAX - (uintptr_t)addr && (addr || !length || access & RDDP_ACCESS_ON_DEMAND);
}

/* Makes a copy of `region` for the table. */
static int memory_copy(struct rddp_context *context, const struct mr *region, struct mr **mr)
{
    int error = context_enter(context);

    *mr = error ? NULL : malloc(sizeof(**mr));
    if (!*mr)
        return error ? error : -ENOMEM;
    **mr = *region;
    return 0;
}

/* Enters a copy of `region`, which is filled in except for its key. Returns 0 and the copy, or a negative errno:
 * nothing has changed. */
static int memory_enter(struct rddp_context *context, const struct mr *region, struct mr **mr)
{
    int error = memory_copy(context, region, mr);
    void *old = NULL;

    if (error)
        return error;
    pthread_mutex_lock(&context->mrs_lock);
    error = memory_insert(context, *mr, &old);
    pthread_mutex_unlock(&context->mrs_lock);
    if (old)
        wait_for_lookups(context);
    free(old);
    if (error)
        free(*mr);
    return error;
}

/* Waits until no thread uses a region that was removed, and frees it. */
static void memory_free(struct rddp_context *context, struct mr *mr)
{
    wait_for_lookups(context);
    wait_for_spans(context, mr);
    mr->pd->users--;
    free(mr);
}

/* Removes a region that mr_close() has closed, or a window that was claimed for good, and frees it. */
static void memory_leave(struct rddp_context *context, struct mr *mr)
{
    pthread_mutex_lock(&context->mrs_lock);
    mr_remove(&context->mrs, mr);
    pthread_mutex_unlock(&context->mrs_lock);
    memory_free(context, mr);
}

/* Replaces a closed region by a copy of `region`. Peers do not notice, but in what they may do: look-ups find one of
 * both. Who invalidates the key meanwhile may have found the old one, and then the new one is invalid, too. */
static int memory_replace(struct rddp_context *context, struct mr *before, const struct mr *region, struct mr **mr)
{
    int error = memory_copy(context, region, mr);

    if (error)
        return error;
    (*mr)->pd->users++;
    pthread_mutex_lock(&context->mrs_lock);
    mr_replace(&context->mrs, before, *mr);
    pthread_mutex_unlock(&context->mrs_lock);
    wait_for_lookups(context);
    if (!atomic_exchange(&before->valid, false))
        (*mr)->valid = false;
    mr_give_back(before);
    memory_free(context, before);
    mr_give_back(*mr);
    return 0;
}

/* The same under a new key. */
static int memory_renew(struct rddp_context *context, struct mr *before, const struct mr *region, struct mr **mr)
{
    int error = memory_enter(context, region, mr);

    if (!error)
        memory_leave(context, before);
    return error;
}

/* Makes the public object of a region. NULL: errno says why. */
static struct rddp_mr *memory_register(struct rddp_context *context, const struct mr *region)
{
    struct rddp_mr *mr = malloc(sizeof(*mr));
    int error;

    if (!mr)
        return NULL;
    mr->context = context;
    error = memory_enter(context, region, &mr->mr);
    if (!error)
        return mr;
    free(mr);
    errno = -error;
    return NULL;
}

/* Can requests use this memory? Returns 0, -EFAULT or -EOPNOTSUPP. */
static int memory_look(struct rddp_context *context, const void *addr, size_t length, unsigned access)
{
    if (!(access & RDDP_ACCESS_ON_DEMAND))
        return memory_allows(addr, length, access) ? 0 : -EFAULT;
    if (on_demand_works())
        return 0;
    context_log(context, RDDP_LOG_WARN, "no registration on demand: process_vm_writev() is forbidden or missing here");
    return -EOPNOTSUPP;
}

/* Returns 0 and the region, -EINVAL, -EFAULT or -EOPNOTSUPP. */
static int describe(struct rddp_pd *pd, void *addr, size_t length, uint64_t start, unsigned access, struct mr *region)
{
    if (!is_sane(addr, length, access) || length > UINT64_MAX - start)
        return -EINVAL;
    *region = (struct mr){.pd = &pd->pd, .base = addr, .start = start, .length = length, .access = access};
    return memory_look(pd->context, addr, length, access);
}

static uint64_t usual_start(const void *addr, unsigned access)
{
    return access & RDDP_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
}

static struct rddp_mr *memory_register_at(struct rddp_pd *pd, void *addr, size_t length, uint64_t start,
                                          unsigned access)
{
    struct mr region;
    int error = describe(pd, addr, length, start, access, &region);

    if (!error)
        return memory_register(pd->context, &region);
    errno = -error;
    return NULL;
}

struct rddp_mr *rddp_reg_mr(struct rddp_pd *pd, void *addr, size_t length, unsigned access)
{
    return memory_register_at(pd, addr, length, usual_start(addr, access), access);
}

struct rddp_mr *rddp_reg_mr_iova(struct rddp_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    if (!(access & RDDP_ACCESS_ZERO_BASED))
        return memory_register_at(pd, addr, length, iova, access);
    errno = EINVAL;
    return NULL;
}

struct rddp_mr *rddp_alloc_null_mr(struct rddp_pd *pd)
{
    struct mr region = {.pd = &pd->pd, .access = RDDP_ACCESS_LOCAL_WRITE};
    int error = null_memory(&region.base, &region.sink);

    if (!error)
        return memory_register(pd->context, &region);
    errno = -error;
    return NULL;
}

struct rddp_mr *rddp_reg_sub_mr(struct rddp_mr *parent, void *addr, size_t length, unsigned access)
{
    struct mr region;

    if (!parent->mr->sink && rights_agree(access) && mr_part(&region, parent->mr, addr, length, access))
        return memory_register(parent->context, &region);
    errno = EINVAL;
    return NULL;
}

/* Are all octets where they were? Then peers need no other key, unless theirs was invalidated. */
static bool keeps_key(const struct mr *is, const struct mr *region)
{
    return is->valid && region->base == is->base && region->length == is->length && region->start == is->start;
}

/* Returns 0 and the region as it is to be, or as describe(). */
static int describe_change(const struct rddp_mr *mr, unsigned changes, struct rddp_pd *pd, void *addr, size_t length,
                           unsigned access, struct mr *region)
{
    const struct mr *is = mr->mr;
    bool keeps_start;

    if (!changes || changes & ~(unsigned)REREG_ALL || is->parent || is->sink)
        return -EINVAL;
    if (changes & RDDP_REREG_MR_CHANGE_PD && pd->context != mr->context)
        return -EINVAL;
    if (!(changes & RDDP_REREG_MR_CHANGE_PD))
        pd = container_of(is->pd, struct rddp_pd, pd);
    if (!(changes & RDDP_REREG_MR_CHANGE_TRANSLATION)) {
        addr = is->base;
        length = is->length;
    }
    if (!(changes & RDDP_REREG_MR_CHANGE_ACCESS))
        access = is->access;
    keeps_start = !(changes & RDDP_REREG_MR_CHANGE_TRANSLATION || (access ^ is->access) & RDDP_ACCESS_ZERO_BASED);
    return describe(pd, addr, length, keeps_start ? is->start : usual_start(addr, access), access, region);
}

int rddp_rereg_mr(struct rddp_mr *mr, unsigned changes, struct rddp_pd *pd, void *addr, size_t length, unsigned access)
{
    struct mr region, *before = mr->mr, *after = NULL;
    int error = describe_change(mr, changes, pd, addr, length, access, &region);

    if (!error && !mr_close(before))
        error = -EBUSY;
    if (error)
        return error;
    error = keeps_key(before, &region) ? memory_replace(mr->context, before, &region, &after)
                                       : memory_renew(mr->context, before, &region, &after);
    if (error)
        mr_open(before);
    else
        mr->mr = after;
    return error;
}

int rddp_dereg_mr(struct rddp_mr *mr)
{
    struct rddp_context *context = mr->context;
    int error = context_enter(context);

    if (!error && !mr_close(mr->mr))
        error = -EBUSY;
    if (error)
        return error;
    memory_leave(context, mr->mr);
    free(mr);
    return 0;
}

uint32_t rddp_mr_key(const struct rddp_mr *mr)
{
    return mr->mr->key;
}

uint64_t rddp_mr_offset(const struct rddp_mr *mr, const void *local)
{
    return mr->mr->start + ((uintptr_t)local - (uintptr_t)mr->mr->base);
}

bool rddp_mr_is_valid(const struct rddp_mr *mr)
{
    return mr_is_valid(mr->mr);
}

struct rddp_mw *rddp_alloc_mw(struct rddp_pd *pd, enum rddp_mw_type type)
{
    bool is_known = type == RDDP_MW_TYPE_1 || type == RDDP_MW_TYPE_2;
    struct mr window = {.pd = &pd->pd, .kind = type == RDDP_MW_TYPE_1 ? MR_WINDOW : MR_WINDOW_OF_QP};
    struct rddp_mw *mw = is_known ? malloc(sizeof(*mw)) : NULL;
    int error = is_known ? -ENOMEM : -EINVAL;

    if (mw) {
        mw->context = pd->context;
        error = memory_enter(pd->context, &window, &mw->mr);
    }
    if (!error)
        return mw;
    free(mw);
    errno = -error;
    return NULL;
}

/* A request that binds the window just now has claimed it. */
static void claim_for_good(struct mr *window)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    cancel_hold();
    while (!mr_claim(window))
        nanosleep(&pause, NULL);
    cancel_release();
}

int rddp_dealloc_mw(struct rddp_mw *mw)
{
    struct rddp_context *context = mw->context;
    int error = context_enter(context);

    if (error)
        return error;
    claim_for_good(mw->mr);
    memory_leave(context, mw->mr);
    free(mw);
    return 0;
}

uint32_t rddp_mw_key(const struct rddp_mw *mw)
{
    return mw->mr->key;
}
