/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_in.h - the NFS server from within: a call as its files see it, and what they share. All of it is the main
 * thread's, but for a job between workers_give() and workers_take(). */
#ifndef RDDP_NFS_SERVER_NFSD_IN_H
#define RDDP_NFS_SERVER_NFSD_IN_H

#include <stdatomic.h>

#include "nfs/record.h"
#include "nfs/server/nfsd.h"
#include "nfs/server/work.h"
#include "rpc/budget.h"
#include "rpc/log.h"
#include "rpc/replay.h"
#include "rpc/responder.h"

enum {
    NFSD_HEAD = 1024,          /* octets of a reply without data and entries */
    NFSD_ROOM_MAX = 2 << 20,   /* ... of what a result points to */
    NFSD_BUFFER = NFS3_IO_MAX, /* buffers of this size are kept for the next large READ, so many */
    NFSD_BUFFER_MIN = 65536,   /* large: more than this */
    NFSD_BUFFERS = 32,
    NFSD_REPLAYS = 16384, /* calls of a transport whose replies are kept, those of 256 clients with all their credits */
    NFSD_TICK_MS = 1000,
    NFSD_STRANGERS = 16,  /* connections of peers that no export allows: for MOUNT to say so */
    NFSD_STRANGER = 4096, /* octets of a call of theirs */
};

struct nfsd_job;

/* --- a descriptor that the main thread waits for ---------------------------------------------------------------- */

struct source {
    void (*ready)(struct nfsd *d, struct source *source, uint32_t events);
    int fd;
};

int source_watch(struct nfsd *d, struct source *source, uint32_t events);
void source_change(struct nfsd *d, const struct source *source, uint32_t events);

/* --- memory: nfsd_memory.c -------------------------------------------------------------------------------------- */

/* A connection, as far as it holds memory. */
struct owner {
    uint64_t held;
    unsigned jobs;                            /* all of its calls */
    struct nfsd_job *waiting, **last;         /* those that wait for memory, in turn */
    struct owner *next;                       /* of those that have some */
    struct nfsd_job *searches, **last_search; /* those whose handles are to be looked for, in turn */
    bool is_searching;                        /* for one of them */
};

struct memory {
    struct budget budget;
    struct owner *waiting, **last;
    bool freed; /* since they were looked at */
    void *buffer[NFSD_BUFFERS];
    unsigned buffers;
};

void memory_init(struct memory *memory, uint64_t max);
void memory_fini(struct memory *memory);
/* The job's charge is taken; or it waits, and this is false. */
bool memory_admit(struct memory *memory, struct nfsd_job *job);
/* The next job that waited and need not any more, admitted; or NULL. */
struct nfsd_job *memory_next(struct memory *memory);
/* All of the job's charge, or so many octets of it, for which there is no need. */
void memory_release(struct memory *memory, struct nfsd_job *job);
void memory_refund(struct memory *memory, struct nfsd_job *job, size_t octets);
/* Takes the owner's waiting jobs (NULL: all) out, as a list by `next`. */
struct nfsd_job *memory_withdraw(struct memory *memory, struct owner *owner);
/* Whether somebody waits for memory who has none. */
bool memory_is_pressed(const struct memory *memory);
uint8_t *memory_buffer(struct memory *memory, size_t capacity);
void memory_give_back(struct memory *memory, uint8_t *buffer, size_t capacity);

/* --- a call: nfsd_job.c ----------------------------------------------------------------------------------------- */

/* What a transport does for its calls. Each but `begin` ends the job, sooner or later, with job_end(). */
struct job_ops {
    bool (*begin)(struct nfsd_job *job);  /* it is about to be executed; false: it need not, the transport has it */
    void (*answer)(struct nfsd_job *job); /* with job->head, and job->data in its place */
    void (*refuse)(struct nfsd_job *job); /* its Read chunks are not what they may be */
    void (*drop)(struct nfsd_job *job);   /* silence */
    bool (*is_over)(const struct nfsd_job *job); /* there is nobody to be answered any more */
};

struct nfsd_job {
    struct work work; /* the first member */
    const struct job_ops *ops;
    struct nfsd *nfsd;
    struct owner *owner;
    struct nfsd_job *next; /* of a list: waiting, withdrawn */
    struct sockaddr_storage peer;
    const uint8_t *message; /* the RPC message, and what came beside it */
    size_t length;
    const struct stream_item *item;
    unsigned items;
    bool mount_only;  /* NFS is not served over this transport */
    bool is_stranger; /* no export allows the peer: MOUNT says so */
    bool views;       /* data of a reply may change or go while it is sent */
    size_t charge;
    bool search; /* it has to be looked for what its handle names */

    struct rpc_call call;
    struct rpc_reply reply;
    union nfs3_args args;
    struct nfs3_text path; /* MOUNT */
    struct nfs3_result result;
    struct mount3_result mount;
    uint8_t *buffer;
    size_t capacity;
    struct view *view; /* data are there, and not in the buffer */

    uint8_t *head; /* the reply: `small`, or of the heap */
    size_t head_length;
    struct stream_item data; /* left out of it */
    unsigned datas;          /* 0 or 1 */
    uint8_t small[NFSD_HEAD];
};

/* The transport has filled in what is above `charge`. */
void job_start(struct nfsd_job *job);
/* After `answer` and the like: gives back what the job holds, but not the job. */
void job_end(struct nfsd_job *job);
/* In a thread that may wait, with or without looking for what handles name. */
void job_run(struct nfsd_job *job, bool search);
/* A worker is done with it. */
void job_finish(struct nfsd_job *job);
/* What waited for memory and has it now begins. */
void jobs_resume(struct nfsd *d);
/* Executed twice it would not do the same again: a retransmission gets the first one's reply. */
bool job_is_once_only(const struct nfsd_job *job);

/* --- handles that are looked for: nfsd_search.c ------------------------------------------------------------------ */

/* Does the job's work when its turn comes. */
void nfsd_search(struct nfsd *d, struct nfsd_job *job);
void nfsd_search_done(struct nfsd *d);

/* --- transports: nfsd_tcp.c, nfsd_rdma.c ------------------------------------------------------------------------ */

struct tcp_listener {
    struct source source; /* the first member */
    bool paused;          /* descriptors have run out */
};

struct tcp_conn;

struct tcp {
    struct tcp_listener listener[2]; /* NFS, MOUNT */
    unsigned listeners;
    struct tcp_conn *conns; /* also those that are closed and have calls in work */
    unsigned strangers;
    struct tcp_conn *dirty; /* with replies that have not been tried to send */
    uint8_t *stage;
    struct replay replay;
    bool resume; /* somebody who was not read may be read again */
};

int nfstcp_init(struct nfsd *d);
/* 0, or a negative errno. */
int nfstcp_listen(struct nfsd *d, const struct sockaddr *addr, socklen_t length);
/* The end of a turn: replies leave, what is dead goes, and who may speak is listened to. */
void nfstcp_turn(struct nfsd *d);
void nfstcp_tick(struct nfsd *d, uint64_t now_ms);
bool nfstcp_is_quiet(const struct nfsd *d);
/* No new connection, no new call. */
void nfstcp_stop(struct nfsd *d);
void nfstcp_fini(struct nfsd *d);

struct rdma {
    struct source source; /* the first member */
    struct responder *responder;
    struct rdma_peer *peers;
    bool in_run, answered; /* outside of responder_run() a reply waits for the next one */
};

int nfsrdma_listen(struct nfsd *d, const struct sockaddr *addr, socklen_t length);
void nfsrdma_run(struct nfsd *d);
bool nfsrdma_is_quiet(const struct nfsd *d);
void nfsrdma_fini(struct nfsd *d);

/* --- the server: nfsd.c ----------------------------------------------------------------------------------------- */

struct counters {
    _Atomic uint64_t calls, errors, replayed, read_octets, written_octets;
    _Atomic uint32_t tcp_connections, rdma_connections;
    _Atomic uint64_t rdma_replayed;
};

struct nfsd {
    struct nfsd_attr attr;
    int epoll;
    struct source stop, done, found, mounted; /* eventfds: of nfsd_stop() and of the threads */
    struct workers *workers, *searcher;
    struct workers *mounter; /* MNT: nobody waits for the disk before he has mounted */
    struct work tend;        /* of what is open, by a worker */
    bool is_tending;         /* now */
    atomic_bool is_open;     /* something was left */
    unsigned in_work;
    bool stopping;
    bool in_memory; /* one of the exports is: it may be worth asking for a WRITE now */
    struct memory memory;
    struct tcp tcp;
    struct rdma rdma;
    struct counters counters;
    int rdma_port, tcp_port, mount_port;
    uint64_t ticked_ms;
    struct rpc_log log;
};

/* --- who may come: nfsd_log.c ------------------------------------------------------------------------------------ */

void nfsd_log_init(struct nfsd *d);

/* Whether some export allows this peer. If not, there is a line. */
bool nfsd_admits(struct nfsd *d, const struct sockaddr_storage *peer);

#endif
