/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_table.c - finds the association of a packet, and the one whose timer expires first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "sctp/io/osctp_inner.h"

enum { TABLE_FIRST = 16 };

/* --- by key -------------------------------------------------------------------------------------------------- */

void osctp_key_address(struct osctp_key *key, const struct sockaddr_storage *peer)
{
    const struct sockaddr_in *in = (const void *)peer;
    const struct sockaddr_in6 *in6 = (const void *)peer;

    *key = (struct osctp_key){.family = peer->ss_family, .udp_port = sctp_port_of(peer)};
    if (peer->ss_family != AF_INET6) {
        memcpy(key->address, &in->sin_addr, sizeof(in->sin_addr));
        return;
    }
    memcpy(key->address, &in6->sin6_addr, sizeof(in6->sin6_addr));
    if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
        key->scope = in6->sin6_scope_id;
}

uint64_t osctp_key_number(const struct osctp_port *port, const struct osctp_key *key)
{
    return siphash(port->key, key, offsetof(struct osctp_key, peer_port));
}

static struct osctp_assoc **osctp_table_head(const struct osctp_port *port, const struct osctp_key *key)
{
    return &port->heads[siphash(port->key, key, sizeof(*key)) & (port->size - 1)];
}

struct osctp_assoc *osctp_table_find(const struct osctp_port *port, const struct osctp_key *key)
{
    struct osctp_assoc *s = *osctp_table_head(port, key);

    while (s && memcmp(&s->place.key, key, sizeof(*key)) != 0)
        s = s->place.chain;
    return s;
}

static void osctp_table_link(struct osctp_port *port, struct osctp_assoc *s)
{
    struct osctp_assoc **head = osctp_table_head(port, &s->place.key);

    s->place.chain = *head;
    *head = s;
}

/* Without memory the chains get longer. */
static void osctp_table_grow(struct osctp_port *port)
{
    struct osctp_assoc **old = port->heads, **heads, *s;
    uint32_t size = port->size;

    if (port->found < size)
        return;
    heads = calloc(2 * size, sizeof(struct osctp_assoc *));
    if (!heads)
        return;
    port->heads = heads;
    port->size = 2 * size;
    for (uint32_t i = 0; i < size; i++)
        while ((s = old[i])) {
            old[i] = s->place.chain;
            osctp_table_link(port, s);
        }
    free(old);
}

void osctp_table_hide(struct osctp_assoc *s)
{
    struct osctp_assoc **at;

    if (!s->place.is_found)
        return;
    for (at = osctp_table_head(s->port, &s->place.key); *at != s;)
        at = &(*at)->place.chain;
    *at = s->place.chain;
    s->place.is_found = false;
    s->port->found--;
}

/* --- by time: a heap ----------------------------------------------------------------------------------------- */

static void osctp_heap_put(struct osctp_port *port, uint32_t at, struct osctp_assoc *s)
{
    port->heap[at] = s;
    s->place.heap = at;
}

static void osctp_heap_rise(struct osctp_port *port, uint32_t at, struct osctp_assoc *s)
{
    while (at && port->heap[(at - 1) / 2]->place.due_us > s->place.due_us) {
        osctp_heap_put(port, at, port->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    osctp_heap_put(port, at, s);
}

static void osctp_heap_sink(struct osctp_port *port, uint32_t at, struct osctp_assoc *s)
{
    for (uint32_t child; (child = 2 * at + 1) < port->assocs; at = child) {
        if (child + 1 < port->assocs && port->heap[child + 1]->place.due_us < port->heap[child]->place.due_us)
            child++;
        if (port->heap[child]->place.due_us >= s->place.due_us)
            break;
        osctp_heap_put(port, at, port->heap[child]);
    }
    osctp_heap_rise(port, at, s);
}

void osctp_table_schedule(struct osctp_assoc *s, uint64_t due_us)
{
    s->place.due_us = due_us;
    osctp_heap_sink(s->port, s->place.heap, s);
}

struct osctp_assoc *osctp_table_due(const struct osctp_port *port, uint64_t now_us)
{
    return port->assocs && port->heap[0]->place.due_us <= now_us ? port->heap[0] : NULL;
}

struct osctp_assoc *osctp_table_most(const struct osctp_port *port)
{
    struct osctp_assoc *most = port->assocs ? port->heap[0] : NULL;

    for (uint32_t i = 1; i < port->assocs; i++)
        if (port->heap[i]->counted > most->counted)
            most = port->heap[i];
    return most;
}

static bool osctp_heap_grow(struct osctp_port *port)
{
    struct osctp_assoc **heap;

    if (port->assocs < port->heap_size)
        return true;
    heap = realloc(port->heap, 2 * port->heap_size * sizeof(struct osctp_assoc *));
    if (!heap)
        return false;
    port->heap = heap;
    port->heap_size *= 2;
    return true;
}

/* --- both ---------------------------------------------------------------------------------------------------- */

int osctp_table_init(struct osctp_port *port)
{
    port->heads = calloc(TABLE_FIRST, sizeof(struct osctp_assoc *));
    port->heap = calloc(TABLE_FIRST, sizeof(struct osctp_assoc *));
    port->size = port->heap_size = TABLE_FIRST;
    if (port->heads && port->heap)
        return 0;
    osctp_table_fini(port);
    return -ENOMEM;
}

void osctp_table_fini(struct osctp_port *port)
{
    free(port->heads);
    free(port->heap);
    port->heads = port->heap = NULL;
}

int osctp_table_add(struct osctp_assoc *s)
{
    struct osctp_port *port = s->port;

    if (!osctp_heap_grow(port))
        return -ENOMEM;
    osctp_table_grow(port);
    osctp_table_link(port, s);
    s->place.is_found = true;
    port->found++;
    s->place.due_us = OSCTP_NEVER;
    osctp_heap_put(port, port->assocs++, s);
    return 0;
}

void osctp_table_remove(struct osctp_assoc *s)
{
    struct osctp_port *port = s->port;
    struct osctp_assoc *last = port->heap[--port->assocs];

    osctp_table_hide(s);
    if (last != s)
        osctp_heap_sink(port, s->place.heap, last);
}
