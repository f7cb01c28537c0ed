/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clients.h - a list of client addresses and prefixes, such as "10.0.0.0/8" and "fd77::1". */
#ifndef RDDP_RPC_CLIENTS_H
#define RDDP_RPC_CLIENTS_H

#include <stdbool.h>
#include <sys/socket.h>

enum { CLIENTS_TEXT = 256 };

/* All zeros admits everybody. */
struct clients {
    struct clients_net *net;
    unsigned nets;
};

/* Parses `text`, an array that ends with NULL. `text` may itself be NULL, which admits everybody. Returns 0; or a
 * negative errno with a line in `message` (CLIENTS_TEXT octets), and leaves nothing to free. */
int clients_parse(struct clients *clients, const char *const *text, char *message);
void clients_free(struct clients *clients);
/* Whether the list admits `peer`. An IPv4-mapped IPv6 address counts as IPv4. */
bool clients_have(const struct clients *clients, const struct sockaddr *peer);

#endif
