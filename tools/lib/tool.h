/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tool.h - what the subcommands of `rddp` share: options, messages, text, time, JSON, and one end of a connection.
 *
 * A subcommand is a file with one `struct command`, listed in main.c. Its run() returns an exit code. Calls here that
 * can go wrong return 0 or an exit code, and have said why on standard error: the caller only hands the code on. */
#ifndef TOOLS_LIB_TOOL_H
#define TOOLS_LIB_TOOL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <rddp/rddp.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,   /* data mismatch, or an operation failed */
    EXIT_USAGE = 2,    /* wrong usage */
    EXIT_CONNECT = 3,  /* no connection */
    EXIT_PROTOCOL = 4, /* the peer does not keep to the protocol */
};

enum { PING_PORT = 18515, PERF_PORT = 18517 }; /* between them is cp's: XFER_PORT */

/* --- options (opt.c) ----------------------------------------------------------------------------------------- */

enum opt_kind {
    OPT_FLAG,   /* bool: true */
    OPT_UNFLAG, /* bool: false */
    OPT_U8,     /* uint8_t, uint16_t, uint32_t, uint64_t: decimal, from `min` to `max` */
    OPT_U16,
    OPT_U32,
    OPT_U64,
    OPT_SIZE,    /* uint64_t: 64K, 1M, 1G are powers of 1024 */
    OPT_SECONDS, /* double: 0.2 */
    OPT_TEXT,    /* const char * */
    OPT_LIST,    /* struct opt_list: a word more each time */
    OPT_CHOICE,  /* int or enum: index of the word in `argument`, which is "one|two|three" */
};

enum { OPT_LIST_MAX = 64 };

struct opt_list {
    const char *word[OPT_LIST_MAX + 1]; /* NULL behind the last */
    unsigned count;
};

/* One option: it is parsed, explained by --help and completed by the shell from this line. */
struct opt {
    char letter;          /* 0: none */
    const char *name;     /* without the dashes. NULL ends a table. */
    const char *argument; /* what --help calls it, e.g. "N"; NULL: takes none */
    const char *help;     /* NULL: not shown, another spelling of an option that is */
    enum opt_kind kind;
    size_t at; /* offset of the field in the subcommand's struct */
    uint64_t min, max;
};

struct command {
    const char *name;
    const char *summary;    /* one line for `rddp --help` */
    const char *usage;      /* what follows the name; "\n" between the forms */
    const char *text;       /* a paragraph for --help, or NULL */
    const struct opt *opts; /* or NULL */
    bool wire;              /* takes the options of struct rddp_wire_attr too */
    bool packet;            /* and those of packet.h */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command ping_command, perf_command, serve_command, cp_command, nfs_command, mount_command,
    nfsd_command, http_command;

/* fstab.c. The command under the name mount.rddp. */
int run_mount_helper(int argc, char **argv);

/* Fills in `options` and `wire` (NULL unless command->wire; both hold their defaults before). Returns the index of the
 * first word that is no option. --help and wrong usage end the program here. */
int opt_parse(const struct command *command, int argc, char **argv, void *options, struct rddp_wire_attr *wire);
void opt_help(const struct command *command, FILE *out);

/* Is this, of `n` octets, the long name of an option of the subcommand that is not for people alone? */
bool opt_is_known(const struct command *command, const char *name, size_t n);

/* Says what is wrong with the usage and ends the program with EXIT_USAGE. */
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- messages (common.c) ------------------------------------------------------------------------------------- */

extern const char *tool_name; /* "rddp ping": the beginning of each message */

/* A line on standard error; returns `code`, so that `return fail(EXIT_FAILED, ...)` reads well. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line that a peer can cause: the same one once, and a few each second. For any thread. */
void warn_seldom(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* strerror of an errno (either sign) with a small first letter, as a line's end wants it. */
const char *error_text(int error);

/* After this SIGINT and SIGTERM set tool_stopped, to their number, and end waits, but not the program. */
void catch_signals(void);
extern volatile sig_atomic_t tool_stopped;

/* The exit code of what failed: 128 and the signal's number if it was one that ended it, as shells have it. */
int stop_code(int code);

/* As many descriptors as this process is allowed at all. */
void raise_file_limit(void);

/* Whether `out` is a terminal that wants colour (NO_COLOR unset). */
bool wants_colour(FILE *out);

/* --- text and numbers (common.c) ----------------------------------------------------------------------------- */

/* "123", "64K", "1M", "2G" (powers of 1024; "KiB" and the like too). False if it is not one or does not fit. */
bool parse_size(const char *text, uint64_t *size);
bool parse_u64(const char *text, uint64_t *value);

enum { SMALL_TEXT = 32, ADDRESS_TEXT = 80 };

/* Of a copy: of fewer octets the start takes more than the copy, and a rate, or a cost, would mean nothing. */
enum { RATE_OCTETS = 1000000, COST_OCTETS = 100000000 };
/* Nothing has come or gone for so long: something is wrong with the way, or with the other end. */
enum { STALLED_MS = 3000 };

/* "s" unless it is one. */
const char *plural_s(uint64_t n);

/* Shortest exact form: 65536 is "64K", 100 is "100". Returns `text`. */
char *size_text(char text[SMALL_TEXT], uint64_t size);
/* 1.234 GB/s, 12.3 MB/s ...: powers of 1000. */
char *rate_text(char text[SMALL_TEXT], double octets_per_second);
/* "12 B", "1.50 MB": powers of 1000, as rates have them. */
char *octets_text(char text[SMALL_TEXT], uint64_t octets);
/* 3.21 M/s: things a second. */
char *count_rate_text(char text[SMALL_TEXT], double each_second);
/* 9.87 Gb/s. */
char *bit_rate_text(char text[SMALL_TEXT], double octets_per_second);

/* --- time and statistics (common.c) -------------------------------------------------------------------------- */

uint64_t clock_ns(void);  /* monotonic */
double cpu_seconds(void); /* user and system, of this process so far */
uint64_t resident_octets(void);

/* Sorts `n` samples; then quantile(sorted, n, 0.5) is the median (nearest rank; 0 if there is none). */
void sort_samples(double *samples, size_t n);
double quantile(const double *sorted, size_t n, double q);
double mean(const double *samples, size_t n);

/* --- JSON (json.c) ------------------------------------------------------------------------------------------- */

struct json {
    FILE *out;
    int depth;
    bool comma;
};

/* `key` is NULL inside an array and at the top. Numbers that are not finite become null. */
void json_open(struct json *json, const char *key, char bracket);      /* '{' or '[' */
void json_close(struct json *json, char bracket);                      /* '}' or ']'; the outermost ends the line */
void json_text(struct json *json, const char *key, const char *value); /* NULL becomes null */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

/* --- addresses (addr.c) -------------------------------------------------------------------------------------- */

enum { ADDRESSES = 8 };

/* What a name stands for, in the order to try. */
struct target {
    char text[ADDRESS_TEXT * 4]; /* as a message names it: "host:port" */
    int count;
    struct sockaddr_storage address[ADDRESSES];
    socklen_t length[ADDRESSES];
};

/* "HOST", "HOST:PORT", "[V6]:PORT", "V6". `passive`: to listen on; NULL is then any address. EXIT_USAGE, or
 * EXIT_CONNECT: unknown name. */
int target_parse(struct target *target, const char *text, uint16_t default_port, bool passive);

/* "10.0.0.2:18515", "[::1]:7174". */
char *address_text(char text[ADDRESS_TEXT], const struct sockaddr_storage *address);
socklen_t address_length(const struct sockaddr_storage *address);
uint16_t address_port(const struct sockaddr_storage *address);
void address_set_port(struct sockaddr_storage *address, uint16_t port);

/* --- one end (net.c) ----------------------------------------------------------------------------------------- */

struct endpoint_attr {
    int cqe;              /* room of the CQ; 0: 1024 */
    bool manual_progress; /* no thread: work is done only while this program waits or polls */
    bool quiet;           /* endpoint_listen() prints nothing */
    bool server;          /* says what became of peers that never got to speak: a wrong wire, say */
    enum rddp_wire wire;  /* that its queue pairs will be connected over */
};

/* A context with one PD and one CQ for sends and receives of all its queue pairs. */
struct tool_endpoint {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_comp_channel *channel;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_listener *listener;
    struct rddp_device *device;  /* NULL: the kernel's TCP */
    struct sockaddr_storage own; /* behind the device */
    bool manual_progress, quiet;
    unsigned access; /* of every region, beside its own */
};

int endpoint_open(struct tool_endpoint *endpoint, const struct endpoint_attr *attr); /* `attr` may be NULL */
/* Queue pairs and regions must be gone. Safe after a failed endpoint_open() and twice. */
void endpoint_close(struct tool_endpoint *endpoint);

/* A queue pair on the endpoint's CQ. `attr` may be NULL; its send_cq and recv_cq are set here. */
int endpoint_qp(struct tool_endpoint *endpoint, struct rddp_qp_attr *attr, struct rddp_qp **qp);

/* Registered memory, zeroed, at the start of a page. */
struct region {
    unsigned char *at;
    size_t size;
    struct rddp_mr *mr;
};

int region_make(struct tool_endpoint *endpoint, size_t size, unsigned access, struct region *region); /* `size` > 0 */
void region_free(struct region *region); /* safe twice, and on zeros. Destroy the queue pairs that use it before. */
struct rddp_sge region_sge(const struct region *region, size_t offset, uint32_t length);

/* Called with a new queue pair before it connects: posts receives. 0 or an exit code. */
typedef int endpoint_prepare(struct rddp_qp *qp, void *user);

/* Tries the target's addresses in turn until one accepts, and waits for it. `reply` (may be NULL) gets up to
 * *reply_length octets of the peer's private data. EXIT_CONNECT: refused, rejected, timed out. EXIT_PROTOCOL: the
 * start-up failed. EXIT_FAILED: interrupted, no memory. */
int endpoint_connect(struct tool_endpoint *endpoint, const struct target *target, struct rddp_qp_attr *qp_attr,
                     const struct rddp_conn_attr *conn_attr, endpoint_prepare *prepare, void *user, struct rddp_qp **qp,
                     void *reply, uint16_t *reply_length);

/* Listens on the first of the target's addresses that will do, and prints "listening on ADDRESS:PORT". */
int endpoint_listen(struct tool_endpoint *endpoint, const struct target *target, const struct rddp_wire_attr *wire,
                    void *user);

/* Waits until there may be a completion or an event, a signal came, or `timeout_ms` (-1: none) is over. Take all of
 * both before waiting again: what is left over does not end the next wait. */
void endpoint_wait(struct tool_endpoint *endpoint, int timeout_ms);

/* Take one without waiting: true if there was one. */
bool endpoint_event(struct tool_endpoint *endpoint, struct rddp_event **event);
/* Takes one, waiting up to `timeout_ms`. 1, 0: too late or interrupted, or an exit code below zero: the CQ is broken.
 */
int endpoint_completion(struct tool_endpoint *endpoint, struct rddp_wc *wc, int timeout_ms);

/* Disconnects (requests posted before still leave) and waits until the connection is over, at most `timeout_ms`. */
void endpoint_disconnect(struct tool_endpoint *endpoint, struct rddp_qp *qp, int timeout_ms);

/* How the two ends talk, in words. Returns `text`. */
enum { WIRE_TEXT = 80 };
const char *wire_text(char text[WIRE_TEXT], const struct rddp_qp_info *info);

/* What a peer has to speak, as its user would ask for it. */
const char *wire_name(const struct rddp_wire_attr *wire);

/* Why the connection of `qp` is in error, or why a completion is, as the end of a line. Static; good until the next
 * call. */
const char *qp_trouble(struct rddp_qp *qp);
const char *wc_trouble(struct rddp_qp *qp, const struct rddp_wc *wc);

#endif
