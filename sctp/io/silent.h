/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* silent.h - the associations of a listener whose peers have not asked for anything yet: which of them gives way. An
 * address has a share of the places; an IPv6 network of 64 bits counts as one address. */
#ifndef RDDP_SCTP_IO_SILENT_H
#define RDDP_SCTP_IO_SILENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    SILENT_SHARE = 512, /* silent associations from one address */
    SILENT_LISTS = 64,  /* addresses are hashed to these; those of one list have the share together */
};

/* Embedded in an association; zeroed before its first use. */
struct silent_entry {
    struct silent_list *list; /* NULL: it is in none */
    struct silent_entry *older, *younger;
    uint64_t number; /* the order of arrival */
};

struct silent_list {
    struct silent_entry *oldest, *youngest;
    uint32_t count;
};

struct silent {
    struct silent_list list[SILENT_LISTS];
    uint64_t key[2]; /* of the hash */
    uint64_t numbers;
};

/* `key` is random, so that no peer can choose with which others it shares a list. */
void silent_init(struct silent *s, const uint64_t key[2]);

void silent_add(struct silent *s, struct silent_entry *entry, const struct sockaddr_storage *peer);
void silent_remove(struct silent_entry *entry); /* does nothing if it is in no list */

/* Returns the entry to evict for another one of this peer: the oldest of its address, if that has its share; NULL:
 * none has to. silent_oldest() returns the oldest of all; NULL: there is none. */
struct silent_entry *silent_over_share(struct silent *s, const struct sockaddr_storage *peer);
struct silent_entry *silent_oldest(const struct silent *s);

#endif
