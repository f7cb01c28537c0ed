/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* silent.c - lists of the silent associations, each in the order of arrival. */
#include "sctp/io/silent.h"

#include <netinet/in.h>

#include "base/siphash.h"

enum { NETWORK_OCTETS = 8, MAPPED_OCTETS = 12 }; /* of an IPv6 address */

/* What tells its host: an IPv4 address, also one that a socket for both has as IPv6; of IPv6 the network, but on a link
 * of its own the address. */
static uint64_t hash_host(const uint64_t key[2], const struct sockaddr_storage *peer)
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    const struct in_addr *v4 = &((const struct sockaddr_in *)(const void *)peer)->sin_addr;

    if (peer->ss_family != AF_INET6)
        return siphash(key, v4, sizeof(*v4));
    if (IN6_IS_ADDR_V4MAPPED(v6))
        return siphash(key, v6->s6_addr + MAPPED_OCTETS, sizeof(*v4));
    return siphash(key, v6, IN6_IS_ADDR_LINKLOCAL(v6) ? sizeof(*v6) : NETWORK_OCTETS);
}

void silent_init(struct silent *s, const uint64_t key[2])
{
    *s = (struct silent){.key = {key[0], key[1]}};
}

static struct silent_list *silent_list_of(struct silent *s, const struct sockaddr_storage *peer)
{
    return &s->list[hash_host(s->key, peer) % SILENT_LISTS];
}

void silent_add(struct silent *s, struct silent_entry *entry, const struct sockaddr_storage *peer)
{
    struct silent_list *list = silent_list_of(s, peer);

    *entry = (struct silent_entry){.list = list, .older = list->youngest, .number = s->numbers++};
    if (list->youngest)
        list->youngest->younger = entry;
    else
        list->oldest = entry;
    list->youngest = entry;
    list->count++;
}

void silent_remove(struct silent_entry *entry)
{
    struct silent_list *list = entry->list;

    if (!list)
        return;
    if (entry->older)
        entry->older->younger = entry->younger;
    else
        list->oldest = entry->younger;
    if (entry->younger)
        entry->younger->older = entry->older;
    else
        list->youngest = entry->older;
    list->count--;
    entry->list = NULL;
}

struct silent_entry *silent_over_share(struct silent *s, const struct sockaddr_storage *peer)
{
    const struct silent_list *list = silent_list_of(s, peer);

    return list->count >= SILENT_SHARE ? list->oldest : NULL;
}

struct silent_entry *silent_oldest(const struct silent *s)
{
    struct silent_entry *oldest = NULL;

    for (unsigned i = 0; i < SILENT_LISTS; i++) {
        struct silent_entry *entry = s->list[i].oldest;

        if (entry && (!oldest || entry->number < oldest->number))
            oldest = entry;
    }
    return oldest;
}
