/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.h - are the library's descriptors still its own? A program that becomes a daemon closes all that it
 * finds, and their numbers are then given to files of the program, which must neither be written nor closed.
 *
 * Two descriptors of its own, the sentinel, stand for all of them. As long as both are the same files, the others are
 * ours; when one is not, none counts as ours any more: one that the program has left open stays open. */
#ifndef RDDP_LOOP_DESCRIPTORS_H
#define RDDP_LOOP_DESCRIPTORS_H

#include <stdbool.h>

/* Count their users. The first makes the sentinel, the last closes it; a new one is made if it is no more ours: no
 * thread may use descriptors of before any more. Returns 0 or -EMFILE. The caller keeps out threads of which that is
 * not so. */
int descriptors_open(void);
void descriptors_close(void);

/* In a child of fork(): descriptors_leave(), called by itself there, lets the parent notice its own loss although the
 * child has copies. descriptors_renew() makes a sentinel of the child's own; returns 0 or -EMFILE. */
void descriptors_leave(void);
int descriptors_renew(void);

/* Looks: two system calls. What descriptors_are_lost() finds stays until the next descriptors_open(). */
bool descriptors_are_ours(void);
bool descriptors_are_lost(void);

/* How many losses there have been: for who has descriptors without being a user, and may have made them after a loss.
 * They are ours as long as the number is the same. It joins before it makes them: a sentinel is there then, unless
 * users have lost theirs and do not give them up. descriptors_join() returns a number for descriptors_part(), or
 * -EMFILE. A child of fork() counts none who has joined before: descriptors_part() with a number of the parent's does
 * nothing. */
unsigned descriptors_losses(void);
int descriptors_join(void);
void descriptors_part(int joined);

/* Sets how all users give up what is lost, for one who joins then: a function that calls `then` before there is another
 * user, and returns what that returns. */
void descriptors_on_loss(int (*give_up)(int (*then)(void)));

/* For poll(2), with no events: something happens to it when the program has closed it. -1 if there is none, or, in a
 * child of fork(), as long as it is the parent's: then it tells when that ends. */
int descriptors_sentinel(void);

/* Closes a descriptor of ours, unless they are not ours any more. */
void descriptor_close(int fd);

#endif
