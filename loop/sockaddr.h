/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sockaddr.h - an address as text. */
#ifndef RDDP_LOOP_SOCKADDR_H
#define RDDP_LOOP_SOCKADDR_H

#include <sys/socket.h>

/* Writes "10.0.0.1:80" or "[fd00::1]:80" to `text` (SOCKADDR_TEXT octets) and returns `text`. */
enum { SOCKADDR_TEXT = 64 };
char *sockaddr_text(const struct sockaddr_storage *addr, char *text);

#endif
