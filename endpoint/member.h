/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* member.h - the lists of a context's objects, by which a child of fork() finds what it inherited. */
#ifndef RDDP_ENDPOINT_MEMBER_H
#define RDDP_ENDPOINT_MEMBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/container.h"

struct member {
    struct member *next, **before;
};

enum member_kind {
    MEMBER_CQ,
    MEMBER_SRQ,
    MEMBER_QP,
    MEMBER_COMP_CHANNEL,
    MEMBER_EVENT_CHANNEL,
    MEMBER_ASYNC_CHANNEL,
    MEMBER_LISTENER,
    MEMBER_DEVICE,
    MEMBER_KINDS,
};

/* An object is in its list from when it is complete until its destruction begins. */
struct members {
    pthread_mutex_t lock; /* a leaf, except as objects.h says */
    struct member *first[MEMBER_KINDS];
};

static inline void member_add(struct members *members, enum member_kind kind, struct member *member)
{
    pthread_mutex_lock(&members->lock);
    member->next = members->first[kind];
    member->before = &members->first[kind];
    if (member->next)
        member->next->before = &member->next;
    members->first[kind] = member;
    pthread_mutex_unlock(&members->lock);
}

static inline void member_remove(struct members *members, struct member *member)
{
    pthread_mutex_lock(&members->lock);
    *member->before = member->next;
    if (member->next)
        member->next->before = member->before;
    pthread_mutex_unlock(&members->lock);
}

/* Iterates over the objects of a kind. The caller prevents their removal: by the lock, or as the only thread after
 * fork(). */
#define MEMBERS_EACH(members, kind, type, object) \
    for (struct member *member_ = (members)->first[kind]; \
         member_ && ((object) = container_of(member_, type, member), true); member_ = member_->next)

#endif
