/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_capture.h - reads RoCE packets that two Linux kernels sent to each other from tests/captures/roce/NAME.pcap. */
#ifndef TESTS_LIB_ROCE_CAPTURE_H
#define TESTS_LIB_ROCE_CAPTURE_H

#include <stdint.h>

#include "roce/icrc.h"

/* A packet: its addresses, the identification of its IPv4 header, and its UDP payload. */
struct roce_captured {
    struct icrc_path path;
    uint16_t identification;
    const uint8_t *at;
    uint32_t octets;
};

/* Calls take() for each packet to port 4791. Returns how many there were. Other packets, and truncated ones, fail the
 * test. */
unsigned roce_capture_each(const char *name, void (*take)(const struct roce_captured *packet));

#endif
