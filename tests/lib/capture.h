/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.h - what others said to each other, read from tests/captures/NAME.txt: a message a line. */
#ifndef TESTS_LIB_CAPTURE_H
#define TESTS_LIB_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

enum { CAPTURE_MESSAGE = 10000 }; /* octets of one, at most */

/* `take` gets each message in turn, and whose it is: C the client's, S the server's. */
void capture_each(const char *name, void (*take)(char side, const uint8_t *p, size_t n));

#endif
