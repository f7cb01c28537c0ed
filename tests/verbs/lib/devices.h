/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.h - devices by name, and the loopback address of rddpe0. */
#ifndef RDDP_TESTS_VERBS_DEVICES_H
#define RDDP_TESTS_VERBS_DEVICES_H

#include <infiniband/verbs.h>

struct ibv_context *devices_open(const char *name);

/* Returns the index of 127.0.0.1 among the GIDs, and writes that GID. */
uint8_t devices_loopback(struct ibv_context *context, union ibv_gid *gid);

#endif
