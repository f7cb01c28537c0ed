/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount3.c - arguments and results of MOUNT version 3 (RFC 1813 appendix I). */
#include "nfs/mount3.h"

#include "nfs/nfs3_xdr_types.h"

void mount3_code_args(struct coder *c, enum mount3_proc proc, struct nfs3_text *path)
{
    if (proc >= MOUNT3_PROCS)
        code_fail(c);
    else if (proc == MOUNT3_MNT || proc == MOUNT3_UMNT)
        code_text(c, path, NFS3_TEXT_MAX);
    code_end(c);
}

/* Decoding keeps the first MOUNT_FLAVORS_MAX flavors of a longer list. */
static void code_flavors(struct coder *c, struct mount3_result *result)
{
    uint32_t flavors = result->flavors, more;

    code32(c, &flavors);
    if (c->bad || (c->writing ? flavors > MOUNT_FLAVORS_MAX : flavors > c->in.left / 4)) {
        code_fail(c);
        flavors = 0;
    }
    for (uint32_t i = 0; i < flavors; i++)
        code32(c, i < MOUNT_FLAVORS_MAX ? &result->flavor[i] : &more);
    if (!c->writing)
        result->flavors = flavors < MOUNT_FLAVORS_MAX ? flavors : MOUNT_FLAVORS_MAX;
}

void mount3_code_mnt(struct coder *c, struct mount3_result *result)
{
    uint32_t status = result->status;

    code32(c, &status);
    result->status = status;
    if (status == MNT3_OK) {
        code_fh(c, &result->fh);
        code_flavors(c, result);
    }
    code_end(c);
}

/* The bool that precedes each element of a list. */
static bool code_another(struct coder *c)
{
    bool another = true;

    code_bool(c, &another);
    return another && !c->bad;
}

bool mount3_code_mounted(struct coder *c, struct nfs3_text *host, struct nfs3_text *path)
{
    if (!code_another(c))
        return false;
    code_text(c, host, MOUNT_NAME_MAX);
    code_text(c, path, MOUNT_PATH_MAX);
    return !c->bad;
}

bool mount3_code_export(struct coder *c, struct nfs3_text *path, struct nfs3_text *group, uint32_t *groups,
                        uint32_t groups_max)
{
    struct nfs3_text more;
    uint32_t n = 0;
    bool no = false;

    if (!c->writing)
        *groups = 0;
    if (!code_another(c))
        return false;
    code_text(c, path, MOUNT_PATH_MAX);
    if (c->writing) {
        for (; n < *groups && code_another(c); n++)
            code_text(c, &group[n], MOUNT_NAME_MAX);
        code_bool(c, &no);
        return !c->bad;
    }
    while (code_another(c)) {
        code_text(c, n < groups_max ? &group[n] : &more, MOUNT_NAME_MAX);
        n += n < groups_max;
    }
    *groups = c->bad ? 0 : n;
    return !c->bad;
}

const char *mount3_status_str(enum mount3_status status)
{
    switch (status) {
    case MNT3_OK:
        return "done";
    case MNT3ERR_PERM:
        return "not the owner";
    case MNT3ERR_NOENT:
        return "no such file or directory";
    case MNT3ERR_IO:
        return "input or output error at the server";
    case MNT3ERR_ACCES:
        return "permission denied";
    case MNT3ERR_NOTDIR:
        return "not a directory";
    case MNT3ERR_INVAL:
        return "invalid argument";
    case MNT3ERR_NAMETOOLONG:
        return "the name is too long";
    case MNT3ERR_NOTSUPP:
        return "not supported";
    case MNT3ERR_SERVERFAULT:
        return "server fault";
    }
    return "a status unknown to RFC 1813";
}
