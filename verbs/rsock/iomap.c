/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iomap.c - the calls for buffers that the other end writes to directly, by an offset. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/rsock/rsocket.h"

/* The first index that no mapping has; -1 if the peer has no entry left. */
static int free_index(const struct rsocket *rs)
{
    const struct rs_map *map;
    int index = -1;

    do {
        index++;
        for (map = rs->maps; map && map->index != index; map = map->next)
            ;
    } while (map);
    return index < rs->peer.iomaps ? index : -1;
}

static int map_buffer(struct rsocket *rs, void *buf, size_t len, int prot, off_t *offset)
{
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
    const int index = prot & PROT_WRITE ? free_index(rs) : -1;
    struct rs_map *map;

    if (rs->state != RS_CONNECTED && rs->state != RS_ACCEPTING)
        return ENOTCONN;
    if ((prot & ~PROT_WRITE) || len > UINT32_MAX)
        return EINVAL;
    if (prot & PROT_WRITE && index < 0)
        return ENOMEM;
    map = calloc(1, sizeof(*map));
    if (!map || !(map->mr = rs_region(rs, buf, len, access))) {
        free(map);
        return errno;
    }
    if (*offset == -1)
        *offset = (off_t)(uintptr_t)buf;
    map->offset = (uint64_t)*offset;
    map->index = index;
    map->is_announced = index < 0;
    map->next = rs->maps;
    rs->maps = map;
    rs_maps_announce(rs); /* or before the next data */
    return 0;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    struct rsocket *rs = rs_get(socket);
    int error;

    (void)flags;
    if (!rs)
        return -1;
    rs_lock(rs);
    /* What was accepted knows its peer already, and tells it later. */
    error = rs->state == RS_ACCEPTING ? 0 : rs_wait_connected(rs, rs->is_nonblocking);
    if (!error)
        error = map_buffer(rs, buf, len, prot, &offset);
    return rs_leave(rs, error) ? -1 : offset;
}

int riounmap(int socket, void *buf, size_t len)
{
    struct rsocket *rs = rs_get(socket);
    struct rs_map **at, *map;
    int error = EINVAL;

    if (!rs)
        return -1;
    rs_lock(rs);
    for (at = &rs->maps; *at && ((*at)->mr->addr != buf || (*at)->mr->length != len); at = &(*at)->next)
        ;
    map = *at;
    if (map)
        error = ibv_dereg_mr(map->mr);
    if (!error) {
        *at = map->next;
        free(map);
    }
    return rs_leave(rs, error);
}

/* Where an offset of the peer's leads. The length is what follows it in the buffer; 0: there is none. */
static struct rs_sge find_target(const struct rsocket *rs, uint64_t offset)
{
    for (uint32_t i = 0; i < rs->sizes.iomaps; i++) {
        const struct rs_iomap *target = &rs->targets[i];
        if (offset >= target->offset && offset - target->offset < target->sge.length) {
            const uint32_t skip = (uint32_t)(offset - target->offset);
            return (struct rs_sge){target->sge.addr + skip, target->sge.key, target->sge.length - skip};
        }
    }
    return (struct rs_sge){0};
}

static bool can_write_silently(const struct rsocket *rs)
{
    return rs->state != RS_CONNECTED || rs->write_shut ||
           (rs->out.slots > RS_CONTROL_SLOTS && rs_has_ring_space(rs) && rs_maps_are_announced(rs));
}

static int riowrite_part(struct rsocket *rs, const uint8_t *from, size_t n, uint64_t offset, uint32_t *part)
{
    const struct rs_sge to = find_target(rs, offset);
    struct ibv_sge sge;

    if (!to.length)
        return EINVAL;
    *part = rs_ring_space(rs, n, to.length);
    sge = rs_ring_put(rs, from, *part);
    return rs_post_silent(rs, &sge, &to, *part);
}

static size_t riowrite_all(struct rsocket *rs, const uint8_t *from, size_t n, uint64_t offset, int flags, int *error)
{
    const bool dont_wait = rs->is_nonblocking || flags & MSG_DONTWAIT;
    size_t done = 0;

    *error = rs_wait_connected(rs, dont_wait);
    while (done < n && !*error) {
        uint32_t part = 0;
        *error = rs_wait(rs, can_write_silently, dont_wait, -1);
        if (!*error && (rs->state != RS_CONNECTED || rs->write_shut))
            *error = EPIPE;
        if (!*error)
            *error = riowrite_part(rs, from + done, n - done, offset + done, &part);
        if (!*error)
            done += part;
    }
    return done;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    struct rsocket *rs = rs_get(socket);
    size_t done;
    int error;

    if (!rs)
        return (size_t)-1;
    rs_lock(rs);
    done = riowrite_all(rs, buf, count, (uint64_t)offset, flags, &error);
    rs_leave(rs, 0);
    return done || !error ? done : (size_t)rs_fail(error);
}
