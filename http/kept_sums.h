/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kept_sums.h - digests that were begun while files were sent. Who comes back for the rest of a file gets the digest of
 * all of it, although no octet is read for that which is not sent. Memory and places are bounded, and shared by the
 * networks of the clients: a sum takes a place of the network that had most of the file sent, whoever began it. */
#ifndef RDDP_HTTP_KEPT_SUMS_H
#define RDDP_HTTP_KEPT_SUMS_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <xxhash.h>

#include "http/codec.h"

/* KEPT_MIN: fewer octets are not worth a place; our client asks for them again. */
enum { KEPT_SUMS = 64, KEPT_MIN = 8 << 20 };

/* The digest of the first `octets` of a version of a file. */
struct kept_sum {
    dev_t device;
    char tag[HTTP_TAG_MAX];
    uint64_t octets, used;
    struct sockaddr_storage peer; /* who had them sent */
    XXH3_state_t *sum;
};

/* All 0 is empty. */
struct kept_sums {
    struct kept_sum kept[KEPT_SUMS];
    unsigned n;
    uint64_t uses;
};

/* Keeps `sum`, which is the callee's from now on, of the first `octets` of the file `fd` in its version `tag`, unless
 * it has the sum of more of it. A weak tag names no version. */
void kept_sums_put(struct kept_sums *sums, int fd, const char *tag, XXH3_state_t *sum, uint64_t octets,
                   const struct sockaddr_storage *peer);
/* Returns a copy, which is the caller's, and of how many octets it is; NULL: there is none. */
XXH3_state_t *kept_sums_copy(struct kept_sums *sums, int fd, const char *tag, uint64_t *octets);
void kept_sums_fini(struct kept_sums *sums);

#endif
