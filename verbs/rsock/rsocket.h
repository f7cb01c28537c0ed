/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket.h - sockets over RDMA: what one consists of, and how the files of rsockets call each other. Datagrams have a
 * header of their own, rsock_datagram.h.
 *
 * The protocol of a stream is that of librdmacm over iWARP. Each end has a buffer for what it receives, a ring of two
 * halves, and publishes a half when it is free: it writes its address, key and length into an entry of the peer's
 * target SGL, and says so with a message. The sender writes data into the halves in turn, without a gap, and tells the
 * length of each transfer with a message. A message is a Send of four octets, which takes a receive; credits bound how
 * many messages of data may be under way.
 *
 * All of it is written over the calls of verbs and of rdma_cm that every program has.
 *
 * Unless it says otherwise, an internal function wants `lock` held, and returns 0 or a positive errno. */
#ifndef VERBS_RSOCK_RSOCKET_H
#define VERBS_RSOCK_RSOCKET_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    RS_SGL_ENTRIES = 2,    /* one half is filled, the other is next */
    RS_CONTROL_SLOTS = 4,  /* requests that data leave to what is no data */
    RS_SPARE_RECEIVES = 8, /* beyond the credits: for messages that need none */
    RS_CREDITS_KEPT = 4,   /* of the peer's receives: for our messages that need no credit */
    RS_QUEUE_MIN = 16,
    RS_QUEUE_MAX = 16000,
    RS_BUFFER_MIN = 4096,
    RS_BUFFER_MAX = 1 << 28,
    RS_INLINE_MIN = 64, /* the largest that is sent so has 24 octets */
    RS_INLINE_MAX = 1024,
    RS_IOMAPS_MAX = 127 << 8, /* the most that an octet can say */
    RS_RESOLVE_MS = 2000,     /* for addresses and routes */
    RS_TRANSFER_MAX = 65536,
    RS_SEGMENT = 2048,  /* what TCP_MAXSEG answers: nothing is cut by it */
    RS_WRITABLE = 2048, /* less space for data is none */
};

/* An entry of an SGL as it is written into the peer's memory: in the order of octets of the host that reads it. */
struct rs_sge {
    uint64_t addr;
    uint32_t key;
    uint32_t length; /* octets, or entries of the target SGL */
};

struct rs_iomap {
    uint64_t offset;
    struct rs_sge sge;
};

/* wire.c: the private data of a connection, both ways. */
enum { RS_HELLO_SIZE = 40 };

struct rs_hello {
    bool is_big_endian;
    uint16_t credits;
    uint16_t iomaps;      /* entries behind those of the target SGL */
    struct rs_sge sgl;    /* the target SGL */
    struct rs_sge buffer; /* the first half */
};

void rs_hello_encode(uint8_t out[RS_HELLO_SIZE], const struct rs_hello *hello);
/* False: this is not the private data of an rsocket, or of one that we could not serve. */
bool rs_hello_decode(struct rs_hello *hello, const void *data, size_t length);
/* How many iomaps the peer takes for announced if we ask for n: at least n. */
uint16_t rs_iomaps_announced(uint32_t n);

/* The upper three bits of a message say what it is, the others how much. */
enum rs_message {
    RS_DATA = 0,    /* octets written */
    RS_CREDIT = 4,  /* the number of data messages that are allowed, and perhaps an entry of the target SGL */
    RS_IOMAP = 6,   /* index of the entry that was written */
    RS_CONTROL = 7, /* enum rs_control */
};

enum rs_control {
    RS_CONTROL_DISCONNECT = 0,
    RS_CONTROL_KEEPALIVE = 1,
    RS_CONTROL_SHUTDOWN = 2,
};

enum { RS_MESSAGE_SHIFT = 29, RS_MESSAGE_VALUE = (1 << RS_MESSAGE_SHIFT) - 1 };

enum rs_state {
    RS_NEW,      /* perhaps bound */
    RS_DATAGRAM, /* bound or connected or not: that changes little */
    RS_LISTENING,
    RS_CONNECTING, /* addresses are resolved, then the connection is asked for */
    RS_ACCEPTING,  /* accepted; the peer is about to begin */
    RS_CONNECTED,
    RS_OVER,   /* an end has said that it neither sends nor receives; what came before can be read */
    RS_FAILED, /* `error` says why */
};

struct rs_sizes {
    uint32_t send_queue, recv_queue, inline_data, iomaps;
    uint32_t send_buffer, recv_buffer;
    uint32_t polling_us; /* before a thread sleeps */
};

/* Options that are remembered and asked for, and change nothing. */
struct rs_options {
    struct linger linger;
    int reuse_addr, reuse_port, keepalive, oob_inline, v6_only, no_delay, max_segment, keep_idle, keep_interval,
        keep_count;
};

struct rs_queues {
    struct ibv_pd *pd; /* its own: a peer's keys lead into this socket alone */
    struct ibv_comp_channel *comp;
    struct ibv_cq *cq;
    uint8_t *memory; /* all of these: */
    struct ibv_mr *in, *out, *shared, *messages;
    struct rs_sge *sgl;      /* the peer writes here */
    struct rs_iomap *iomaps; /* and here */
};

/* What comes: octets that can be read, that the peer may still write, and that are free make up the buffer. */
struct rs_in {
    uint8_t *buffer;
    uint32_t size;
    uint32_t read_at, ready, awaited, free;
    uint32_t publish_at;
    uint16_t came;        /* messages of data */
    uint16_t announce_at; /* the count at which the peer gets new credits */
    uint32_t *messages;
    unsigned entry; /* of the peer's target SGL, which is written next */
};

/* What goes: octets lie in the ring until the request that sends them has completed. */
struct rs_out {
    uint8_t *buffer;
    uint32_t size;
    uint32_t write_at, used;
    unsigned slots;         /* requests that can be posted */
    uint16_t sent, allowed; /* messages of data */
    uint16_t kept;          /* credits that are not used for data */
    struct rs_sge target[RS_SGL_ENTRIES];
    unsigned targets;
    unsigned entry; /* of our target SGL, which the peer writes next */
};

/* A buffer of the application that is mapped. */
struct rs_map {
    struct rs_map *next;
    struct ibv_mr *mr;
    uint64_t offset;
    int index;         /* the peer's entry; -1: for local use alone */
    bool is_announced; /* the peer's entry is written */
};

/* A thread that waits for sockets, once for each of them. */
struct rs_waiter {
    struct rs_waiter *next, **at;
    int fd; /* the thread's own, which wakes it */
};

struct rsocket {
    pthread_mutex_t lock;
    int cancel_state;  /* of the thread that has the lock, before */
    atomic_uint users; /* calls, and the table */
    int fd;            /* what the application knows: that of the event channel */
    int family;
    pid_t owner; /* its children can do nothing with it */
    enum rs_state state;
    int error;
    bool is_nonblocking;
    bool read_shut;    /* by us */
    bool write_shut;   /* by us */
    bool peer_is_done; /* sends no more */
    bool is_bound;
    struct rs_sizes sizes;
    struct rs_options options;
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct rs_queues queues;
    struct rs_in in;
    struct rs_out out;
    struct rs_hello peer;
    struct rs_iomap *targets; /* of riowrite(): what the peer has written into `iomaps`, taken when it said so */
    struct rs_map *maps;
    struct rs_waiter *waiters;
    struct rs_datagrams *datagrams; /* NULL: a stream */
};

/* table.c. These three need no lock. Each rs_get() has its rs_put(); NULL with errno: it is not one of this process. */
struct rsocket *rs_get(int fd);
void rs_put(struct rsocket *rs);
bool rs_is_parents(int fd);
/* Makes one with an event channel, which is in no table yet; NULL with errno. */
struct rsocket *rs_new(int family, const struct rs_sizes *sizes);
/* The application may use it from now on. */
int rs_publish(struct rsocket *rs);
/* Takes it away from the application. Returns the table's use of it, or NULL. */
struct rsocket *rs_withdraw(int fd);
void rs_each(void (*visit)(struct rsocket *rs));

/* A thread that has the lock is not cancelled: it would leave it locked. */
static inline void rs_lock(struct rsocket *rs)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&rs->lock);
    rs->cancel_state = state;
}

static inline void rs_unlock(struct rsocket *rs)
{
    const int state = rs->cancel_state;

    pthread_mutex_unlock(&rs->lock);
    pthread_setcancelstate(state, NULL);
}

/* Sets errno, and returns -1. */
int rs_fail(int error);

static inline int rs_result(int error)
{
    return error ? rs_fail(error) : 0;
}

/* Unlocks and puts. The result of a call: 0, or -1 with errno. */
int rs_leave(struct rsocket *rs, int error);

/* defaults.c */
void rs_defaults(struct rs_sizes *sizes);
uint32_t rs_bounded(int64_t n, uint32_t least, uint32_t most);

/* rsock_queues.c: what a connection needs; rs_queues_free() undoes it, whatever exists. */
int rs_queues_make(struct rsocket *rs);
void rs_queues_free(struct rsocket *rs);
int rs_receive(struct rsocket *rs, unsigned slot);
/* NULL with errno. */
struct ibv_mr *rs_region(const struct rsocket *rs, void *buffer, size_t length, unsigned access);

/* rsock_post.c. wr_id of a sent request: octets of the ring, and places of the queue, that its completion sets free.
 * Those of receives are slots. */
enum { RS_ID_SENT = 1 << 30, RS_ID_PLACES = 3 };
#define RS_ID_FREED_SHIFT 32

bool rs_is_big_endian(void);
/* The peer has the other order of octets. */
bool rs_is_turned(const struct rsocket *rs);
void rs_break(struct rsocket *rs, int error);
int rs_post_message(struct rsocket *rs, enum rs_message what, uint32_t value);
/* Writes `from` into the peer's memory, and then sends a message about it. `freed`: octets of the ring. */
int rs_post_write(struct rsocket *rs, struct ibv_sge *from, const struct rs_sge *to, uint32_t message, uint32_t freed);
/* Writes, without a message. */
int rs_post_silent(struct rsocket *rs, struct ibv_sge *from, const struct rs_sge *to, uint32_t freed);
uint32_t rs_message(enum rs_message what, uint32_t value);
/* What the peer reads: in its order. */
void rs_sge_turn(const struct rsocket *rs, struct rs_sge *sge);

/* messages.c */
void rs_start(struct rsocket *rs, const struct rs_hello *peer);
void rs_hello_fill(const struct rsocket *rs, struct rs_hello *hello);
/* Takes completions and messages, and gives the peer what it may have. */
void rs_progress(struct rsocket *rs);
/* n octets were read: their place is free. */
void rs_consume(struct rsocket *rs, uint32_t n);
/* begin.c: takes events of a connection that begins. */
void rs_advance_connection(struct rsocket *rs);
/* What rdma_connect() and rdma_accept() send. */
void rs_set_param(const struct rsocket *rs, struct rdma_conn_param *param, uint8_t data[RS_HELLO_SIZE]);

/* rsock_connect.c */
/* Waits until a socket that connects or accepts does so no longer. */
int rs_wait_connected(struct rsocket *rs, bool dont_wait);

/* option.c */
/* As much of it as there is place for; *length becomes what there was. */
void rs_copy_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *length);
/* As SO_ERROR does: an error is reported once. */
int rs_take_error(struct rsocket *rs);

/* rsock_wait.c */
/* Does what can be done now. */
void rs_advance(struct rsocket *rs);
/* Waits until the answer is yes. Returns 0, EAGAIN with dont_wait, ETIMEDOUT (timeout_ms -1: never), or EINTR after a
 * handler without SA_RESTART. A thread that is cancelled meanwhile gives up the lock and the use that its call has. */
int rs_wait(struct rsocket *rs, bool (*is_ready)(const struct rsocket *), bool dont_wait, int timeout_ms);
/* For rpoll(): the descriptor that becomes readable when there is news, after the socket was armed. */
int rs_descriptor(const struct rsocket *rs);
void rs_arm(struct rsocket *rs);
void rs_take_event(struct rsocket *rs);

/* rsock_waiters.c */
int rs_waiter_fd(void); /* -1 with errno */
/* The calling thread's descriptor that is readable while one of these signals is pending; -1 with errno. */
int rs_waiter_signal_fd(const sigset_t *signals);
void rs_waiter_clear(int fd);
void rs_waiter_add(struct rsocket *rs, struct rs_waiter *waiter, int fd);
void rs_waiter_remove(struct rs_waiter *waiter);
void rs_wake(struct rsocket *rs, int except_fd);
int64_t rs_now_us(void);
int rs_ms_until(int64_t until_us); /* not below 0 */

/* send_receive.c */
bool rs_is_writable(const struct rsocket *rs);
bool rs_is_readable(const struct rsocket *rs);
/* How much of n octets can be written to a place with `length` octets at once. */
uint32_t rs_ring_space(const struct rsocket *rs, size_t n, uint32_t length);
/* Copies data that a request will send. Returns where they lie. */
struct ibv_sge rs_ring_put(struct rsocket *rs, const void *from, uint32_t n);
bool rs_has_ring_space(const struct rsocket *rs);

/* maps.c */
void rs_iomap_take(struct rsocket *rs, uint32_t index);
bool rs_maps_are_announced(const struct rsocket *rs);
void rs_maps_announce(struct rsocket *rs);
void rs_maps_free(struct rsocket *rs);

#endif
