/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_address.h - addresses of RoCE: IPv6, or IPv4 mapped into it (RFC 4291 2.5.5.2), as GIDs are. */
#ifndef RDDP_ROCE_IO_ROCE_ADDRESS_H
#define RDDP_ROCE_IO_ROCE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "roce/icrc.h"

struct roce_address {
    uint8_t octets[16];
};

/* Reads the address of AF_INET or AF_INET6. Returns false if it is of another family. */
bool roce_address_read(const struct sockaddr_storage *from, struct roce_address *address);

/* Writes it with a port for a socket of this family. Returns false if such a socket cannot send there. `scope` is that
 * of a link-local address. */
bool roce_address_write(const struct roce_address *address, sa_family_t family, uint16_t port, uint32_t scope,
                        struct sockaddr_storage *to);

/* The same as a name for people and applications, of AF_INET if it is one of IPv4. */
void roce_address_name(const struct roce_address *address, uint16_t port, uint32_t scope, struct sockaddr_storage *to);

/* Reads the addresses in the 40 octets in front of a datagram. Returns false if they are no such header. */
bool roce_address_read_grh(const uint8_t *grh, struct roce_address *from, struct roce_address *to);

/* Copies an address of AF_INET or AF_INET6. Returns false if it is neither, or too short. */
bool roce_address_copy(const struct sockaddr *from, socklen_t length, struct sockaddr_storage *to);

/* Turns a mapped address of IPv4 into one of AF_INET. */
void roce_address_unmap(struct sockaddr_storage *address);

bool roce_address_is_v4(const struct roce_address *address);
static inline bool roce_address_is_equal(const struct roce_address *a, const struct roce_address *b)
{
    return !memcmp(a->octets, b->octets, sizeof(a->octets));
}

/* Of this host by itself: 127.0.0.0/8 or ::1. */
bool roce_address_is_loopback(const struct roce_address *address);

/* Of a link: fe80::/10. */
static inline bool roce_address_is_link_local(const struct roce_address *address)
{
    return address->octets[0] == 0xfe && (address->octets[1] & 0xc0) == 0x80;
}

/* The UDP port of a socket address; 0 of other families. */
uint16_t roce_address_port(const struct sockaddr_storage *from);

/* Is it the wildcard of its family? */
bool roce_address_is_any(const struct sockaddr_storage *address);

/* Does it leave to the system which address leads to a peer of this family: none, or the wildcard? */
bool roce_address_is_open(const struct sockaddr_storage *address, sa_family_t family);

/* Is it an address of this host, or the wildcard? Returns 0; -EADDRNOTAVAIL; or a negative errno. */
int roce_address_is_here(const struct sockaddr_storage *address);

/* The scope of a link-local address; 0: it has none. */
uint32_t roce_address_scope(const struct sockaddr_storage *from);

void roce_address_set_port(struct sockaddr_storage *address, uint16_t port);

/* What the ICRC covers of the addresses. */
struct icrc_path roce_address_path(const struct roce_address *from, uint16_t from_port, const struct roce_address *to,
                                   uint16_t to_port);

#endif
