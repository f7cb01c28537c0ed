/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.h - what an application may say of a wire, and the same in the engine's words. */
#ifndef RDDP_API_ATTR_H
#define RDDP_API_ATTR_H

#include "api/api.h"

/* Of attributes that are sane; NULL: it is no stream of octets. */
const struct wire *wire_named(enum rddp_wire name);

bool wire_is_sane(const struct rddp_wire_attr *wire);

/* Can this wire carry what `attr` wants said? Without start-up frames there is nothing that could carry private data.
 */
bool wire_says(const struct wire *wire, const struct rddp_conn_attr *attr);

/* The same in the engine's words; IRD and ORD are not among them. */
struct conn_attr wire_conn_attr(const struct rddp_wire_attr *wire);
uint16_t at_most(uint16_t asked, uint32_t capacity);

#endif
