/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* view.c - mapped files: a table of the mappings, and the SIGBUS handler that looks them up. */
#include "nfs/server/view.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nfs/server/file_system.h"

/* A mapping. Its users own the slot. The signal handler reads it without a lock: `start` is set first and cleared last,
 * so an `end` that is read between two equal values of `start` belongs to it. */
struct view {
    _Atomic uintptr_t start, end; /* 0: free */
    _Atomic unsigned users;
    atomic_bool faulted;
    atomic_bool may_see; /* the kernel tells this process which pages are in memory */
};

static struct view table[VIEWS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the allocation of slots, and `span` */
static uint64_t span;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction former;
static bool handled;
static size_t page;
static uint64_t span_max;

/* --- pages that have gone --------------------------------------------------------------------------------------- */

static struct view *view_of(uintptr_t at)
{
    for (unsigned i = 0; i < VIEWS_MAX; i++) {
        uintptr_t start = table[i].start, end = table[i].end;

        if (start && at >= start && at < end && table[i].start == start)
            return &table[i];
    }
    return NULL;
}

/* Maps a page of zeros where the fault happened, so that the thread continues there. The view is in use, since the
 * thread was reading it. */
static bool mend(const siginfo_t *info)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    struct view *view = info->si_code == BUS_ADRERR ? view_of(at) : NULL;

    if (!view)
        return false;
    view->faulted = true;
    /* cppcheck-suppress leakReturnValNotUsed ; it replaces the page */
    return mmap((void *)(at & ~(uintptr_t)(page - 1)), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
    int error = errno;

    if (!mend(info)) {
        if (former.sa_flags & SA_SIGINFO) {
            former.sa_sigaction(signal, info, context);
        } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
            former.sa_handler(signal);
        } else if (former.sa_handler == SIG_DFL || info->si_code > 0) {
            /* Restore the previous action: the fault is raised again when this handler returns. */
            sigaction(signal, &former, NULL);
            raise(signal);
        }
    }
    errno = error;
}

static void view_prepare(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct rlimit limit;
    long pages = sysconf(_SC_PHYS_PAGES);

    page = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    handled = sigaction(SIGBUS, NULL, &former) == 0 && sigaction(SIGBUS, &action, NULL) == 0;
    /* No views where the address space is limited. Views may map twice the memory of the machine: the page cache is
     * smaller than that, and the page tables, 1/512 of it, live as long as the view. */
    if (sizeof(void *) >= 8 && pages > 0 && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
        span_max = 2 * (uint64_t)pages * page;
}

uint64_t view_span_max(void)
{
    pthread_once(&once, view_prepare);
    return span_max;
}

/* --- views ------------------------------------------------------------------------------------------------------ */

static struct view *take_slot(uint64_t length)
{
    struct view *view = NULL;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; !view && i < VIEWS_MAX && length <= span_max - span; i++)
        if (table[i].users == 0)
            view = &table[i];
    if (view) {
        view->users = 1;
        span += length;
    }
    pthread_mutex_unlock(&lock);
    return view;
}

static void give_slot(struct view *view, uint64_t length)
{
    pthread_mutex_lock(&lock);
    view->users = 0;
    span -= length;
    pthread_mutex_unlock(&lock);
}

struct view *view_open(int fd, uint64_t size)
{
    struct view *view;
    uint64_t length;
    void *start;

    pthread_once(&once, view_prepare);
    if (!handled || size > span_max || !fs_is_local(fd))
        return NULL;
    /* The mapping ends with at least one page that is beyond the end of the file. */
    length = ((size + page) / VIEW_ROUND + 1) * VIEW_ROUND;
    view = take_slot(length);
    if (!view)
        return NULL;
    start = mmap(NULL, length, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (start == MAP_FAILED) {
        give_slot(view, length);
        return NULL;
    }
    view->faulted = false;
    view->may_see = false;
    view->start = (uintptr_t)start;
    view->end = (uintptr_t)start + length;
    return view;
}

struct view *view_get(struct view *view)
{
    view->users++;
    return view;
}

void view_put(struct view *view)
{
    uintptr_t start;
    size_t length;
    unsigned users;

    if (!view)
        return;
    users = view->users;
    while (users > 1 && !atomic_compare_exchange_weak(&view->users, &users, users - 1))
        ;
    assert(users);
    if (users > 1)
        return;
    /* The last user: no other thread can find the view, and the slot stays taken until it is given back. */
    start = view->start;
    length = view->end - start;
    view->end = 0;
    view->start = 0;
    munmap((void *)start, length);
    give_slot(view, length);
}

bool view_is_good(const struct view *view, uint64_t size)
{
    uint64_t length = view->end - view->start;

    return !view->faulted && length >= page && size <= length - page;
}

/* mincore() reports all pages as resident to callers who may not know. The last page, beyond the file, is never
 * resident, so it tells the two cases apart. */
static bool sees_residency(struct view *view)
{
    unsigned char there;

    if (!view->may_see)
        view->may_see = mincore((void *)(view->end - page), page, &there) == 0 && !(there & 1);
    return view->may_see;
}

bool view_is_resident(struct view *view, uint64_t offset, size_t n)
{
    unsigned char there[512];
    size_t at = (size_t)offset & ~(page - 1), end = (size_t)offset + n;

    assert(offset <= view->end - view->start && n <= view->end - view->start - offset);
    for (; at < end; at += sizeof(there) * page) {
        size_t left = (end - at + page - 1) / page, pages = left < sizeof(there) ? left : sizeof(there);

        if (mincore((void *)(view->start + at), pages * page, there))
            return false;
        for (size_t i = 0; i < pages; i++)
            if (!(there[i] & 1))
                return false;
    }
    return sees_residency(view);
}

const uint8_t *view_at(const struct view *view, uint64_t offset)
{
    return (const uint8_t *)(view->start + (uintptr_t)offset);
}
