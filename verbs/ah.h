/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah.h - the path that an address handle, or the address of a connected queue pair, names. */
#ifndef VERBS_AH_H
#define VERBS_AH_H

#include <infiniband/verbs.h>
#include <sys/socket.h>

/* Both ends of the path. Returns 0; EINVAL: no GRH, which RoCE always has; another port than 1; an SGID index without
 * an address; GIDs of two IP families. *why says which. */
int ah_path(const struct ibv_ah_attr *attr, struct sockaddr_storage *local, struct sockaddr_storage *peer,
            const char **why);

#endif
