/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.h - reads a recorded conversation of other implementations from tests/captures/NAME.txt: one message per
 * line. */
#ifndef TESTS_LIB_CAPTURE_H
#define TESTS_LIB_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

enum { CAPTURE_MESSAGE = 10000 }; /* octets of a message, at most */

/* Calls take() for each message; `side` is C for the client, S for the server. */
void capture_each(const char *name, void (*take)(char side, const uint8_t *p, size_t n));

#endif
