/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3.h - the vocabulary of NFS version 3 (RFC 1813): procedures, statuses, arguments and results as C structures.
 * Names and data point into the message that they were decoded from. They have a length and no terminating NUL. */
#ifndef RDDP_NFS_NFS3_H
#define RDDP_NFS_NFS3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NFS_PROGRAM = 100003,
    NFS_VERSION = 3,
    NFS_PORT = 2049,
    NFS_RDMA_PORT = 20049,
    NFS3_FH_MAX = 64,
    NFS3_VERIFIER = 8,
    NFS3_NAME_MAX = 255,   /* the longest name that we create or accept, in octets */
    NFS3_PATH_MAX = 4096,  /* the longest target of a symbolic link, in octets */
    NFS3_IO_MAX = 1 << 20, /* octets of one READ or WRITE at most: rtmax and wtmax */
};

enum nfs3_proc {
    NFS3_NULL,
    NFS3_GETATTR,
    NFS3_SETATTR,
    NFS3_LOOKUP,
    NFS3_ACCESS,
    NFS3_READLINK,
    NFS3_READ,
    NFS3_WRITE,
    NFS3_CREATE,
    NFS3_MKDIR,
    NFS3_SYMLINK,
    NFS3_MKNOD,
    NFS3_REMOVE,
    NFS3_RMDIR,
    NFS3_RENAME,
    NFS3_LINK,
    NFS3_READDIR,
    NFS3_READDIRPLUS,
    NFS3_FSSTAT,
    NFS3_FSINFO,
    NFS3_PATHCONF,
    NFS3_COMMIT,
    NFS3_STANDARD, /* those of RFC 1813 */
    /* A program of our own, DIGEST_PROGRAM, has it as its procedure 1: READ's arguments, and the digest of that range.
     */
    NFS3_DIGEST = NFS3_STANDARD,
    NFS3_PROCS
};

enum {
    DIGEST_PROGRAM = 0x20727064, /* of the numbers that users define (RFC 5531 13) */
    DIGEST_VERSION = 1,
    DIGEST_PROCS = 2,
    NFS3_DIGEST_OCTETS = 16,
    NFS3_DIGEST_MAX = 16 << 20, /* octets of a range: what one call can make the server read */
};

/* RFC 1813 2.6. An unknown status is kept as a number. */
enum nfs3_status {
    NFS3_OK = 0,
    NFS3ERR_PERM = 1,
    NFS3ERR_NOENT = 2,
    NFS3ERR_IO = 5,
    NFS3ERR_NXIO = 6,
    NFS3ERR_ACCES = 13,
    NFS3ERR_EXIST = 17,
    NFS3ERR_XDEV = 18,
    NFS3ERR_NODEV = 19,
    NFS3ERR_NOTDIR = 20,
    NFS3ERR_ISDIR = 21,
    NFS3ERR_INVAL = 22,
    NFS3ERR_FBIG = 27,
    NFS3ERR_NOSPC = 28,
    NFS3ERR_ROFS = 30,
    NFS3ERR_MLINK = 31,
    NFS3ERR_NAMETOOLONG = 63,
    NFS3ERR_NOTEMPTY = 66,
    NFS3ERR_DQUOT = 69,
    NFS3ERR_STALE = 70,
    NFS3ERR_REMOTE = 71,
    NFS3ERR_BADHANDLE = 10001,
    NFS3ERR_NOT_SYNC = 10002,
    NFS3ERR_BAD_COOKIE = 10003,
    NFS3ERR_NOTSUPP = 10004,
    NFS3ERR_TOOSMALL = 10005,
    NFS3ERR_SERVERFAULT = 10006,
    NFS3ERR_BADTYPE = 10007,
    NFS3ERR_JUKEBOX = 10008,
};

enum nfs3_type { NFS3_REG = 1, NFS3_DIR, NFS3_BLK, NFS3_CHR, NFS3_LNK, NFS3_SOCK, NFS3_FIFO };
enum nfs3_stable { NFS3_UNSTABLE, NFS3_DATA_SYNC, NFS3_FILE_SYNC };
enum nfs3_createmode { NFS3_UNCHECKED, NFS3_GUARDED, NFS3_EXCLUSIVE };
enum nfs3_settime { NFS3_DONT_CHANGE, NFS3_SERVER_TIME, NFS3_CLIENT_TIME };

enum { /* ACCESS */
       NFS3_ACCESS_READ = 0x01,
       NFS3_ACCESS_LOOKUP = 0x02,
       NFS3_ACCESS_MODIFY = 0x04,
       NFS3_ACCESS_EXTEND = 0x08,
       NFS3_ACCESS_DELETE = 0x10,
       NFS3_ACCESS_EXECUTE = 0x20,
};
enum { NFS3_FSF_LINK = 1, NFS3_FSF_SYMLINK = 2, NFS3_FSF_HOMOGENEOUS = 8, NFS3_FSF_CANSETTIME = 16 }; /* FSINFO */

struct nfs3_fh {
    uint32_t length;
    uint8_t data[NFS3_FH_MAX];
};

struct nfs3_text { /* a name, or the path of a symbolic link */
    const char *at;
    uint32_t length;
};

struct nfs3_time {
    uint32_t s, ns;
};

struct nfs3_attr { /* fattr3 */
    enum nfs3_type type;
    uint32_t mode, nlink, uid, gid;
    uint64_t size, used;
    uint32_t major, minor;
    uint64_t fsid, fileid;
    struct nfs3_time atime, mtime, ctime;
};

struct nfs3_sattr {
    bool set_mode, set_uid, set_gid, set_size;
    uint32_t mode, uid, gid;
    uint64_t size;
    enum nfs3_settime set_atime, set_mtime;
    struct nfs3_time atime, mtime;
};

struct nfs3_post_attr { /* post_op_attr */
    bool present;
    struct nfs3_attr attr;
};

struct nfs3_wcc { /* wcc_data */
    bool had;     /* the size and times before the operation are present */
    uint64_t size;
    struct nfs3_time mtime, ctime;
    struct nfs3_post_attr after;
};

struct nfs3_post_fh {
    bool present;
    struct nfs3_fh fh;
};

/* --- arguments ------------------------------------------------------------------------------------------------- */

struct nfs3_where { /* diropargs3 */
    struct nfs3_fh dir;
    struct nfs3_text name;
};

struct nfs3_make { /* CREATE, MKDIR, SYMLINK and MKNOD: each uses the fields that it needs */
    struct nfs3_where where;
    enum nfs3_createmode how;        /* CREATE */
    uint8_t verifier[NFS3_VERIFIER]; /* CREATE, NFS3_EXCLUSIVE: there are no attributes then */
    struct nfs3_sattr attr;
    struct nfs3_text target; /* SYMLINK: DDP-eligible */
    enum nfs3_type type;     /* MKNOD; character and block special files also use major and minor */
    uint32_t major, minor;
};

struct nfs3_list { /* READDIR; READDIRPLUS */
    struct nfs3_fh dir;
    uint64_t cookie;
    uint8_t verifier[NFS3_VERIFIER];
    uint32_t dircount; /* READDIRPLUS: octets of fileid, name and cookie alone */
    uint32_t maxcount; /* octets of the whole result (READDIR: its `count`) */
};

union nfs3_args {
    struct nfs3_fh fh; /* GETATTR, READLINK, FSSTAT, FSINFO, PATHCONF */
    struct {
        struct nfs3_fh fh;
        struct nfs3_sattr attr;
        bool guarded;
        struct nfs3_time ctime;
    } setattr;
    struct nfs3_where where; /* LOOKUP, REMOVE, RMDIR */
    struct {
        struct nfs3_fh fh;
        uint32_t access;
    } access;
    struct {
        struct nfs3_fh fh;
        uint64_t offset;
        uint32_t count;
    } range; /* READ, COMMIT, DIGEST */
    struct {
        struct nfs3_fh fh;
        uint64_t offset;
        uint32_t count;
        enum nfs3_stable stable;
        const void *data; /* `length` octets: DDP-eligible */
        uint32_t length;
    } write;
    struct nfs3_make make; /* CREATE, MKDIR, SYMLINK, MKNOD */
    struct {
        struct nfs3_where from, to;
    } rename;
    struct {
        struct nfs3_fh fh;
        struct nfs3_where to;
    } link;
    struct nfs3_list list; /* READDIR, READDIRPLUS */
};

/* --- results --------------------------------------------------------------------------------------------------- */

/* A directory entry. READDIR uses the first three fields only. */
struct nfs3_entry {
    uint64_t fileid;
    struct nfs3_text name;
    uint64_t cookie;
    struct nfs3_post_attr attr;
    struct nfs3_post_fh fh;
};

/* Fields that do not belong to the procedure, or that belong to NFS3_OK while the status is another, are neither
 * encoded nor decoded. */
struct nfs3_result {
    enum nfs3_status status;
    /* of the object; LOOKUP: of the object found; CREATE, MKDIR, SYMLINK, MKNOD: of the new object */
    struct nfs3_post_attr attr;
    struct nfs3_post_attr dir; /* LOOKUP: of the directory */
    /* of the object (SETATTR, WRITE, COMMIT) or the directory; RENAME: of the directory of `from` */
    struct nfs3_wcc wcc;
    struct nfs3_wcc to_wcc; /* RENAME: of the directory of `to`; LINK: of the directory */
    union {
        struct nfs3_fh fh;        /* LOOKUP */
        struct nfs3_post_fh made; /* CREATE, MKDIR, SYMLINK, MKNOD */
        uint32_t access;          /* ACCESS */
        struct nfs3_text target;  /* READLINK: DDP-eligible */
        struct {
            uint32_t count;
            bool eof;
            const void *data; /* `count` octets: DDP-eligible */
        } read;
        struct {
            uint32_t count;
            enum nfs3_stable committed;
            uint8_t verifier[NFS3_VERIFIER];
        } write; /* COMMIT: the verifier only */
        struct {
            uint64_t octets; /* fewer than were asked for: the file ends there, or the server reads no more at once */
            uint8_t value[NFS3_DIGEST_OCTETS]; /* XXH3 with 128 bits, in its canonical form */
        } digest;
        struct {
            uint8_t verifier[NFS3_VERIFIER];
            /* XDR without the FALSE that ends the list; see nfs3_put_entry() and nfs3_get_entry() */
            const uint8_t *entries;
            uint32_t length;
            bool eof;
        } list;
        struct {
            uint64_t total_bytes, free_bytes, available_bytes, total_files, free_files, available_files;
            uint32_t invariant_s;
        } fsstat;
        struct {
            uint32_t rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref;
            uint64_t maxfilesize;
            struct nfs3_time time_delta;
            uint32_t properties;
        } fsinfo;
        struct {
            uint32_t linkmax, name_max;
            bool no_trunc, chown_restricted, case_insensitive, case_preserving;
        } pathconf;
    };
};

/* A phrase for users, such as "no such file or directory"; static. */
const char *nfs3_status_str(enum nfs3_status status);
const char *nfs3_proc_str(enum nfs3_proc proc);

#endif
