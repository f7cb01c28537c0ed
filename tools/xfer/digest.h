/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* digest.h - the digest of a file. A block of zeros counts the same whether it is stored or a hole, and costs the same
 * however long it is: a peer needs a few octets to announce a hole of 2^60. */
#ifndef TOOLS_XFER_DIGEST_H
#define TOOLS_XFER_DIGEST_H

#include <stdbool.h>
#include <stdint.h>
#include <xxhash.h>

#include "tools/xfer/xfer.h"

enum { DIGEST_BLOCK = 4096 };

struct file_digest {
    XXH3_state_t *data; /* of all octets that are not in a run of zero blocks; NULL: not open */
    uint64_t length;    /* octets so far */
    uint64_t zeros;     /* at their end, from the beginning of a block: not in `data` yet */
    uint64_t runs;      /* hash of where the runs of zero blocks are */
};

/* Begins the digest of an empty file. Returns false without memory. */
bool digest_open(struct file_digest *digest);
/* Safe on zeros, and safe to call twice. */
void digest_close(struct file_digest *digest);
/* Begins again. */
void digest_reset(struct file_digest *digest);
/* The next octets of the file. */
void digest_octets(struct file_digest *digest, const uint8_t *p, size_t n);
/* The next `n` octets are zeros. Takes the same time for any `n`. */
void digest_zeros(struct file_digest *digest, uint64_t n);
/* Writes the digest of the octets so far. More may follow. */
void digest_value(const struct file_digest *digest, uint8_t value[XFER_DIGEST]);

#endif
