/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* process.c - the one rddp context of a process, which all verbs contexts are views of.
 *
 * One, since applications mix objects of the context that an rdma_cm_id shows with those of a context that they opened
 * themselves, and rddp's objects of two contexts do not mix. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/gid.h"
#include "verbs/verbs_object.h"

pthread_mutex_t verbs_lock = PTHREAD_MUTEX_INITIALIZER;
void (*verbs_qp_is_going)(struct verbs_qp *qp);

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next two */
static pid_t process_user;                                       /* that asked for the context last */
static struct rddp_context *process_context;

static int holder_cancels; /* the state of cancellation that the holder of verbs_lock had before */

void verbs_enter(void)
{
    int state = verbs_take(&verbs_lock);

    holder_cancels = state;
}

void verbs_leave(void)
{
    verbs_give_back(&verbs_lock, holder_cancels);
}

void verbs_wait(pthread_cond_t *cond)
{
    int state = holder_cancels;

    pthread_cond_wait(cond, &verbs_lock);
    holder_cancels = state;
}

/* A child must not find a lock held by a thread that it has not. verbs_lock is the outer one. */
static void process_hold(void)
{
    pthread_mutex_lock(&verbs_lock);
    pthread_mutex_lock(&process_lock);
    gid_hold();
}

static void process_release(void)
{
    gid_release();
    pthread_mutex_unlock(&process_lock);
    pthread_mutex_unlock(&verbs_lock);
}

/* RDDP_SPIN_US: how long the thread stays awake after an arrival. Only the user knows whether a processor is free for
 * it: where programs that wait at their memory use all of them, it delays their answers. */
static uint32_t spin_us(void)
{
    enum { SPIN_MAX_US = 1000000 };
    const char *asked = getenv("RDDP_SPIN_US");
    char *end = NULL;
    long us = asked ? strtol(asked, &end, 10) : 0;

    if (us < 0 || (end && *end))
        return 0;
    return us > SPIN_MAX_US ? SPIN_MAX_US : (uint32_t)us;
}

/* The handlers are set after rddp's, and so run before them: a thread that holds verbs_lock may need rddp's locks. */
static struct rddp_context *process_open(void)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;

    rddp_context_attr_init(&attr);
    attr.spin_us = spin_us();
    context = rddp_open(&attr);
    if (context && pthread_atfork(process_hold, process_release, process_release)) {
        rddp_close(context);
        errno = ENOMEM;
        return NULL;
    }
    return context;
}

struct rddp_context *verbs_process(void)
{
    int state = verbs_take(&process_lock);
    struct rddp_context *context;

    if (!process_context)
        process_context = process_open();
    process_user = getpid(); /* a child that makes objects may connect, too */
    context = process_context;
    verbs_give_back(&process_lock, state);
    return context;
}

struct rddp_context *process_context_here(void)
{
    int state = verbs_take(&process_lock);
    struct rddp_context *context = process_user == getpid() ? process_context : NULL;

    verbs_give_back(&process_lock, state);
    return context;
}
