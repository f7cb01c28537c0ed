/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy_digest.c - compares a file with the digests of a server of ours. Where packets bring octets to their places,
 * they came by maps in them, and this finds what no checksum of TCP could: an octet at the wrong place. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "nfs/command/nfs_copy.h"

/* ASK_MS: some servers do not answer calls of programs that they do not know. */
enum { DIGEST_READ = 65536, ASK_MS = 5000 };

/* Any answer of the program will do: the root has no digest. No other call is under way yet, so that on a slow path no
 * octets of others pass for the server's silence. */
void digest_ask(struct nfs_copy *copy)
{
    struct nfs_client *client = copy->session->client;
    struct nfs_op op = {.proc = NFS3_DIGEST, .timeout_ms = ASK_MS};
    if (!copy->session->net)
        return;
    op.args.range.fh = *nfs_root(client);
    nfs_call(client, &op);
    copy->summed = !op.error;
    copy->report->unsummed = !copy->summed;
    nfs_forget(&op);
}

bool digest_is_due(const struct nfs_copy *copy, const struct copy_job *job)
{
    return copy->summed && !job->directory && job->summed < job->size;
}

bool digest_issue(struct copy_job *job, struct slot *slot)
{
    uint64_t left = job->size - job->summed;
    if (!left)
        return false;
    slot->offset = job->summed;
    slot->length = (uint32_t)(left < NFS3_DIGEST_MAX ? left : NFS3_DIGEST_MAX);
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

void digest_done(struct copy_job *job, struct slot *slot)
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
