/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_in.h - the inside of the NFS server: the state of a call, and what its files share. The main thread owns all of
 * it; a job belongs to a worker from workers_give() until workers_take() returns it. */
#ifndef RDDP_NFS_SERVER_NFSD_IN_H
#define RDDP_NFS_SERVER_NFSD_IN_H

#include <stdatomic.h>

#include "nfs/record.h"
#include "nfs/server/nfsd.h"
#include "nfs/server/work.h"
#include "rpc/budget.h"
#include "rpc/rpc_log.h"
#include "rpc/replay.h"
#include "rpc/responder.h"

enum {
    NFSD_HEAD = 1024,          /* octets of a reply without data and directory entries */
    NFSD_RESULT_MAX = 2 << 20, /* octets that a result may point to */
    NFSD_BUFFER = NFS3_IO_MAX, /* size of the buffers that are kept for later large READs */
    NFSD_BUFFER_MIN = 65536,   /* READs larger than this use such a buffer */
    NFSD_BUFFERS = 32,
    NFSD_DIGESTS = 48,    /* of the longest ranges, of all clients, that may be in work or wait for a thread */
    NFSD_REPLAYS = 16384, /* replies that each transport keeps: those of 256 clients with all their credits */
    NFSD_TICK_MS = 1000,
    NFSD_UNADMITTED_MAX = 16, /* connections from addresses that no export allows; they get an answer from MOUNT */
    NFSD_UNADMITTED = 4096,   /* the longest call of such a connection, in octets */
};

struct nfsd_job;

/* An export with the threads of its calls: what waits for its file system delays no other export. */
struct nfsd_export {
    struct nfsd *nfsd;
    struct export *export;
    struct workers *calls;
    struct workers *mounts; /* for MNT, so that it does not wait behind the slow calls of clients that have mounted */
    struct workers *searches;
    struct work tend; /* closes unused objects, in a thread of `calls` */
    bool is_tending;  /* `tend` is with a thread */
    uint64_t held;    /* octets that calls hold which are in work, or have their memory reserved */
};

/* --- descriptors that the main thread waits for: nfsd_source.c -------------------------------------------------- */

struct source {
    void (*ready)(struct nfsd *d, struct source *source, uint32_t events);
    int fd;
};

int source_watch(struct nfsd *d, struct source *source, uint32_t events);
void source_change(struct nfsd *d, const struct source *source, uint32_t events);

/* --- memory: nfsd_memory.c -------------------------------------------------------------------------------------- */

/* A connection with its share of the memory and its calls. */
struct owner {
    uint64_t held;
    unsigned jobs;                            /* the number of its calls */
    struct nfsd_job *waiting, **last;         /* calls that wait for memory, first come first */
    struct owner *next;                       /* in the list of owners with waiting calls */
    struct nfsd_job *searches, **last_search; /* calls that wait for a search, first come first */
    bool is_searching;                        /* a search for one of them is under way */
};

struct memory {
    struct budget budget;
    uint64_t export_max; /* octets that the calls of one export may hold, so that a silent one leaves some to others */
    struct owner *waiting, **last;
    bool freed; /* memory was returned since the owners were last tried */
    void *buffer[NFSD_BUFFERS];
    unsigned buffers;
};

void memory_init(struct memory *memory, uint64_t max, uint64_t export_max);
void memory_fini(struct memory *memory);
/* Reserves the job's charge. Returns false if the job must wait for memory instead. */
bool memory_admit(struct memory *memory, struct nfsd_job *job);
/* Returns the next job that waited and now has its charge reserved; or NULL. */
struct nfsd_job *memory_next(struct memory *memory);
/* Return the job's whole charge, or `octets` of it that it does not need. */
void memory_release(struct memory *memory, struct nfsd_job *job);
void memory_refund(struct memory *memory, struct nfsd_job *job, size_t octets);
/* Removes the waiting jobs of the owner (NULL: of all owners). Returns them as a list linked by `next`. */
struct nfsd_job *memory_withdraw(struct memory *memory, struct owner *owner);
/* Whether an owner that holds no memory waits for that of others. */
bool memory_is_pressed(const struct memory *memory);
uint8_t *memory_buffer(struct memory *memory, size_t capacity);
void memory_give_back(struct memory *memory, uint8_t *buffer, size_t capacity);

/* --- a call: nfsd_job.c ----------------------------------------------------------------------------------------- */

/* What a transport does for its calls. Each function but `begin` and `is_over` ends the job with job_end(), now or
 * later. */
struct job_ops {
    bool (*begin)(struct nfsd_job *job);  /* called before the job is executed; false: it is a retransmission and the
                                             transport deals with it */
    void (*answer)(struct nfsd_job *job); /* send job->head, with job->data at its position */
    void (*refuse)(struct nfsd_job *job); /* its Read chunks are not acceptable */
    void (*drop)(struct nfsd_job *job);   /* end it without an answer */
    bool (*is_over)(const struct nfsd_job *job); /* whether the peer has gone, so that no answer is needed */
};

struct nfsd_job {
    struct work work; /* the first member */
    const struct job_ops *ops;
    struct nfsd *nfsd;
    struct owner *owner;
    struct nfsd_export *export; /* of its object, or its path; NULL: it touches no file system */
    struct nfsd_job *next;      /* in a list of waiting or withdrawn jobs */
    struct sockaddr_storage peer;
    const uint8_t *message; /* the RPC message; `item` has what came in Read chunks */
    size_t length;
    const struct stream_item *item;
    unsigned items;
    bool mount_only;    /* only MOUNT is served over this transport */
    bool is_unadmitted; /* no export allows the peer; MOUNT answers with MNT3ERR_ACCES */
    bool views;         /* the transport can send data that may change or be unmapped meanwhile */
    size_t charge;
    bool search; /* the object of its handle must be searched for */

    struct rpc_call call;
    struct rpc_reply reply;
    union nfs3_args args;
    struct nfs3_text path; /* MOUNT */
    struct nfs3_result result;
    struct mount3_result mount;
    uint8_t *buffer;
    size_t capacity;
    struct view *view; /* holds the data, instead of `buffer` */

    uint8_t *head; /* the encoded reply: `small`, or allocated */
    size_t head_length;
    struct stream_item data; /* the item that was left out of `head` */
    unsigned datas;          /* 0 or 1 */
    uint8_t small[NFSD_HEAD];
};

enum said { SAID_CALL, SAID_NOTHING, SAID_BAD_CHUNK };
enum said job_decode(struct nfsd_job *job);
bool job_is_nfs(const struct nfsd_job *job);
enum nfs3_proc job_proc(const struct nfsd_job *job);
/* Executes the call. Returns false if it was to be done `now` and would block, or if it needs a search. */
bool job_serve(struct nfsd_job *job, bool now, bool search);

/* In nfsd_begin.c: starts a job. The transport has filled in the fields above `charge`. */
void job_start(struct nfsd_job *job);
/* Releases what the job holds, but not the job. Transports call it at the end of `answer`, `refuse` and `drop`. */
void job_end(struct nfsd_job *job);
/* Executes the job in a worker, with or without a search for its object. */
void job_run(struct nfsd_job *job, bool search);
/* Hands the job to a pool, which calls `run`; `done` is called here later. */
void job_give(struct nfsd_job *job, struct workers *workers, void (*run)(struct work *), void (*done)(struct work *));
/* Encodes and sends the reply of an executed job. */
void job_finish(struct nfsd_job *job);
/* Begins jobs that waited for memory, as far as there is some. */
void jobs_resume(struct nfsd *d);
/* Whether executing the call twice would give another result, so that a retransmission must get the first reply. */
bool job_is_once_only(const struct nfsd_job *job);

/* --- searches for objects: nfsd_search.c ------------------------------------------------------------------------ */

/* Searches for the job's object and executes the job, when its turn comes. */
void nfsd_search(struct nfsd *d, struct nfsd_job *job);

/* --- transports: nfsd_tcp.c, nfsd_rdma.c ------------------------------------------------------------------------ */

struct tcp_listener {
    struct source source; /* the first member */
    bool paused;          /* not polled, since the process has no free descriptors */
};

struct tcp_conn;

struct tcp {
    struct tcp_listener listener[2]; /* NFS, MOUNT */
    unsigned listeners;
    struct tcp_conn *conns; /* includes closed ones that still have calls in work */
    unsigned unadmitted;
    struct tcp_conn *dirty; /* connections with replies that were not yet tried to be sent */
    uint8_t *stage;
    struct replay replay;
    bool resume; /* a connection that was not read may be read again */
};

int nfstcp_init(struct nfsd *d);
/* Returns 0 or a negative errno. */
int nfstcp_listen(struct nfsd *d, const struct sockaddr *addr, socklen_t length);
/* Ends a turn of the event loop: sends replies, frees closed connections, and reads from those that may send calls. */
void nfstcp_turn(struct nfsd *d);
void nfstcp_tick(struct nfsd *d, uint64_t now_ms);
bool nfstcp_is_quiet(const struct nfsd *d);
/* Accepts no more connections and calls. */
void nfstcp_stop(struct nfsd *d);
void nfstcp_fini(struct nfsd *d);

/* Listens on the ports of NFS and MOUNT behind attr->net. Returns 0 or a negative errno. */
int nfspacket_listen(struct nfsd *d);
/* Takes and sends packets, and reads from streams that may send calls. Call it before nfstcp_turn(). */
void nfspacket_turn(struct nfsd *d);

struct rdma {
    struct source source; /* the first member */
    struct responder *responder;
    struct rdma_peer *peers;
    bool in_run, answered; /* in responder_run(); replies were given outside of it and wait for the next one */
};

int nfsrdma_listen(struct nfsd *d, const struct sockaddr *addr, socklen_t length);
void nfsrdma_run(struct nfsd *d);
bool nfsrdma_is_quiet(const struct nfsd *d);
void nfsrdma_fini(struct nfsd *d);

/* --- the server: nfsd.c ----------------------------------------------------------------------------------------- */

struct counters {
    _Atomic uint64_t calls, errors, replayed, read_octets, written_octets;
    _Atomic uint32_t tcp_connections, rdma_connections;
    _Atomic uint64_t rdma_replayed, placed_octets;
};

struct nfsd {
    struct nfsd_attr attr;
    int epoll;
    struct source stop, done; /* eventfds: of nfsd_stop() and of `finished` */
    struct finished finished;
    struct nfsd_export *export; /* those of attr.server, in its order */
    unsigned in_work;
    bool stopping;
    struct memory memory;
    struct tcp tcp;
    struct source packets; /* the net of attr.net */
    struct rdma rdma;
    struct counters counters;
    int rdma_port, tcp_port, mount_port;
    uint64_t ticked_ms;
    struct rpc_log log;
};

/* --- admission: nfsd_log.c -------------------------------------------------------------------------------------- */

void nfsd_log_init(struct nfsd *d);

/* Whether an export allows this peer. If none does, a line is logged. */
bool nfsd_admits(struct nfsd *d, const struct sockaddr_storage *peer);

#endif
