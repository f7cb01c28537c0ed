/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tool.h - what the subcommands of `rddp` share: options, messages, text, time, JSON, and one end of a connection.
 *
 * A subcommand is a file with one `struct command`, listed in main.c. Its run() returns an exit code. Functions here
 * that can fail return 0 or an exit code, after printing a message to standard error: the caller only returns the
 * code. */
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
    EXIT_CONNECT = 3,  /* cannot connect */
    EXIT_PROTOCOL = 4, /* the peer violates the protocol */
};

enum { PING_PORT = 18515, PERF_PORT = 18517 }; /* cp uses XFER_PORT, 18516 */

/* --- options (opt.c) ----------------------------------------------------------------------------------------- */

enum opt_kind {
    OPT_FLAG,   /* bool: true */
    OPT_UNFLAG, /* bool: false */
    OPT_U8,     /* uint8_t, uint16_t, uint32_t, uint64_t: decimal, from `min` to `max` */
    OPT_U16,
    OPT_U32,
    OPT_U64,
    OPT_SIZE,    /* uint64_t: 64K, 1M, 1G are powers of 1024 */
    OPT_SECONDS, /* double: for example 0.2 */
    OPT_TEXT,    /* const char * */
    OPT_LIST,    /* struct opt_list: each use adds a word */
    OPT_ADDRESS, /* struct rddp_wire_attr: each use adds an address of this end */
    OPT_CHOICE,  /* int or enum: index of the word in `argument`, which is "one|two|three" */
};

enum { OPT_LIST_MAX = 64 };

struct opt_list {
    const char *word[OPT_LIST_MAX + 1]; /* NULL after the last */
    unsigned count;
};

/* An option. The parser, --help and shell completion use this table. */
struct opt {
    char letter;          /* short option; 0: none */
    const char *name;     /* without the dashes; NULL ends a table */
    const char *argument; /* its name in --help, for example "N"; NULL: no argument */
    const char *help;     /* NULL: hidden: another spelling of an option that is shown, or for tests */
    enum opt_kind kind;
    size_t at; /* offset of the field in the subcommand's struct */
    uint64_t min, max;
};

struct command {
    const char *name;
    const char *summary;    /* one line for `rddp --help` */
    const char *usage;      /* what follows the name; several forms are separated by "\n" */
    const char *text;       /* a paragraph for --help, or NULL */
    const struct opt *opts; /* or NULL */
    bool wire;              /* accepts the options of struct rddp_wire_attr */
    bool packet;            /* accepts the options of packet.h */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command ping_command, perf_command, serve_command, cp_command, nfs_command, mount_command,
    nfsd_command, http_command, run_command, env_command, doctor_command;

/* In fstab.c: runs the command when it is called as mount.rddp. */
int run_mount_helper(int argc, char **argv);

/* Parses the options into `options` and `wire`, which hold the defaults before; `wire` is NULL unless command->wire.
 * Returns the index of the first argument that is not an option. Ends the program after --help and on wrong usage. */
int opt_parse(const struct command *command, int argc, char **argv, void *options, struct rddp_wire_attr *wire);
void opt_help(const struct command *command, FILE *out);

/* Whether the first `n` octets of `name` are the long name of an option of the subcommand (not of --help). */
bool opt_is_known(const struct command *command, const char *name, size_t n);

/* --- messages (common.c) ------------------------------------------------------------------------------------- */

extern const char *tool_name; /* "rddp ping": the prefix of each message */

/* Prints a line to standard error. fail() returns `code`, so that `return fail(EXIT_FAILED, ...)` reads well. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints what is wrong with the usage and ends the program with EXIT_USAGE. */
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line that peers can cause: each line once in a row, and a few lines a second. Thread-safe. */
void warn_seldom(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Notifies a service manager, as sd_notify(3) does: "READY=1" or "STOPPING=1". Does nothing without NOTIFY_SOCKET. */
void tool_notify(const char *text);

/* strerror() of an errno (either sign) with a small first letter, to end a message with. Static per thread. */
const char *error_text(int error);

/* The longest wait in one step: a signal that comes just before is noticed after it. */
enum { SIGNAL_MS = 500 };

/* From this call on, SIGINT and SIGTERM store their number in tool_stopped and interrupt waits, but do not end the
 * program. */
void catch_signals(void);
extern volatile sig_atomic_t tool_stopped;

/* The exit code of a failure: 128 + the signal's number if a signal caused it, as in shells; else `code`. */
int stop_code(int code);

/* Raises the limit of open files to the maximum for this process. */
void raise_file_limit(void);

/* Whether `out` is a terminal that wants colour (NO_COLOR unset). */
bool wants_colour(FILE *out);

/* --- text and numbers (common.c) ----------------------------------------------------------------------------- */

/* Parses "123", "64K", "1M", "2G" (powers of 1024; "KiB" as well). Returns false if it is not a size or too large. */
bool parse_size(const char *text, uint64_t *size);
bool parse_u64(const char *text, uint64_t *value);

enum { SMALL_TEXT = 32, ADDRESS_TEXT = 80 };

/* A copy with fewer octets shows no rate, or no CPU cost: its start takes longer than the copy itself. */
enum { RATE_OCTETS = 1000000, COST_OCTETS = 100000000 };
/* When no data has moved for this long, the progress line says "stalled". */
enum { STALLED_MS = 3000 };

/* "s", or "" for one. */
const char *plural_s(uint64_t n);

/* The shortest exact form: 65536 is "64K", 100 is "100". Returns `text`, as the functions below do. */
char *size_text(char text[SMALL_TEXT], uint64_t size);
/* "1.23 GB/s", "12.3 MB/s": powers of 1000. */
char *rate_text(char text[SMALL_TEXT], double octets_per_second);
/* "12 B", "1.50 MB": powers of 1000, like rates. */
char *octets_text(char text[SMALL_TEXT], uint64_t octets);
/* "3.21 M/s": events a second. */
char *count_rate_text(char text[SMALL_TEXT], double each_second);
/* "9.87 Gb/s". */
char *bit_rate_text(char text[SMALL_TEXT], double octets_per_second);

/* --- time and statistics (common.c) -------------------------------------------------------------------------- */

uint64_t clock_ns(void);  /* monotonic */
double cpu_seconds(void); /* user and system time of this process */
uint64_t resident_octets(void);

/* Sorts `n` samples. quantile(sorted, n, 0.5) is then the median (nearest rank; 0 if there are no samples). */
void sort_samples(double *samples, size_t n);
double quantile(const double *sorted, size_t n, double q);
double mean(const double *samples, size_t n);

/* --- JSON (json.c) ------------------------------------------------------------------------------------------- */

struct json {
    FILE *out;
    int depth;
    bool comma;
};

/* `key` is NULL inside an array and at the top level. Numbers that are not finite become null. */
void json_open(struct json *json, const char *key, char bracket);      /* '{' or '[' */
void json_close(struct json *json, char bracket);                      /* '}' or ']'; the outermost one ends the line */
void json_text(struct json *json, const char *key, const char *value); /* NULL becomes null */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

/* --- addresses (addr.c) -------------------------------------------------------------------------------------- */

enum { ADDRESSES = 8 };

/* The addresses of a name, in the order to try. */
struct target {
    char text[ADDRESS_TEXT * 4]; /* "host:port", for messages */
    int count;
    struct sockaddr_storage address[ADDRESSES];
    socklen_t length[ADDRESSES];
};

/* Parses "HOST", "HOST:PORT", "[V6]:PORT" or "V6" and resolves it. With `passive` the addresses are for listening, and
 * a NULL `text` is the wildcard. Returns 0; EXIT_USAGE; or EXIT_CONNECT for an unknown name. */
int target_parse(struct target *target, const char *text, uint16_t default_port, bool passive);

/* "10.0.0.2:18515", "[::1]:7174". */
char *address_text(char text[ADDRESS_TEXT], const struct sockaddr_storage *address);
socklen_t address_length(const struct sockaddr_storage *address);
uint16_t address_port(const struct sockaddr_storage *address);
void address_set_port(struct sockaddr_storage *address, uint16_t port);

/* --- one end (net.c) ----------------------------------------------------------------------------------------- */

struct endpoint_attr {
    int cqe;              /* size of the CQ; 0: 1024 */
    bool manual_progress; /* no thread: the library works only while this program waits or polls */
    bool quiet;           /* endpoint_listen() prints nothing */
    bool server;          /* log peers that the library rejects, such as those with another wire */
    enum rddp_wire wire;  /* the wire of its queue pairs */
};

/* A context with one PD, and one CQ for the sends and receives of all its queue pairs. */
struct tool_endpoint {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_comp_channel *channel;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_listener *listener;
    struct rddp_device *device;  /* NULL: the kernel's TCP */
    struct sockaddr_storage own; /* the address behind the device */
    bool manual_progress, quiet;
    unsigned access; /* added to the access of every region */
};

int endpoint_open(struct tool_endpoint *endpoint, const struct endpoint_attr *attr); /* `attr` may be NULL */
/* Its queue pairs and regions must be destroyed before. Safe after a failed endpoint_open(), and safe to call twice. */
void endpoint_close(struct tool_endpoint *endpoint);

/* Creates a queue pair on the endpoint's CQ. `attr` may be NULL; its send_cq and recv_cq are set here. */
int endpoint_qp(struct tool_endpoint *endpoint, struct rddp_qp_attr *attr, struct rddp_qp **qp);

/* Registered memory, zeroed and page-aligned. */
struct region {
    unsigned char *at;
    size_t size;
    struct rddp_mr *mr;
};

int region_make(struct tool_endpoint *endpoint, size_t size, unsigned access, struct region *region); /* `size` > 0 */
/* Safe on zeros and safe to call twice; destroy the queue pairs that use it before */
void region_free(struct region *region);
struct rddp_sge region_sge(const struct region *region, size_t offset, uint32_t length);

/* Called for a new queue pair before it connects, to post receives. Returns 0 or an exit code. */
typedef int endpoint_prepare(struct rddp_qp *qp, void *user);

/* Connects to the first of the target's addresses that accepts. `reply` (may be NULL) receives up to *reply_length
 * octets of the peer's private data. Returns 0; EXIT_CONNECT: refused, rejected or timed out; EXIT_PROTOCOL: the
 * start-up failed; EXIT_FAILED: interrupted or out of memory. */
int endpoint_connect(struct tool_endpoint *endpoint, const struct target *target, struct rddp_qp_attr *qp_attr,
                     const struct rddp_conn_attr *conn_attr, endpoint_prepare *prepare, void *user, struct rddp_qp **qp,
                     void *reply, uint16_t *reply_length);

/* Listens on the first usable address of the target, and prints "listening on ADDRESS:PORT". */
int endpoint_listen(struct tool_endpoint *endpoint, const struct target *target, const struct rddp_wire_attr *wire,
                    void *user);

/* Waits until there may be a completion or an event, a signal came, or `timeout_ms` (-1: no limit) or SIGNAL_MS have
 * passed. Take all completions and events before waiting again: those left over do not end the next wait. */
void endpoint_wait(struct tool_endpoint *endpoint, int timeout_ms);

/* Takes an event without waiting. Returns false if there is none. */
bool endpoint_event(struct tool_endpoint *endpoint, struct rddp_event **event);
/* Takes a completion, waiting up to `timeout_ms`. Returns 1; 0 if interrupted or timed out; or a negated exit code if
 * the CQ failed. */
int endpoint_completion(struct tool_endpoint *endpoint, struct rddp_wc *wc, int timeout_ms);

/* Disconnects, after the requests posted so far were sent, and waits at most `timeout_ms` for the connection to end. */
void endpoint_disconnect(struct tool_endpoint *endpoint, struct rddp_qp *qp, int timeout_ms);

/* Describes the wire of a connection. Returns `text`. */
enum { WIRE_TEXT = 80 };
const char *wire_text(char text[WIRE_TEXT], const struct rddp_qp_info *info);

/* The wire, in the words of the options. */
const char *wire_name(const struct rddp_wire_attr *wire);

/* Why the connection of `qp` failed, or why a completion did, to end a message with. Static; valid until the next
 * call. */
const char *qp_trouble(struct rddp_qp *qp);
const char *wc_trouble(struct rddp_qp *qp, const struct rddp_wc *wc);

#endif
