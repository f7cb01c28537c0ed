/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* offer.c - offered files of which a part exists here. */
#include <string.h>

#include "tools/xfer/offer.h"

void offers_init(struct sink_offers *offers)
{
    for (int i = 0; i < XFER_OFFERS; i++) {
        offers->offer[i].id = 0;
        offers->offer[i].part = (struct file_part){.parent = -1, .fd = -1};
    }
}

struct sink_offer *offers_unused(struct sink_offers *offers)
{
    return offers_find(offers, 0);
}

struct sink_offer *offers_find(struct sink_offers *offers, uint32_t id)
{
    for (int i = 0; i < XFER_OFFERS; i++) {
        if (offers->offer[i].id == id)
            return &offers->offer[i];
    }
    return NULL;
}

void offers_drop(struct sink_offers *offers, uint32_t id)
{
    for (int i = 0; i < XFER_OFFERS; i++) {
        struct sink_offer *offer = &offers->offer[i];
        if (offer->id && offer->id <= id) {
            part_drop(&offer->part);
            offer->id = 0;
        }
    }
}

bool offer_is_of(const struct sink_offer *offer, const char *path, const struct path_stamp *stamp)
{
    return !strcmp(offer->path, path) && offer->stamp.size == stamp->size && offer->stamp.seconds == stamp->seconds &&
           offer->stamp.nanoseconds == stamp->nanoseconds;
}
