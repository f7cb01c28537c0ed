/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gid.h - the GIDs of rddpe0: the addresses of this host. */
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include <infiniband/verbs.h>
#include <sys/socket.h>

enum { GID_TABLE = 128 };

/* What an index of the table has; `rddp run` asks, too, and shows it in files. Returns 0; ENODATA: no address, or one
 * that is gone; EINVAL: no such index. */
int verbs_gid_get(unsigned index, union ibv_gid *gid, unsigned *interface);

/* All of the table, as it is now. `interface` is 0 where an index is empty. */
struct gid_entry {
    union ibv_gid gid;
    unsigned interface;
};

void gid_read_all(struct gid_entry entries[GID_TABLE]);

/* Returns the index of an address, of this interface; 0: of any. -1: it is none of this host's, or the table is full.
 */
int gid_find(const union ibv_gid *gid, unsigned interface);

/* The GID of an IPv4 address is that address, mapped into IPv6. An address of a link only is of this interface. */
void gid_to_address(const union ibv_gid *gid, unsigned interface, struct sockaddr_storage *address);
void gid_of_address(const struct sockaddr_storage *address, union ibv_gid *gid);

/* fork() finds the table whole: no other thread has it between these two. */
void gid_hold(void);
void gid_release(void);

/* Returns the largest path MTU that every interface with an address has: rxe asks its one interface. */
enum ibv_mtu gid_active_mtu(void);

#endif
