/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* offer.h - offered files of which a part exists here: each is kept open and hashed until its entry comes. */
#ifndef TOOLS_XFER_OFFER_H
#define TOOLS_XFER_OFFER_H

#include "tools/xfer/file.h"

struct sink_offer {
    uint32_t id; /* 0: unused */
    char path[XFER_PATH + 1];
    struct path_stamp stamp;
    struct file_part part;
};

struct sink_offers {
    struct sink_offer offer[XFER_OFFERS];
};

void offers_init(struct sink_offers *offers);
/* Returns an unused one, or NULL. */
struct sink_offer *offers_unused(struct sink_offers *offers);
/* Returns the offer of this entry, or NULL. */
struct sink_offer *offers_find(struct sink_offers *offers, uint32_t id);
/* Drops the offers of the entries up to `id`. */
void offers_drop(struct sink_offers *offers, uint32_t id);
/* Whether the entry is the file that was offered. */
bool offer_is_of(const struct sink_offer *offer, const char *path, const struct path_stamp *stamp);

#endif
