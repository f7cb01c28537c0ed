/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h - what the devices say of themselves. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The six octets that name this host: the MAC address of an interface, or a number that lasts until the next boot. */
void device_mac(uint8_t mac[6]);
int device_query(struct ibv_device *device, struct ibv_device_attr *attr); /* returns 0 */
bool device_is_ours(const struct ibv_device *device);
int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);

#endif
