/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork_apart.h - fork() between the allocations of the other threads, where the allocator cannot wait for them itself.
 *
 * glibc's malloc() holds its own locks while a process forks. AddressSanitizer's, as gcc 12 brings it, does not: if
 * another thread is inside, the child finds a lock whose owner does not exist and waits without end. A thread is inside
 * also while it starts. Without AddressSanitizer nothing here waits, and fork_apart() is fork(). */
#ifndef RDDP_TESTS_FORK_APART_H
#define RDDP_TESTS_FORK_APART_H

#include <sys/types.h>

/* A child of a process whose threads allocate can do no more than exit, unless fork_apart() has made it. */
#ifdef __SANITIZE_ADDRESS__
enum { FORK_NEEDS_CARE = 1 };
#else
enum { FORK_NEEDS_CARE = 0 };
#endif

/* Every thread of the process says so once, when it runs: the library's from poll(), which fork_apart.c replaces and in
 * which an idle loop sleeps, or from the epoll_wait() of a program whose loops are busy; those of the program
 * themselves.
 */
void fork_thread_runs(void);

/* Around every allocation of a thread beside which the process forks, but of those that the library makes on its own
 * threads: no other fork can happen meanwhile. */
void fork_not_now(void);
void fork_again(void);

/* fork(), when every thread runs and none is between fork_not_now() and fork_again(). In the child an alarm ends the
 * process after `seconds`, with its parent's exit it ends at once. */
pid_t fork_apart(unsigned seconds);

#endif
