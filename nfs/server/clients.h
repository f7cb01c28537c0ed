/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clients.h - which addresses may come: "10.0.0.0/8", "fd77::1". */
#ifndef RDDP_NFS_SERVER_CLIENTS_H
#define RDDP_NFS_SERVER_CLIENTS_H

#include <stdbool.h>
#include <sys/socket.h>

enum { CLIENTS_TEXT = 256 };

/* All zeros: everybody. */
struct clients {
    struct clients_net *net;
    unsigned nets;
};

/* `text` ends with a NULL; it may be NULL itself: everybody. 0, or a negative errno, a line about it in `error`
 * (CLIENTS_TEXT octets), and nothing to free. */
int clients_parse(struct clients *clients, const char *const *text, char *error);
void clients_free(struct clients *clients);
/* An IPv4 address in IPv6 dress is an IPv4 address. */
bool clients_have(const struct clients *clients, const struct sockaddr *peer);

#endif
