/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* span.h - borrowed octets: where they are, and how many. */
#ifndef RDDP_BASE_SPAN_H
#define RDDP_BASE_SPAN_H

#include <stdint.h>

struct span {
    const uint8_t *at;
    uint32_t length;
};

#endif
