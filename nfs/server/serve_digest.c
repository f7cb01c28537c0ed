/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_digest.c - serves DIGEST, a procedure of our own: the digest of a range of a file, for a client that compares
 * it with what it has. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "nfs/server/serve_in.h"

enum { STEP = 16384 };

/* Sums up to `left` octets from `at` on. Returns 0 or a negative errno. */
static int sum_range(XXH3_state_t *sum, int fd, uint64_t at, uint64_t left, uint64_t *done)
{
    uint8_t octets[STEP];

    for (*done = 0; left;) {
        ssize_t got = pread(fd, octets, left < STEP ? (size_t)left : STEP, (off_t)(at + *done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : 0;
        XXH3_128bits_update(sum, octets, (size_t)got);
        *done += (uint64_t)got;
        left -= (uint64_t)got;
    }
    return 0;
}

enum nfs3_status serve_digest(struct serve_call *c)
{
    uint64_t offset = c->args->range.offset, count = c->args->range.count;
    XXH128_canonical_t value;
    XXH3_state_t *sum;
    int fd, error;

    if (!S_ISREG(c->object->type) || offset > INT64_MAX - NFS3_DIGEST_MAX)
        return NFS3ERR_INVAL;
    fd = call_open_to_read(c);
    if (fd < 0)
        return nfs3_status_of(-fd);
    sum = XXH3_createState();
    if (!sum)
        return NFS3ERR_JUKEBOX;
    XXH3_128bits_reset(sum);
    error = sum_range(sum, fd, offset, count < NFS3_DIGEST_MAX ? count : NFS3_DIGEST_MAX, &c->result->digest.octets);
    XXH128_canonicalFromHash(&value, XXH3_128bits_digest(sum));
    memcpy(c->result->digest.value, value.digest, NFS3_DIGEST_OCTETS);
    XXH3_freeState(sum);
    return nfs3_status_of(-error);
}
