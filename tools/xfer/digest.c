/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* digest.c - the digest of a file (doc/cp-protocol.md, "The digest"): hashes blocks of octets, and where the zeros are.
 */
#include <string.h>

#include "tools/xfer/digest.h"

void digest_reset(struct file_digest *digest)
{
    XXH3_128bits_reset(digest->data);
    digest->length = digest->zeros = digest->runs = 0;
}

bool digest_open(struct file_digest *digest)
{
    digest->data = XXH3_createState();
    if (digest->data)
        digest_reset(digest);
    return digest->data;
}

void digest_close(struct file_digest *digest)
{
    XXH3_freeState(digest->data);
    *digest = (struct file_digest){0};
}

/* Takes the same number to the same octets on each machine. */
static uint8_t *digest_put(uint8_t *p, uint64_t value)
{
    for (int i = 8; i--; value >>= 8)
        p[i] = (uint8_t)value;
    return p + 8;
}

static void hash_zeros(struct file_digest *digest, size_t n)
{
    static const uint8_t zeros[DIGEST_BLOCK];
    XXH3_128bits_update(digest->data, zeros, n);
}

/* Octets other than zero follow, so that the zeros at the end become a run of whole blocks and the beginning of the
 * current one. */
static void end_zeros(struct file_digest *digest)
{
    uint64_t run = digest->zeros - digest->zeros % DIGEST_BLOCK;
    uint8_t where[16];
    if (run) {
        digest_put(digest_put(where, digest->length - digest->zeros), run);
        digest->runs = XXH3_64bits_withSeed(where, sizeof(where), digest->runs);
    }
    hash_zeros(digest, digest->zeros % DIGEST_BLOCK);
    digest->zeros = 0;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    return !p[0] && !memcmp(p, p + 1, n - 1);
}

void digest_octets(struct file_digest *digest, const uint8_t *p, size_t n)
{
    size_t from = 0, at = 0; /* the octets between them are to be hashed */
    while (at < n) {
        size_t in_block = digest->length % DIGEST_BLOCK;
        size_t take = n - at < DIGEST_BLOCK - in_block ? n - at : DIGEST_BLOCK - in_block;
        if (digest->zeros >= in_block && all_zero(p + at, take)) {
            XXH3_128bits_update(digest->data, p + from, at - from);
            from = at + take;
            digest->zeros += take;
        } else if (digest->zeros) {
            end_zeros(digest);
        }
        digest->length += take;
        at += take;
    }
    XXH3_128bits_update(digest->data, p + from, n - from);
}

void digest_zeros(struct file_digest *digest, uint64_t n)
{
    size_t in_block = digest->length % DIGEST_BLOCK;
    if (digest->zeros < in_block) {
        size_t rest = n < DIGEST_BLOCK - in_block ? (size_t)n : DIGEST_BLOCK - in_block;
        hash_zeros(digest, rest);
        digest->length += rest;
        n -= rest;
    }
    digest->length += n;
    digest->zeros += n;
}

void digest_value(const struct file_digest *digest, uint8_t value[XFER_DIGEST])
{
    XXH128_canonical_t canonical;
    uint8_t all[sizeof(canonical.digest) + 24];
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest->data));
    memcpy(all, canonical.digest, sizeof(canonical.digest));
    digest_put(digest_put(digest_put(all + sizeof(canonical.digest), digest->length), digest->zeros), digest->runs);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(all, sizeof(all)));
    memcpy(value, canonical.digest, XFER_DIGEST);
}
