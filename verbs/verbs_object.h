/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs_object.h - what libibverbs.so.1 puts around rddp's objects, and shares with librdmacm.so.1.
 *
 * Each struct begins with what the application sees, so that a pointer to the one is a pointer to the other. A work
 * request, a completion and a key have the same numbers on both sides (rddp/wr.h); nothing on the data path has a lock
 * of its own. What begins with verbs_ is seen by librdmacm.so.1 too. Calls that fail return a positive errno, or NULL
 * with errno, as verbs do. */
#ifndef VERBS_OBJECT_H
#define VERBS_OBJECT_H

#include <infiniband/verbs.h>
#include <rddp/rddp.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Macros of the header that stand in front of the functions that are defined here. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum {
    VERBS_DEPTH_MAX = 16384, /* requests of a queue */
    VERBS_CQE_MAX = 1 << 20,
    VERBS_SGE_MAX = 16,
    VERBS_READS_MAX = 128,     /* RDMA Reads and atomics pending, each way */
    VERBS_QPN_OF_CM = 0,       /* as a peer's number, which no queue pair has: the connection manager will know it */
    VERBS_DM_OCTETS = 1 << 26, /* device memory of a process */
    VERBS_BATCH = 32,          /* requests or completions that are translated at once */
    /* Of a queue pair, until the program says otherwise: as iWARP's connection manager sets it, and with atomics. */
    VERBS_ACCESS_DEFAULT =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    VERBS_SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE,
};

/* A thread domain promises that one thread uses what is made in it. There is no lock to leave out. */
struct verbs_td {
    struct ibv_td ibv;
    atomic_uint users; /* parent domains */
};

struct verbs_pd {
    struct ibv_pd ibv;
    struct rddp_pd *rddp;    /* a parent domain has that of its parent */
    struct verbs_pd *parent; /* NULL: not a parent domain */
    struct verbs_td *td;
    atomic_uint users; /* parent domains over it, and objects made in it */
};

struct verbs_mr {
    struct ibv_mr ibv;
    struct rddp_mr *rddp;
    atomic_uint *dm_users; /* of the device memory that it lies in; NULL: in the program's memory */
};

struct verbs_channel {
    struct ibv_comp_channel ibv;
    struct rddp_comp_channel *rddp;
};

struct verbs_cq {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex ex; /* begins with the members of ibv_cq */
    };
    struct rddp_cq *rddp;
    struct rddp_wc wc; /* the completion that start_poll or next_poll took */
};

/* The destination of datagrams. */
struct verbs_ah {
    struct ibv_ah ibv;
    struct rddp_ah *rddp;
};

struct verbs_srq {
    struct ibv_srq ibv;
    struct rddp_srq *rddp;
    atomic_bool was_full; /* as that of a queue pair */
};

struct wr_builder;
struct cm_id;

struct verbs_qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex ex; /* begins with ibv_qp */
    };
    struct rddp_qp *rddp;
    struct ibv_qp_cap cap;
    int sq_sig_all;
    unsigned access;            /* rddp0: what IBV_QP_ACCESS_FLAGS said last */
    bool awaits_cm;             /* rddpe0: in RTR or RTS by name; the connection manager brings it there */
    uint8_t sgid_index;         /* rddpe0: what the program named last */
    bool names_sgid;            /* it did, and not rdma_cm */
    atomic_bool is_reset;       /* rddpe0: takes no receives */
    atomic_bool was_full;       /* a post was refused for that, which is said once */
    struct wr_builder *builder; /* for ibv_wr_*: NULL unless asked for */
    struct cm_id *id;           /* under verbs_lock */
    struct verbs_qp *next;      /* in the list of all, under verbs_lock */
    struct verbs_qp **at;       /* what points to it in that list */
};

/* Guards which queue pair belongs to which rdma_cm_id, and all of an id's state. Events of connections are taken,
 * moved and withdrawn with it held. Not taken on the data path. */
extern pthread_mutex_t verbs_lock;

/* Takes a lock: who has one is not cancelled, and so does not leave it locked. System calls and waits for conditions
 * are cancellation points. Returns the state before, for verbs_give_back(). */
static inline int verbs_take(pthread_mutex_t *lock)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(lock);
    return state;
}

static inline void verbs_give_back(pthread_mutex_t *lock, int state)
{
    pthread_mutex_unlock(lock);
    pthread_setcancelstate(state, NULL);
}

/* The same of verbs_lock. verbs_wait(): pthread_cond_wait() of who has it. */
void verbs_enter(void);
void verbs_leave(void);
void verbs_wait(pthread_cond_t *cond);

/* What librdmacm.so.1 does, under verbs_lock, when a queue pair of one of its ids is about to be destroyed: it takes
 * the events of the queue pair away from those who wait for them. */
extern void (*verbs_qp_is_going)(struct verbs_qp *qp);

/* Returns the one rddp context of the process, opened at the first call and never closed; NULL with errno. */
struct rddp_context *verbs_process(void);

/* The same, or NULL if it was not opened by this process: a child has none of its parent's connections. */
struct rddp_context *process_context_here(void);

/* Returns the verbs context that all rdma_cm_ids of this device show; NULL with errno. It is never closed. */
struct ibv_context *verbs_shared_context(struct ibv_device *device);

/* Says in one line, if RDDP_LOG asks for it, why a call is refused: "call: object and rule". Sets errno to `error` and
 * returns it. With 0 it does nothing. */
int verbs_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Finds a queue pair by its number; NULL. The caller holds verbs_lock. */
struct verbs_qp *verbs_qp_find(uint32_t num);

/* Returns a device by its place in the list, 0 first; NULL. RDDP_DEVICE names those that there are; by default all. */
struct ibv_device *verbs_device_at(unsigned n);

/* Does the device speak RoCE? The other speaks iWARP. */
static inline bool device_is_ib(const struct ibv_device *device)
{
    return device->node_type == IBV_NODE_CA;
}

/* The path between two addresses, of which the first is this host's, as rddpe0 names it. False: the first is not, and
 * the path begins at index 0. */
bool verbs_path(const struct sockaddr_storage *local, const struct sockaddr_storage *peer, struct ibv_ah_attr *attr);

/* The inline calls of verbs.h go through these. */
int verbs_cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_cq_arm(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
void cq_show_ex(struct verbs_cq *cq);
uint64_t clock_device_ns(void);
int clock_query(struct ibv_context *context, struct ibv_values_ex *values);
/* What a post returns for a negative errno of rddp_post_send(): EINVAL for an opcode that queue pairs of this type do
 * not have, as adapters do; EOPNOTSUPP over iWARP. */
static inline int post_errno(const struct ibv_qp *qp, int error)
{
    return error == -EOPNOTSUPP && device_is_ib(qp->context->device) ? EINVAL : -error;
}

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/* cq_ex.c: what the service level of a completion says, which is how a datagram came. */
uint8_t verbs_packet_type(const struct rddp_wc *wc);

/* ib_state.c: ibv_modify_qp() and ibv_query_qp() for rddpe0. */
int ib_modify(struct verbs_qp *qp, const struct ibv_qp_attr *attr, int mask);
void ib_query(struct verbs_qp *qp, struct ibv_qp_attr *attr);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
struct ibv_mr *mr_alloc_null(struct ibv_pd *pd);
int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t num);
/* Can memory be registered on demand, in this process? */
bool mr_is_odp_known(void);
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *mw);
int mw_post(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *what);
struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr);
int td_dealloc(struct ibv_td *td);
struct ibv_pd *pd_alloc_parent(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

struct ibv_dm *dm_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int dm_free(struct ibv_dm *dm);
struct ibv_mr *dm_reg_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access);

/* clock.c: the time of the wall clock, in nanoseconds, at that time of the device. */
uint64_t clock_to_wall(uint64_t device_ns);

/* mw.c: what a request binds a window of type 2 to, in *to. Returns NULL if the window or its key is wrong: no queue
 * takes the request then. */
const struct rddp_mw_bind *mw_translate(struct rddp_mw_bind *to, const struct ibv_mw *mw, uint32_t rkey,
                                        const struct ibv_mw_bind_info *from);

/* An object is made in a domain, or leaves it: a parent domain cannot go before. */
void pd_enter(struct ibv_pd *pd);
void pd_leave(struct ibv_pd *pd);

/* stats.c: adds up what a queue pair did before it goes; the caller holds verbs_lock. Prints the sums, if asked to. */
void stats_count(struct rddp_qp *qp);
void stats_print(void);
/* Those that are still there. */
void qp_count_all(void);

/* Ends the connections of rddpe0 that rdma_cm has made. Under verbs_lock. */
void qp_part_all(void);

/* Gives the queue pair what ibv_wr_*() writes into. Returns 0, or ENOMEM. */
int wr_builder_attach(struct verbs_qp *qp);
void wr_builder_detach(struct verbs_qp *qp);

static inline struct verbs_pd *pd_of(struct ibv_pd *pd)
{
    return (struct verbs_pd *)pd;
}

static inline struct verbs_cq *cq_of(struct ibv_cq *cq)
{
    return (struct verbs_cq *)cq;
}

static inline struct verbs_srq *srq_of(struct ibv_srq *srq)
{
    return (struct verbs_srq *)srq;
}

static inline struct verbs_ah *ah_of(struct ibv_ah *ah)
{
    return (struct verbs_ah *)ah;
}

static inline struct verbs_qp *qp_of(struct ibv_qp *qp)
{
    return (struct verbs_qp *)qp;
}

#endif
