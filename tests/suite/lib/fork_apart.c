/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork_apart.c - fork() between the allocations of the other threads. */
#include "tests/suite/lib/fork_apart.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* not NULL in a thread that runs */
static atomic_uint running;
static atomic_uint forking; /* or about to */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void thread_ends(void *arg)
{
    (void)arg;
    running--;
}

static void make_key(void)
{
    if (pthread_key_create(&key, thread_ends))
        abort();
}

void fork_thread_runs(void)
{
    if (!FORK_NEEDS_CARE)
        return;
    pthread_once(&once, make_key);
    if (pthread_getspecific(key))
        return;
    pthread_setspecific(key, &key);
    running++;
}

/* A loop that has nothing to do yet sleeps here first. */
#pragma weak ppoll
int ppoll(struct pollfd *fd, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    static _Atomic(void *) real;
    int (*call)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

    if (!real)
        real = dlsym(RTLD_NEXT, "ppoll");
    *(void **)&call = real;
    fork_thread_runs();
    return call(fd, count, timeout, mask);
}

/* Whoever gives a mutex back usually has it again at once: others wait until the process has forked. */
void fork_not_now(void)
{
    if (!FORK_NEEDS_CARE)
        return;
    while (forking)
        sched_yield();
    pthread_mutex_lock(&lock);
}

void fork_again(void)
{
    if (FORK_NEEDS_CARE)
        pthread_mutex_unlock(&lock);
}

static unsigned threads(void)
{
    DIR *directory = opendir("/proc/self/task");
    const struct dirent *thread;
    unsigned count = 0;

    if (!directory)
        abort();
    while ((thread = readdir(directory)))
        count += thread->d_name[0] != '.';
    closedir(directory);
    return count;
}

pid_t fork_apart(unsigned seconds)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    pid_t parent = getpid(), child;

    fork_thread_runs();
    while (FORK_NEEDS_CARE && threads() != running)
        nanosleep(&a_moment, NULL);
    forking++;
    pthread_mutex_lock(&lock);
    child = fork();
    forking--;
    pthread_mutex_unlock(&lock);
    if (child)
        return child;
    running = FORK_NEEDS_CARE;
    alarm(seconds);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    return 0;
}
