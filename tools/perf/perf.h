/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* perf.h - what the files of `rddp perf` share: options, tests, and a lane that never outruns the peer's receives.
 *
 * The protocol. Each end posts RING receives, each with 64 octets of its own and, for longer Sends, a tail that all
 * share. Control messages are Sends of 64 octets. A peer of iWARP that gets a Send with no receive posted must end the
 * connection, so: control is stop-and-go, and in a test of Sends or immediate data the receiver counts out credits
 * (CREDIT) as it posts receives again. Which Send is data and which is control follows from the counts that START
 * agrees on.
 *
 *     client                                                server
 *     HELLO size of the largest message, our memory  ->
 *                                                    <-     WELCOME its memory: offset, key, size
 *     START test, nonce                              ->     prepares
 *                                                    <-     READY
 *     ... the test ...
 *     DONE                                           ->
 *                                                    <-     ARRIVED: everything before DONE is there
 *                                                    <-     RESULT: was the last message right? CPU time
 *     BYE, and closes                                ->     */
#ifndef TOOLS_PERF_PERF_H
#define TOOLS_PERF_PERF_H

#include "tools/lib/tool.h"

/* Their numbers are those of START. */
enum op { OP_WRITE, OP_SEND, OP_READ, OP_WRITE_IMM, OP_FETCH_ADD, OP_CMP_SWAP, OP_SWAP, OPS };
enum kind { KIND_BANDWIDTH, KIND_LATENCY, KINDS };

extern const char *const op_names[OPS];         /* "write" ... */
extern const enum rddp_wr_opcode op_codes[OPS]; /* of its requests: a swap is one that compares no bit */

/* What the operations have in common (lane.c). */
bool op_is_atomic(enum op op);          /* on the peer's word, of 8 octets whatever --size says */
bool op_takes_receive(enum op op);      /* at the peer: credits count them out */
bool op_is_full_round_trip(enum op op); /* the answer is the message */

enum {
    PERF_SIZES = 64,
    PERF_REPEAT_MAX = 1000,
    PERF_WINDOW_MAX = 4096,
    PERF_SERVER_IDLE = 4096, /* idle connections that a server keeps, unless --idle says more */
    PERF_TURN_S = 600,
};
#define PERF_SIZE_MAX (256u << 20)
#define PERF_COUNT_MAX 1000000000
#define PERF_SERVER_SIZE (16u << 20) /* unless --size says more */

struct perf_options {
    bool server, loopback, once, json, latency, bandwidth, tcp_ref, stable, events;
    bool op[OPS];
    const char *address, *size_text;
    uint64_t port;
    uint64_t sizes[KINDS][PERF_SIZES];
    size_t size_count[KINDS];
    uint64_t count; /* 0: `seconds` decide */
    double seconds;
    uint64_t repeat, window, idle; /* 0: not said */
    const char *walk_text;
    uint64_t walk;     /* octets of memory that messages walk through; 0: those of one message */
    uint64_t size_max; /* server: the largest message that a client may ask for */
    double turn_s;     /* server: how long a client may keep others waiting */
    struct rddp_wire_attr wire;
};

struct test {
    enum op op;
    enum kind kind;
    uint64_t size, count, nonce;
    uint64_t walk;   /* bandwidth: as in perf_options */
    uint32_t window; /* bandwidth: requests outstanding */
    bool events;     /* both sides sleep until something comes */
};

/* One run of a test. */
struct run {
    double seconds;     /* from the first request to the peer's answer that it has everything */
    double *samples_us; /* latency: one a message, room for test->count; NULL: not wanted */
    double cpu_client_s, cpu_server_s;
    bool verified;
};

/* --- lane (lane.c) ------------------------------------------------------------------------------------------- */

enum {
    RING = 512,    /* receives posted at each end */
    CREDITS = 448, /* of them for data; the rest is for control and for what is posted again in lots */
    REPOST = 32,   /* receives are posted again in lots of this size */
    HEAD = 64,     /* octets of a receive's own */
    INBOX = 8,
    BUSY_POLLS = 64, /* polls in vain before the processor is offered to others */
    LOOK_POLLS = 64, /* how often a busy lane looks at the clock */
    LOOK_MS = 20,    /* how often it calls `idle`, at most */
    SILENCE_S = 30,  /* a peer that sends nothing for this long in a test is gone */
    ALIVE_S = 5,     /* between two messages to a peer that only waits */
};

enum control {
    CONTROL_HELLO = 1,
    CONTROL_WELCOME,
    CONTROL_START,
    CONTROL_READY,
    CONTROL_CREDIT,
    CONTROL_DONE,
    CONTROL_ARRIVED,
    CONTROL_RESULT,
    CONTROL_TCP,    /* START of a test of raw TCP; answered by READY with the port */
    CONTROL_MEMORY, /* how much memory is resident? */
    CONTROL_MEMORY_IS,
    CONTROL_BYE,
    CONTROL_ALIVE, /* the test goes on, though nothing of it completes at the peer */
};

/* A control message. What the fields mean depends on the type; zero is what is not used. */
struct message {
    enum control type;
    uint8_t op, kind;
    uint32_t key, value;
    uint64_t size, count, nonce, offset;
};

/* From then on polling fails. */
struct lane_deadline {
    uint64_t ns;      /* 0: none */
    const char *text; /* what to say */
};

/* What is seen of a peer that is quiet. */
struct lane_quiet {
    uint64_t polls, since_ns; /* in vain, and since when */
    uint64_t octets;          /* of all messages both ways, at the last look */
};

/* How a lane with nothing to do waits: it polls again, or sleeps until something comes. */
struct lane_sleep {
    bool wanted;
    bool is_next; /* the last poll was empty, and nothing was taken since */
};

struct lane {
    struct tool_endpoint *endpoint;
    struct rddp_qp *qp;
    struct region ring; /* RING heads */
    /* Four parts of `size` octets: the source of all messages but the last, that of the last, the sink of the last, and
     * that of all others. Behind them, at a multiple of 8, the word that the peer's atomics change and the one that
     * answers to ours come to. */
    struct region data;
    uint64_t size;
    bool stable;
    struct rddp_mr *source; /* if `stable`: the first two parts, as RDDP_ACCESS_STABLE */
    struct message peer;    /* where the peer's memory is: offset, key, size */

    uint64_t completed;     /* requests: number of the last that is known to be complete */
    uint64_t data_expected; /* receives that are data, of `data_size` octets, before control comes again */
    uint64_t data_size;
    enum op data_op;
    uint64_t data_received;
    unsigned data_slot;                        /* of the last: a Send's head is there, its tail in the sink */
    uint64_t credits;                          /* what takes a receive: how many the peer has allowed since READY */
    unsigned consumed[REPOST], consumed_count; /* receives to be posted again */
    uint64_t reposted;
    struct message inbox[INBOX];
    unsigned inbox_count;

    struct lane_quiet quiet;
    struct lane_sleep sleep;
    /* While the peer waits until it receives DONE, and no request of the test completes there: when the last
     * CONTROL_ALIVE was sent; otherwise 0. */
    uint64_t alive_ns;
    uint64_t polls, looked_ns; /* looked_ns: when `idle` was last called */
    struct lane_deadline deadline;
    bool silent_end; /* that the connection ended is for the other side to say: it is in the same command */
    void (*idle)(struct lane *lane); /* called now and then, also while the lane is busy, or NULL */
    void *idle_user;
};

/* Makes the memory that does not depend on the peer. Then lane_prepare() as endpoint_prepare, or before accepting. */
int lane_open(struct lane *lane, struct tool_endpoint *endpoint, bool stable);
int lane_prepare(struct rddp_qp *qp, void *lane);
void lane_close(struct lane *lane); /* the queue pair too */
void lane_qp_attr(struct rddp_qp_attr *attr);

/* Makes the data memory and posts the whole ring: a client before HELLO, a server after it. */
int lane_size(struct lane *lane, uint64_t size);
unsigned char *lane_last(const struct lane *lane);
unsigned char *lane_sink(const struct lane *lane);
uint64_t *lane_word(const struct lane *lane);   /* of the peer's atomics */
uint64_t *lane_answer(const struct lane *lane); /* the old value that came last */
/* Where the word lies behind the four parts. */
size_t lane_word_part(const struct lane *lane);

/* Before a test: last messages of the test's nonce, a sink and words of zeros. */
void lane_fill(struct lane *lane, const struct test *test);

int lane_send(struct lane *lane, const struct message *message);
/* Polls until a control message has come. EXIT_PROTOCOL: not of this type. */
int lane_receive(struct lane *lane, enum control type, struct message *message);
int lane_receive_any(struct lane *lane, struct message *message);
int lane_ask(struct lane *lane, const struct message *question, enum control type, struct message *answer);

/* Takes what completions there are. 0 or an exit code, also when nothing came for too long or a signal did. */
int lane_poll(struct lane *lane);
/* `peer_waits`: the peer only waits while this side tests, so that lane_poll() sends it a CONTROL_ALIVE now and then.
 */
void lane_let_wait(struct lane *lane, bool peer_waits);
/* Does the lane sleep from now on while nothing comes? */
void lane_let_sleep(struct lane *lane, bool sleeps);
/* Something has arrived without a completion. */
void lane_note_progress(struct lane *lane);
int lane_post(struct lane *lane, struct rddp_send_wr *first);

/* Before a test: counters back to zero; `receives` of the test's messages come here. */
void lane_reset(struct lane *lane, const struct test *test, uint64_t receives);

/* Are these the octets that follow from `nonce` and their place? */
bool pattern_matches(const unsigned char *in, size_t size, uint64_t nonce, size_t skip);

/* --- the tests (bw.c, lat.c, right.c): both sides ----------------------------------------------------------------- */

/* The client's side, from the first request to the last completion or answer. */
int bandwidth_client(struct lane *lane, const struct test *test);
int latency_client(struct lane *lane, const struct test *test, double *samples_us);
/* The server's side, from READY until what the client sends is there. */
int bandwidth_server(struct lane *lane, const struct test *test);
int latency_server(struct lane *lane, const struct test *test);

/* Whether the last message of a test lies in the sink as it should; ask a side that it was meant for. Of atomics both
 * sides can check: each of them adds one to the word, or does nothing if it does not find what the one before has left.
 */
bool server_is_right(const struct lane *lane, const struct test *test);
bool client_is_right(const struct lane *lane, const struct test *test);
bool last_mark_is_right(const struct lane *lane, const struct test *test); /* Write's ping-pong */

/* The request that changes the peer's word from `number` - 1 to `number`; `sge` takes the old value. */
void atomic_request(const struct lane *lane, enum op op, uint64_t number, struct rddp_sge *sge,
                    struct rddp_send_wr *wr);

/* --- raw TCP (plain_tcp.c) ---------------------------------------------------------------------------------------- */

enum { TCP_READS = 2 };
extern const uint64_t tcp_read_sizes[TCP_READS]; /* octets that the receiver asks for at once */

/* `size`: bandwidth: octets a read; latency: octets a message. `count`: octets, or messages. */
struct tcp_test {
    enum kind kind;
    uint64_t size, count;
    uint64_t walk; /* bandwidth: octets of memory that both ends walk through; 0: one call's, again and again */
    bool events;   /* who receives sleeps */
};

int tcp_client(struct lane *lane, const struct tcp_test *test, struct run *run);
/* Gives up at `deadline_ns`. */
int tcp_server(struct lane *lane, const struct message *start, uint64_t deadline_ns);

/* --- sides --------------------------------------------------------------------------------------------------- */

int perf_client(const struct perf_options *options, const struct target *target);
/* `port_fd`: an fd that gets the port (uint16_t) once it listens, or -1. */
int perf_server(const struct perf_options *options, const struct target *target, int port_fd);
int perf_idle(const struct perf_options *options, struct lane *lane);

/* What an idle connection says in its private data, so that the server keeps it without a test. */
#define PERF_IDLE_DATA "rddp perf idle"

/* --- report (report.c) --------------------------------------------------------------------------------------- */

/* All runs of one test and, beside them, of raw TCP. */
struct row {
    struct test test;
    size_t runs;
    double *rate;       /* octets per second, each run */
    double *tcp_rate;   /* the better of the reads, each run; NULL: no reference */
    double *samples_us; /* latency: all runs together */
    size_t sample_count;
    double *tcp_samples_us;
    size_t tcp_sample_count;
    double *p50_us, *tcp_p50_us;                           /* each run */
    double cpu_client_s, cpu_server_s;                     /* of all runs */
    double tcp_cpu_client_s, tcp_cpu_server_s, tcp_octets; /* of raw TCP's, the better reads alone */
    bool verified;                                         /* in every run */
};

struct report {
    const struct perf_options *options;
    const char *target;
    struct rddp_qp_info info;
    struct row *rows;
    size_t row_count;
};

void report_text(const struct report *report);
void report_json(const struct report *report);

#endif
