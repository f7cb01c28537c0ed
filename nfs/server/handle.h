/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handle.h - encodes and decodes file handles, which end with a keyed MAC.
 *
 *   0        1        2..5     6...                                       ...     last 16
 *   1 | kind | count  | export | kernel: type (4), `count` octets               | SipHash-2-4-128 of all before
 *                              | inode: number (8), birth (8), `count` hints    |
 *
 * Only this server decodes them; numbers are little-endian. */
#ifndef RDDP_NFS_SERVER_HANDLE_H
#define RDDP_NFS_SERVER_HANDLE_H

#include "nfs/nfs3.h"

enum {
    HANDLE_KEY = 16,
    HANDLE_MAC = 16,
    HANDLE_HEAD = 6,
    HANDLE_KERNEL_MAX = NFS3_FH_MAX - HANDLE_HEAD - 4 - HANDLE_MAC,
    HANDLE_HINTS_MAX = NFS3_FH_MAX - HANDLE_HEAD - 16 - HANDLE_MAC,
};

enum handle_kind { HANDLE_KERNEL = 1, HANDLE_INODE = 2 };

struct handle {
    enum handle_kind kind;
    uint32_t export;
    int32_t type;          /* kernel: struct file_handle */
    uint64_t inode, birth; /* birth time in ns; 0 if the file system does not have it */
    uint8_t count;         /* of `kernel` octets, or of `hint` octets */
    union {
        uint8_t kernel[HANDLE_KERNEL_MAX];
        uint8_t hint[HANDLE_HINTS_MAX]; /* one octet for each name on the path from the root, as many as fit */
    };
};

/* Reads the key from the directory `state`, and creates it if it does not exist. `state` NULL: makes a random key for
 * this run. Returns 0, or a negative errno and a line in `message` (EXPORT_TEXT octets). */
int handle_key_open(uint8_t key[HANDLE_KEY], const char *state, char *message);

void handle_put(const uint8_t key[HANDLE_KEY], const struct handle *h, struct nfs3_fh *fh);
/* The number of the export that a handle names, whoever made it. */
uint32_t handle_export(const struct nfs3_fh *fh);

/* Returns false if the handle was not made with this key. */
bool handle_get(const uint8_t key[HANDLE_KEY], const struct nfs3_fh *fh, struct handle *h);

#endif
