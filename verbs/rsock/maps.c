/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* maps.c - buffers of the application that are mapped: the peer is told of ours, and tells of its own. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/rsock/rsocket.h"

void rs_iomap_take(struct rsocket *rs, uint32_t index)
{
    if (index >= rs->sizes.iomaps)
        rs_break(rs, EPROTO);
    else
        rs->targets[index] = rs->queues.iomaps[index];
}

bool rs_maps_are_announced(const struct rsocket *rs)
{
    for (const struct rs_map *map = rs->maps; map; map = map->next)
        if (!map->is_announced)
            return false;
    return true;
}

static void announce_map(struct rsocket *rs, struct rs_map *map)
{
    struct rs_iomap entry = {
        .offset = map->offset,
        .sge = {.addr = (uintptr_t)map->mr->addr, .key = map->mr->rkey, .length = (uint32_t)map->mr->length}};
    const struct rs_sge to = {.addr = rs->peer.sgl.addr + rs->peer.sgl.length * sizeof(struct rs_sge) +
                                      (unsigned)map->index * sizeof(entry),
                              .key = rs->peer.sgl.key};
    struct ibv_sge from = {.addr = (uintptr_t)&entry, .length = sizeof(entry)};
    struct rs_sge offset = {.addr = entry.offset};

    rs_sge_turn(rs, &offset);
    entry.offset = offset.addr;
    rs_sge_turn(rs, &entry.sge);
    if (!rs_post_write(rs, &from, &to, rs_message(RS_IOMAP, (uint32_t)map->index), 0))
        map->is_announced = true;
}

void rs_maps_announce(struct rsocket *rs)
{
    for (struct rs_map *map = rs->maps; map && rs->state == RS_CONNECTED && rs->out.slots >= 2; map = map->next)
        if (!map->is_announced)
            announce_map(rs, map);
}

void rs_maps_free(struct rsocket *rs)
{
    struct rs_map *map;

    while ((map = rs->maps)) {
        rs->maps = map->next;
        ibv_dereg_mr(map->mr);
        free(map);
    }
}
