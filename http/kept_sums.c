/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kept_sums.c - a table of digests that were begun; the network with the most of them gives way to another. */
#include <string.h>
#include <sys/stat.h>

#include "http/kept_sums.h"
#include "rpc/eviction.h"

static struct kept_sum *find_kept(struct kept_sums *sums, int fd, const char *tag)
{
    struct stat st;
    if (tag[0] != '"' || fstat(fd, &st))
        return NULL;
    for (unsigned i = 0; i < sums->n; i++) {
        struct kept_sum *kept = &sums->kept[i];
        if (kept->device == st.st_dev && !strcmp(kept->tag, tag))
            return kept;
    }
    return NULL;
}

/* The longest unused one of this network, or, if `peer` is NULL, of all. PLACE_NONE: it has none. */
static int oldest_of(const struct kept_sums *sums, const struct sockaddr_storage *peer)
{
    int found = PLACE_NONE;
    for (unsigned i = 0; i < sums->n; i++) {
        const struct kept_sum *kept = &sums->kept[i];
        if ((!peer || eviction_same_network(&kept->peer, peer)) && (found < 0 || kept->used < sums->kept[found].used))
            found = (int)i;
    }
    return found;
}

/* A place for one more: the network with the most of them gives way, if it is not that of `peer`; or what it has
 * itself; or, if each network has one, the longest unused one. */
static struct kept_sum *kept_place(struct kept_sums *sums, const struct sockaddr_storage *peer)
{
    const struct eviction_limits limits = {KEPT_SUMS, KEPT_SUMS, UINT64_MAX};
    struct rpc_eviction place[KEPT_SUMS];
    if (sums->n < KEPT_SUMS)
        return &sums->kept[sums->n++];
    for (unsigned i = 0; i < KEPT_SUMS; i++)
        place[i] = (struct rpc_eviction){&sums->kept[i].peer, sums->uses - sums->kept[i].used, true};
    int found = eviction_find_fair(place, KEPT_SUMS, &limits, peer);
    if (found < 0)
        found = oldest_of(sums, peer);
    if (found < 0)
        found = oldest_of(sums, NULL);
    XXH3_freeState(sums->kept[found].sum);
    return &sums->kept[found];
}

void kept_sums_put(struct kept_sums *sums, int fd, const char *tag, XXH3_state_t *sum, uint64_t octets,
                   const struct sockaddr_storage *peer)
{
    struct kept_sum *kept = find_kept(sums, fd, tag);
    struct stat st;
    bool is_more = octets >= KEPT_MIN && (!kept || octets > kept->octets);
    if (!is_more || tag[0] != '"' || strlen(tag) >= HTTP_TAG_MAX || fstat(fd, &st)) {
        XXH3_freeState(sum);
        return;
    }
    if (kept)
        XXH3_freeState(kept->sum);
    else
        kept = kept_place(sums, peer);
    *kept = (struct kept_sum){.device = st.st_dev, .octets = octets, .used = ++sums->uses, .peer = *peer, .sum = sum};
    strcpy(kept->tag, tag);
}

XXH3_state_t *kept_sums_copy(struct kept_sums *sums, int fd, const char *tag, uint64_t *octets)
{
    struct kept_sum *kept = find_kept(sums, fd, tag);
    XXH3_state_t *copy = kept ? XXH3_createState() : NULL;
    if (!copy)
        return NULL;
    kept->used = ++sums->uses;
    XXH3_copyState(copy, kept->sum);
    *octets = kept->octets;
    return copy;
}

void kept_sums_fini(struct kept_sums *sums)
{
    while (sums->n)
        XXH3_freeState(sums->kept[--sums->n].sum);
}
