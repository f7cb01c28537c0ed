/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy.h - files on their way between a server and here: some READs or WRITEs of some files under way at once. */
#ifndef TOOLS_NFS_COPY_H
#define TOOLS_NFS_COPY_H

#include <sys/stat.h>

#include "tools/nfs/report.h"
#include "tools/xfer/path.h"
#include "tools/xfer/walk.h"

enum {
    COPY_SMALL = 64 << 10,          /* octets of the buffer of a small slot */
    COPY_SMALL_SLOTS = 3,           /* so many for each large one */
    COPY_RESTARTS_MAX = 16,         /* of the server, while one file is written */
    COPY_COMMIT_OCTETS = 512 << 20, /* written UNSTABLE before a COMMIT: as much may have to be sent again */
    COPY_TIDY_MS = 2000,            /* after an interruption the server may have this long to remove temporaries */
};

/* A directory of the copy. It is there as long as something in it is under way, and then gets its mode and time. */
struct copy_place {
    struct copy_place *up;
    unsigned users;
    int fd;            /* pull: ours */
    struct nfs3_fh fh; /* push: the server's */
    bool finish;       /* we made it, so its mode and time are ours to set */
    uint32_t mode;
    struct nfs3_time mtime, atime;
    char path[]; /* below what the user named, "" for that */
};

struct copy_job;

/* One op and its buffer. */
struct slot {
    struct nfs_op op;
    struct nfs_copy *copy;
    struct copy_job *job; /* NULL: idle */
    bool small;
    uint8_t *buffer;
    uint64_t offset;
    uint32_t length, done;
    struct slot *next; /* of the idle ones */
};

enum job_state {
    JOB_CREATE, /* push: the file is made */
    JOB_FIND,   /* ... and has to be looked up, for the server did not tell its handle */
    JOB_DATA,
    JOB_COMMIT,
    JOB_ATTR,   /* push: mode and time, of a file or of a directory */
    JOB_RENAME, /* push: all of it is there, and it gets its name */
    JOB_LOOK,   /* ... which was there no more: has an earlier call renamed it? */
    JOB_REMOVE, /* push: it failed, and what there is of it goes */
    JOB_OVER,
};

/* A file under way, or a directory that gets its mode and time. */
struct copy_job {
    struct copy_job *next;
    struct copy_place *place; /* the directory it is in; of a directory: itself */
    enum job_state state;
    bool failed, directory;
    bool interrupted; /* it is not over, and nothing failed */
    unsigned under_way;
    int fd;
    char name[XFER_NAME + 1], temp[XFER_NAME + 1];
    struct nfs3_fh fh;
    uint32_t mode;
    struct nfs3_time mtime, atime;
    uint64_t size, next_offset;
    uint64_t prefix; /* pull, when it is interrupted: octets from the beginning that are there */
    /* push: */
    bool made;          /* its temporary is there */
    uint64_t committed; /* octets that the server will not lose */
    bool unstable, verified, changed;
    uint8_t verifier[NFS3_VERIFIER];
    unsigned restarts;
};

struct nfs_copy {
    struct nfs_session *session;
    struct nfs_report *report;
    bool pull;
    struct slot slot[(1 + COPY_SMALL_SLOTS) * NFS_DEPTH_MAX], *idle, *idle_small;
    unsigned slots;
    uint32_t capacity; /* octets of a large buffer */
    struct copy_job *jobs;
    unsigned job_count;
    /* Brings the next file: 1, or 0 when there is none, or -1 when it was none (a directory, a failure). */
    int (*more)(struct nfs_copy *copy);
    void *walker;
    bool over;    /* there is no more */
    bool closing; /* nothing more is asked of the server, but to tidy up until `deadline_ns` */
    uint64_t deadline_ns;
    int code; /* the worst so far */
};

int copy_engine_open(struct nfs_copy *copy, struct nfs_session *s, struct nfs_report *report, bool pull);
/* Until there is nothing more to do. */
int copy_engine_run(struct nfs_copy *copy);
void copy_engine_close(struct nfs_copy *copy);

/* A new job at the end of the list, which holds `place`. NULL: no memory. */
struct copy_job *job_make(struct nfs_copy *copy, struct copy_place *place, const char *name);
/* Says why and marks it; it ends when nothing of it is under way. */
void job_fail(struct nfs_copy *copy, struct copy_job *job, int code, const char *why);
void copy_fail(struct nfs_copy *copy, const char *path, int code, const char *why);

struct copy_place *place_make(struct copy_place *up, const char *name);
void place_hold(struct copy_place *place);
void place_drop(struct nfs_copy *copy, struct copy_place *place);

/* --- pull.c, push.c: what differs between the directions ---------------------------------------------------------- */

/* Starts the next op of the job in `slot`, if there is one now. */
bool pull_issue(struct copy_job *job, struct slot *slot);
bool push_issue(struct copy_job *job, struct slot *slot);
/* The slot's op has ended. True: the slot is free; false: it was started again. */
bool pull_done(struct copy_job *job, struct slot *slot);
bool push_done(struct copy_job *job, struct slot *slot);
/* Nothing of it is under way. True: the job is over. */
bool pull_settle(struct nfs_copy *copy, struct copy_job *job);
bool push_settle(struct nfs_copy *copy, struct copy_job *job);
/* The last user of a directory is gone. True: it may be freed. */
bool pull_leave(struct nfs_copy *copy, struct copy_place *place);
bool push_leave(struct nfs_copy *copy, struct copy_place *place);

int pull_run(struct nfs_session *s, struct nfs_report *report, const char *local);
int push_run(struct nfs_session *s, struct nfs_report *report, const char *local);

#endif
