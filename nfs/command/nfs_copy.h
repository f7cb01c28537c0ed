/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_copy.h - copies between a server and this machine: READs or WRITEs of several files are under way. */
#ifndef RDDP_NFS_COMMAND_NFS_COPY_H
#define RDDP_NFS_COMMAND_NFS_COPY_H

#include <sys/stat.h>

#include "nfs/command/nfs_report.h"
#include "tools/xfer/path.h"
#include "tools/xfer/walk.h"

enum {
    COPY_SMALL = 64 << 10,          /* octets of the buffer of a small slot */
    COPY_SMALL_SLOTS = 3,           /* small slots for each large one */
    COPY_RESTARTS_MAX = 16,         /* limit for restarts of the server while one file is written */
    COPY_COMMIT_OCTETS = 512 << 20, /* octets written UNSTABLE before a COMMIT; they may have to be sent again */
    COPY_TIDY_MS = 2000,            /* after an interruption, time for the server to remove temporary files */
};

/* A directory of the copy. It lives while something in it is under way, and then gets its mode and time. */
struct copy_place {
    struct copy_place *up;
    unsigned users;
    int fd;            /* pull: the local directory */
    struct nfs3_fh fh; /* push: the server's directory */
    bool finish;       /* the copy created it, so its mode and time are to be set */
    uint32_t mode;
    struct nfs3_time mtime, atime;
    char path[]; /* relative to the path that the user gave; "" is that path itself */
};

struct copy_job;

/* An op and its buffer. */
struct slot {
    struct nfs_op op;
    struct nfs_copy *copy;
    struct copy_job *job; /* NULL: idle */
    bool small;
    uint8_t *buffer;
    uint64_t offset;
    uint32_t length, done;
    struct slot *next; /* in a list of idle slots */
};

enum job_state {
    JOB_CREATE, /* push: create the temporary file */
    JOB_FIND,   /* push: look it up, since the server did not return its handle */
    JOB_DATA,
    JOB_COMMIT,
    JOB_DIGEST, /* all octets are there; compare them with the server's, if both ends are ours */
    JOB_ATTR,   /* push: set mode and time of a file or directory */
    JOB_RENAME, /* push: all data are written; rename the file to its name */
    JOB_LOOK,   /* push: the temporary was gone; check whether an earlier RENAME has succeeded */
    JOB_REMOVE, /* push: it failed; remove the temporary file */
    JOB_OVER,
};

/* A file under way, or a directory that gets its mode and time. */
struct copy_job {
    struct copy_job *next;
    struct copy_place *place; /* the directory of the file; for a directory: itself */
    enum job_state state;
    bool failed, directory;
    bool interrupted; /* the command was interrupted; the file has not failed */
    unsigned under_way;
    int fd;
    char name[XFER_NAME + 1], temp[XFER_NAME + 1];
    struct nfs3_fh fh;
    uint32_t mode;
    struct nfs3_time mtime, atime;
    uint64_t size, next_offset;
    uint64_t summed, verified_octets; /* octets whose digest was asked for, and was the same */
    uint64_t prefix;                  /* pull, when interrupted: octets from the beginning that were written */
    /* For push: */
    bool made;          /* the temporary file exists */
    uint64_t committed; /* octets that are safe on the server's disk */
    bool unstable, verified, changed;
    uint8_t verifier[NFS3_VERIFIER];
    unsigned restarts;
};

/* What differs between the two directions: download.c, upload.c. */
struct copy_direction {
    bool pulls;
    /* Starts the next op of the job in `slot`. Returns false if there is none now. */
    bool (*issue)(struct copy_job *job, struct slot *slot);
    /* The op of the slot has ended. Returns true if the slot is free, false if another op was started in it. */
    bool (*done)(struct copy_job *job, struct slot *slot);
    /* No op of the job is under way. Returns true if the job is over. */
    bool (*settle)(struct nfs_copy *copy, struct copy_job *job);
    /* The last user of a directory has gone. Returns true if it may be freed. */
    bool (*leave)(struct nfs_copy *copy, struct copy_place *place);
};

struct nfs_copy {
    struct nfs_session *session;
    struct nfs_report *report;
    const struct copy_direction *direction;
    struct slot slot[(1 + COPY_SMALL_SLOTS) * NFS_DEPTH_MAX], *idle, *idle_small;
    unsigned slots;
    uint32_t capacity; /* octets of a large buffer */
    struct copy_job *jobs;
    unsigned job_count;
    /* Brings the next file. Returns 1; 0 if there are no more; -1 if this entry is not a file to copy (a directory, a
     * failure). */
    int (*more)(struct nfs_copy *copy);
    void *walker;
    bool over;    /* there are no more files */
    bool summed;  /* the server gives digests */
    bool closing; /* start nothing but the removal of temporary files, until `deadline_ns` */
    uint64_t deadline_ns;
    int code; /* the worst exit code so far */
};

int copy_engine_open(struct nfs_copy *copy, struct nfs_session *s, struct nfs_report *report,
                     const struct copy_direction *direction);
/* Copies until everything is done. Returns an exit code. */
int copy_engine_run(struct nfs_copy *copy);
void copy_engine_close(struct nfs_copy *copy);

/* Appends a new job, which holds `place`. NULL: no memory. */
struct copy_job *job_make(struct nfs_copy *copy, struct copy_place *place, const char *name);
/* Reports and marks the failure. The job ends when none of its ops is under way. */
void job_fail(struct nfs_copy *copy, struct copy_job *job, int code, const char *why);
void copy_fail(struct nfs_copy *copy, const char *path, int code, const char *why);

struct copy_place *place_make(struct copy_place *up, const char *name);
/* Releases a use of the place; the last release finishes and frees the directory. */
void place_put(struct nfs_copy *copy, struct copy_place *place);

/* --- copy_digest.c: over a TCP of our own, a server of ours gives digests ----------------------------------------- */

/* Finds out whether the server gives any. */
void digest_ask(struct nfs_copy *copy);
/* Is it time to compare the octets of this file? */
bool digest_is_due(const struct nfs_copy *copy, const struct copy_job *job);
/* Asks for the next digest. Returns false if all were asked for. */
bool digest_issue(struct copy_job *job, struct slot *slot);
/* Compares it with the same octets here. */
void digest_done(struct copy_job *job, struct slot *slot);

/* --- download.c, upload.c: the two directions --------------------------------------------------------------------- */

/* In upload.c. */
extern const struct copy_direction push_direction;

int pull_run(struct nfs_session *s, struct nfs_report *report, const char *local);
int push_run(struct nfs_session *s, struct nfs_report *report, const char *local);

#endif
