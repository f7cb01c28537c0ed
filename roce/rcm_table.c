/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_table.c - finds the connection or the listener that a message is meant for. */
#include <stddef.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/siphash.h"
#include "roce/rcm_inner.h"

enum { GID_OCTETS = 16 };

/* What a number of the peer is: it is hashed with it. */
enum number { NUMBER_COMM_ID, NUMBER_REQUEST_ID, NUMBER_QPN };

static struct rcm_link *bucket_of_id(struct rcm *cm, uint32_t id)
{
    return &cm->by_local[id % RCM_BUCKETS];
}

/* The peer chooses its numbers, so that the hash has a key. */
static struct rcm_link *bucket_of_peer(struct rcm *cm, struct rcm_link *table, const uint8_t *peer, enum number kind,
                                       uint32_t number)
{
    uint8_t octets[GID_OCTETS + 5];

    put32(put8(put_bytes(octets, peer, GID_OCTETS), (uint8_t)kind), number);
    return &table[siphash(cm->key, octets, sizeof(octets)) % RCM_BUCKETS];
}

static struct rcm_link *bucket_of_remote(struct rcm *cm, const uint8_t *peer, uint32_t id, bool datagram)
{
    return bucket_of_peer(cm, cm->by_remote, peer, datagram ? NUMBER_REQUEST_ID : NUMBER_COMM_ID, id);
}

/* Messages of a connection come from the peer's address, and to the address that it knows. */
static bool has_path(const struct rcm_conn *conn, const struct rcm_path *path)
{
    return !memcmp(conn->path.peer, path->peer, GID_OCTETS) && !memcmp(conn->path.local, path->local, GID_OCTETS);
}

static struct rcm_conn *find_id(struct rcm *cm, uint32_t id)
{
    struct rcm_link *bucket = bucket_of_id(cm, id);

    for (struct rcm_link *link = bucket->next; link != bucket; link = link->next) {
        struct rcm_conn *conn = container_of(link, struct rcm_conn, by_local);

        if (conn->local_id == id)
            return conn;
    }
    return NULL;
}

uint32_t rcm_new_id(struct rcm *cm)
{
    uint32_t id;

    do
        id = cm->attr.id_base | ((uint32_t)cm->attr.random(cm->attr.of) & cm->attr.id_mask);
    while (!id || find_id(cm, id));
    return id;
}

void rcm_add_local(struct rcm *cm, struct rcm_conn *conn)
{
    rcm_list_add(bucket_of_id(cm, conn->local_id), &conn->by_local);
}

void rcm_add_remote(struct rcm *cm, struct rcm_conn *conn)
{
    rcm_list_add(bucket_of_remote(cm, conn->path.peer, conn->remote_id, conn->datagram), &conn->by_remote);
}

void rcm_add_qpn(struct rcm *cm, struct rcm_conn *conn)
{
    rcm_list_add(bucket_of_peer(cm, cm->by_qpn, conn->path.peer, NUMBER_QPN, conn->peer_qpn), &conn->by_qpn);
}

struct rcm_conn *rcm_by_local(struct rcm *cm, const struct rcm_path *path, uint32_t local_id)
{
    struct rcm_conn *conn = find_id(cm, local_id);

    return conn && has_path(conn, path) ? conn : NULL;
}

struct rcm_conn *rcm_by_remote(struct rcm *cm, const struct rcm_path *path, uint32_t remote_id, bool datagram)
{
    struct rcm_link *bucket = bucket_of_remote(cm, path->peer, remote_id, datagram);

    for (struct rcm_link *link = bucket->next; link != bucket; link = link->next) {
        struct rcm_conn *conn = container_of(link, struct rcm_conn, by_remote);

        if (conn->remote_id == remote_id && conn->datagram == datagram && has_path(conn, path))
            return conn;
    }
    return NULL;
}

struct rcm_conn *rcm_by_qpn(struct rcm *cm, const struct rcm_path *path, uint32_t qpn)
{
    struct rcm_link *bucket = bucket_of_peer(cm, cm->by_qpn, path->peer, NUMBER_QPN, qpn);

    for (struct rcm_link *link = bucket->next; link != bucket; link = link->next) {
        struct rcm_conn *conn = container_of(link, struct rcm_conn, by_qpn);

        if (conn->peer_qpn == qpn && !memcmp(conn->path.peer, path->peer, GID_OCTETS))
            return conn;
    }
    return NULL;
}

/* How well a listener's address fits one of ours: the address itself, then any of its family, then any; 0: not. */
static unsigned address_fits(const uint8_t *listens, const uint8_t *local)
{
    static const uint8_t any[GID_OCTETS], any_ipv4[GID_OCTETS] = {[10] = 0xff, [11] = 0xff};

    if (!memcmp(listens, local, GID_OCTETS))
        return 3;
    if (rcm_is_ipv4(local) && !memcmp(listens, any_ipv4, GID_OCTETS))
        return 2;
    return !memcmp(listens, any, GID_OCTETS);
}

struct rcm_listener *rcm_find_listener(const struct rcm *cm, uint64_t service, const uint8_t *local)
{
    struct rcm_listener *found = NULL;
    unsigned best = 0;

    for (struct rcm_link *link = cm->listeners.next; link != &cm->listeners; link = link->next) {
        struct rcm_listener *listener = container_of(link, struct rcm_listener, link);
        unsigned how = listener->service == service ? address_fits(listener->local, local) : 0;

        if (how > best) {
            best = how;
            found = listener;
        }
    }
    return found;
}
