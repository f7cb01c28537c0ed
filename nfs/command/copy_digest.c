/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy_digest.c - compares a file with the digests of a server of ours. Where packets bring octets to their places,
 * they came by maps in them, and this finds what no checksum of TCP could: an octet at the wrong place. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "nfs/command/nfs_copy.h"

/* FIRST_OCTETS, FIRST_MS: of the first call, which is alone. Some servers do not answer those of programs that they do
 * not know. */
enum { DIGEST_READ = 65536, FIRST_OCTETS = 65536, FIRST_MS = 5000 };

bool digest_is_due(const struct nfs_copy *copy, const struct copy_job *job)
{
    return copy->session->net && !copy->unsummed && !job->directory && job->summed < job->size;
}

bool digest_issue(struct copy_job *job, struct slot *slot)
{
    uint64_t left = job->size - job->summed, most = slot->copy->summed ? NFS3_DIGEST_MAX : FIRST_OCTETS;
    if (!left || slot->copy->unsummed || slot->copy->asking)
        return false;
    slot->copy->asking = !slot->copy->summed;
    slot->offset = job->summed;
    slot->length = (uint32_t)(left < most ? left : most);
    slot->op.timeout_ms = slot->copy->asking ? FIRST_MS : 0;
    slot->done = 0;
    job->summed += slot->length;
    slot->op.proc = NFS3_DIGEST;
    slot->op.args.range.fh = job->fh;
    slot->op.args.range.offset = slot->offset;
    slot->op.args.range.count = slot->length;
    return true;
}

/* The digest of these octets of the file here. Returns 0 or a negative errno. */
static int sum_here(int fd, uint64_t offset, uint32_t length, uint8_t value[NFS3_DIGEST_OCTETS])
{
    XXH3_state_t *sum = XXH3_createState();
    XXH128_canonical_t canonical;
    uint8_t octets[DIGEST_READ];
    int error = sum ? 0 : -ENOMEM;
    if (sum)
        XXH3_128bits_reset(sum);
    for (uint32_t done = 0; done < length && !error;) {
        uint32_t left = length - done;
        ssize_t got = pread(fd, octets, left < DIGEST_READ ? left : DIGEST_READ, (off_t)(offset + done));
        if (got > 0)
            XXH3_128bits_update(sum, octets, (size_t)got);
        else if (!got || errno != EINTR)
            error = got ? -errno : -EIO;
        done += got > 0 ? (uint32_t)got : 0;
    }
    if (!error) {
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(sum));
        memcpy(value, canonical.digest, NFS3_DIGEST_OCTETS);
    }
    XXH3_freeState(sum);
    return error;
}

static void compare_digest(struct copy_job *job, const struct slot *slot)
{
    struct nfs_copy *copy = slot->copy;
    const struct nfs_op *op = &slot->op;
    uint8_t value[NFS3_DIGEST_OCTETS];
    if (op->error || op->result.status != NFS3_OK) {
        job_fail(copy, job, nfs_exit_code(op->error), nfs_why(op));
        return;
    }
    int error = sum_here(job->fd, slot->offset, slot->length, value);
    if (error)
        job_fail(copy, job, EXIT_FAILED, xfer_result_text(xfer_result_of(-error)));
    else if (op->result.digest.octets != slot->length || memcmp(value, op->result.digest.value, sizeof(value)))
        job_fail(copy, job, EXIT_FAILED, "the server has other octets, or the file has changed");
    else
        job->verified_octets += slot->length;
}

void digest_done(struct copy_job *job, struct slot *slot)
{
    struct nfs_copy *copy = slot->copy;
    struct nfs_op *op = &slot->op;
    bool is_late = copy->asking && op->error == -ETIMEDOUT;
    copy->asking = false;
    copy->summed |= !op->error;
    if (is_late || op->error == -EOPNOTSUPP)
        copy->unsummed = copy->report->unsummed = true;
    else
        compare_digest(job, slot);
    op->timeout_ms = 0;
}
