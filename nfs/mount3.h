/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount3.h - MOUNT version 3 (RFC 1813 appendix I): turns the path of an export into a file handle. */
#ifndef RDDP_NFS_MOUNT3_H
#define RDDP_NFS_MOUNT3_H

#include "nfs/nfs3_xdr.h"

enum {
    MOUNT_PROGRAM = 100005,
    MOUNT_VERSION = 3,
    MOUNT_PORT = 20048,
    MOUNT_PATH_MAX = 1024,
    MOUNT_NAME_MAX = 255,
    MOUNT_FLAVORS_MAX = 8,
};

enum mount3_proc { MOUNT3_NULL, MOUNT3_MNT, MOUNT3_DUMP, MOUNT3_UMNT, MOUNT3_UMNTALL, MOUNT3_EXPORT, MOUNT3_PROCS };

enum mount3_status {
    MNT3_OK = 0,
    MNT3ERR_PERM = 1,
    MNT3ERR_NOENT = 2,
    MNT3ERR_IO = 5,
    MNT3ERR_ACCES = 13,
    MNT3ERR_NOTDIR = 20,
    MNT3ERR_INVAL = 22,
    MNT3ERR_NAMETOOLONG = 63,
    MNT3ERR_NOTSUPP = 10004,
    MNT3ERR_SERVERFAULT = 10006,
};

struct mount3_result { /* MNT */
    enum mount3_status status;
    struct nfs3_fh fh;
    uint32_t flavors, flavor[MOUNT_FLAVORS_MAX];
};

/* Encodes or decodes, like all functions of struct coder (nfs3_xdr.h). MNT and UMNT have a path, the other procedures
 * no arguments. Decoding: a path may be longer than MOUNT_PATH_MAX, up to NFS3_TEXT_MAX; the first MOUNT_FLAVORS_MAX
 * flavors are kept; octets left over make the message bad. */
void mount3_code_args(struct coder *c, enum mount3_proc proc, struct nfs3_text *path);
void mount3_code_mnt(struct coder *c, struct mount3_result *result);

/* The lists of DUMP (host and directory) and EXPORT (directory and groups), one element a call; code_bool() codes the
 * FALSE that ends a list. Decoding: returns false at the end, and keeps the first `groups_max` groups. */
bool mount3_code_mounted(struct coder *c, struct nfs3_text *host, struct nfs3_text *path);
bool mount3_code_export(struct coder *c, struct nfs3_text *path, struct nfs3_text *group, uint32_t *groups,
                        uint32_t groups_max);

const char *mount3_status_str(enum mount3_status status);

#endif
