/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_client.c - an NFS client: opens and closes it, starts calls, and reports that they are done. */
#include "nfs/client/nfs_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/client/client_in.h"
#include "rpc/clock.h"

enum {
    IO_MIN = 512,
    DEFAULT_CREDITS = 64,
    DEFAULT_TIMEOUT_MS = 10000,
    WIRE_DOUBTS = 4, /* give up after this many connections were lost before the first answer */
};

/* --- lists ----------------------------------------------------------------------------------------------------- */

static void client_append(struct nfs_op **list, struct nfs_op *op)
{
    while (*list)
        list = &(*list)->next;
    op->next = NULL;
    *list = op;
}

static bool client_take_out(struct nfs_op **list, struct nfs_op *op)
{
    while (*list && *list != op)
        list = &(*list)->next;
    if (!*list)
        return false;
    *list = op->next;
    return true;
}

/* --- RDMA, or a TCP of our own ----------------------------------------------------------------------------------- */

static void client_start(struct nfs_client *c, struct request *q)
{
    if (c->packet)
        caller_start(c->packet, q);
    else
        requester_start(c->requester, q);
}

static void client_cancel(struct nfs_client *c, struct request *q)
{
    if (c->packet)
        caller_cancel(c->packet, q);
    else
        requester_cancel(c->requester, q);
}

static void client_work(struct nfs_client *c, int timeout_ms)
{
    if (c->packet)
        caller_wait(c->packet, timeout_ms);
    else
        requester_wait(c->requester, timeout_ms);
}

/* A reply over our own TCP is a message on the heap. */
static void own_reply(const struct nfs_client *c, struct nfs_op *op)
{
    if (!c->packet || op->request.status != REQUEST_OK)
        return;
    free(op->record);
    op->record = op->request.reply;
}

/* --- ops ------------------------------------------------------------------------------------------------------- */

static void end_with(struct nfs_client *c, struct nfs_op *op, int error, const char *trouble)
{
    op->error = error;
    op->trouble = trouble;
    client_append(&c->over, op);
}

static void launch(struct nfs_client *c, struct nfs_op *op)
{
    uint64_t now = clock_ms();

    if (!op_encode(c, op)) {
        client_append(&c->over, op);
        return;
    }
    if (op->deadline_ms <= now) {
        end_with(c, op, -ETIMEDOUT, request_status_str(REQUEST_TIMED_OUT));
        return;
    }
    op->request.timeout_ms = op->deadline_ms == UINT64_MAX ? -1 : (int)(op->deadline_ms - now);
    client_append(&c->active, op);
    client_start(c, &op->request);
}

static void start_until(struct nfs_client *c, struct nfs_op *op, int timeout_ms)
{
    op->deadline_ms = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;
    op->delay_ms = op->refusals = 0;
    op->over = false;
    launch(c, op);
}

/* How long this call may take. */
static int call_patience(const struct nfs_client *c, const struct nfs_op *op)
{
    return op->timeout_ms ? op->timeout_ms : c->attr.call_timeout_ms;
}

void nfs_start(struct nfs_client *c, struct nfs_op *op)
{
    start_until(c, op, call_patience(c, op));
}

void nfs_cancel(struct nfs_client *c, struct nfs_op *op)
{
    if (client_take_out(&c->active, op))
        client_cancel(c, &op->request);
    else if (!client_take_out(&c->waiting, op))
        client_take_out(&c->over, op);
    op->error = -ECANCELED;
}

void nfs_forget(struct nfs_op *op)
{
    free(op->memory);
    free(op->record);
    op->memory = op->record = NULL;
    op->memory_size = 0;
}

/* --- the event loop -------------------------------------------------------------------------------------------- */

static void launch_due(struct nfs_client *c)
{
    struct nfs_op *op = c->waiting, *next;
    uint64_t now = clock_ms();

    for (c->waiting = NULL; op; op = next) {
        next = op->next;
        if (op->again_ms <= now)
            launch(c, op);
        else
            client_append(&c->waiting, op);
    }
}

static void take_ended(struct nfs_client *c)
{
    struct nfs_op **at = &c->active;

    while (*at) {
        struct nfs_op *op = *at;

        if (op->request.state != REQUEST_DONE) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        own_reply(c, op);
        if (op_decode(op) == OP_DONE) {
            client_append(&c->over, op);
        } else {
            op->again_ms = clock_ms() + op->delay_ms;
            client_append(&c->waiting, op);
        }
    }
}

/* Calls `done` for the ops that are over now, not for those that a `done` starts: these could keep us here forever.
 * What they start is sent behind the last of them, which saves the two system calls that would tell the caller to wait.
 */
static int client_report(struct nfs_client *c)
{
    int n = 0, due = 0;

    for (const struct nfs_op *op = c->over; op; op = op->next)
        due++;
    if (!due)
        return 0;
    if (c->requester)
        requester_gather(c->requester);
    for (; c->over && n < due; n++) {
        struct nfs_op *op = c->over;

        c->over = op->next;
        op->over = true;
        if (op->done)
            op->done(op);
    }
    if (c->requester)
        requester_send(c->requester);
    return n;
}

static int client_patience(const struct nfs_client *c, uint64_t until)
{
    uint64_t now = clock_ms();

    for (const struct nfs_op *op = c->waiting; op; op = op->next)
        until = op->again_ms < until ? op->again_ms : until;
    if (until == UINT64_MAX)
        return -1;
    return until <= now ? 0 : until - now > 60000 ? 60000 : (int)(until - now);
}

int nfs_wait(struct nfs_client *c, int timeout_ms)
{
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;
    int n = 0;

    for (bool first = true; n == 0 && (first || clock_ms() < until); first = false) {
        launch_due(c);
        client_work(c, c->over ? 0 : client_patience(c, until));
        take_ended(c);
        n = client_report(c);
    }
    return n;
}

int nfs_client_fd(const struct nfs_client *c)
{
    return c->packet ? caller_fd(c->packet) : requester_fd(c->requester);
}

/* --- a call that waits ----------------------------------------------------------------------------------------- */

static int call_until(struct nfs_client *c, struct nfs_op *op, int timeout_ms)
{
    void (*done)(struct nfs_op *) = op->done;

    op->done = NULL;
    start_until(c, op, timeout_ms);
    while (!op->over) {
        if (c->attr.stop && *c->attr.stop) {
            nfs_cancel(c, op);
            op->error = -EINTR;
            op->trouble = "interrupted";
            break;
        }
        nfs_wait(c, c->attr.stop ? STOP_LOOK_MS : -1);
    }
    op->done = done;
    return op->error ? op->error : nfs3_errno(op->result.status);
}

int nfs_call(struct nfs_client *c, struct nfs_op *op)
{
    return call_until(c, op, call_patience(c, op));
}

/* --- open and close -------------------------------------------------------------------------------------------- */

void nfs_client_attr_init(struct nfs_client_attr *attr)
{
    struct rddp_context_attr context;

    *attr = (struct nfs_client_attr){.port = NFS_RDMA_PORT, .credits = DEFAULT_CREDITS};
    attr->timeout_ms = DEFAULT_TIMEOUT_MS;
    attr->call_timeout_ms = -1;
    rddp_context_attr_init(&context);
    attr->log_level = getenv("RDDP_LOG") ? context.log_level : RDDP_LOG_ERROR;
    rpc_cred_mine(&attr->cred);
    rddp_wire_attr_init(&attr->wire);
}

/* The wire that the server would have to speak, in the words of the options. */
static const char *client_wire_name(const struct nfs_client_attr *attr)
{
    if (attr->wire.wire == RDDP_WIRE_RDMATCP)
        return "--wire rdmatcp";
    if (attr->wire.wire == RDDP_WIRE_ROCE)
        return "--wire roce";
    return attr->wire.immediate ? "iWARP with --immediate" : "iWARP";
}

/* When a connection is lost before it was used, the other end most likely speaks another protocol: ask about it. */
static int fail_wire(struct nfs_client *c, char *message, int error, const char *why)
{
    char what[48], text[88];
    bool asks = error == -ETIMEDOUT || error == -ECONNRESET || error == -EPROTO;

    snprintf(what, sizeof(what), "no RDMA connection to port %d", c->attr.port);
    snprintf(text, sizeof(text), "%s%s%s%s", why, asks ? "; does it speak " : "",
             asks ? client_wire_name(&c->attr) : "", asks ? "?" : "");
    return client_fail(&c->attr, message, error, what, text);
}

static struct sockaddr_storage client_addr(const struct nfs_client *c)
{
    uint16_t port = htons((uint16_t)c->attr.port);
    struct sockaddr_storage addr = c->addr;

    if (addr.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&addr)->sin6_port = port;
    else
        ((struct sockaddr_in *)&addr)->sin_port = port;
    return addr;
}

static int connect_packet(struct nfs_client *c, char *message)
{
    const struct packet_attr attr = {.net = c->attr.net, .own = c->attr.own, .credits = c->attr.credits};
    struct sockaddr_storage addr = client_addr(c);
    char what[48];
    int error;

    c->packet = caller_open(&addr, &attr, c->attr.timeout_ms);
    if (c->packet)
        return 0;
    error = errno ? -errno : -EIO;
    snprintf(what, sizeof(what), "no connection to port %d", c->attr.port);
    return client_fail(&c->attr, message, error, what, strerror(-error));
}

static int connect_rdma(struct nfs_client *c, char *message)
{
    struct requester_attr attr;
    struct sockaddr_storage addr = client_addr(c);
    int error;

    requester_attr_init(&attr);
    attr.credits = c->attr.credits;
    attr.wire = c->attr.wire;
    attr.private_data = !c->attr.wire.immediate;
    attr.log_level = c->attr.log_level;
    attr.log = c->attr.log;
    attr.user = c->attr.log_user;
    c->requester = requester_open((struct sockaddr *)&addr, c->addr_length, &attr, c->attr.timeout_ms);
    if (c->requester)
        return 0;
    error = errno ? -errno : -EIO;
    return fail_wire(c, message, error, strerror(-error));
}

static uint32_t agreed(uint32_t server, uint32_t preferred)
{
    uint32_t n = server ? server : preferred;

    if (n < IO_MIN)
        n = IO_MIN;
    return n < NFS3_IO_MAX ? n : NFS3_IO_MAX;
}

/* Whether connections were lost again and again before the first call was answered. The one that is up may still bring
 * the answer, however late. */
static bool never_answers(const struct nfs_client *c)
{
    struct requester_stats stats = {0};
    struct packet_stats packet = {0};

    if (c->packet)
        caller_stats(c->packet, &packet);
    else
        requester_stats(c->requester, &stats);
    return stats.lost >= WIRE_DOUBTS || packet.lost >= WIRE_DOUBTS;
}

static int first_call(struct nfs_client *c, struct nfs_op *op)
{
    uint64_t until = clock_ms() + (uint64_t)c->attr.timeout_ms;

    start_until(c, op, c->attr.timeout_ms);
    while (!op->over && !never_answers(c) && !(c->attr.stop && *c->attr.stop) && clock_ms() < until + STOP_LOOK_MS)
        nfs_wait(c, STOP_LOOK_MS);
    if (!op->over) {
        bool lost = never_answers(c);

        nfs_cancel(c, op);
        op->error = lost ? -ECONNRESET : -EINTR;
        op->trouble = lost ? "every connection ends before an answer" : "interrupted";
    }
    return op->error ? op->error : nfs3_errno(op->result.status);
}

static int ask_sizes(struct nfs_client *c, char *message)
{
    struct nfs_op op = {.proc = NFS3_FSINFO, .args.fh = c->root};
    int error = first_call(c, &op);

    if (!c->packet && (op.error == -ECONNRESET || op.error == -ETIMEDOUT)) {
        fail_wire(c, message, error, op.trouble);
    } else if (error == 0) {
        c->read_max = agreed(op.result.fsinfo.rtmax, op.result.fsinfo.rtpref);
        c->write_max = agreed(op.result.fsinfo.wtmax, op.result.fsinfo.wtpref);
    } else {
        client_fail(&c->attr, message, error, "FSINFO of the export",
                    op.error ? op.trouble : nfs3_status_str(op.result.status));
    }
    nfs_forget(&op);
    return error;
}

struct nfs_client *nfs_client_open(const struct nfs_client_attr *attr, char *message)
{
    struct nfs_client *c = calloc(1, sizeof(*c));
    int error = -ENOMEM;

    *message = 0;
    if (c) {
        c->attr = *attr;
        c->path = strdup(attr->path);
    }
    if (c && c->path)
        error = client_mount(c, message);
    else
        client_fail(attr, message, error, "out of memory", NULL);
    if (error == 0)
        error = c->attr.net ? connect_packet(c, message) : connect_rdma(c, message);
    if (error == 0)
        error = ask_sizes(c, message);
    if (error == 0)
        return c;
    if (c)
        nfs_client_close(c);
    errno = -error;
    return NULL;
}

static void end_all(struct nfs_client *c, struct nfs_op **list)
{
    while (*list) {
        struct nfs_op *op = *list;

        nfs_cancel(c, op);
        op->trouble = "the client was closed";
        if (op->done)
            op->done(op);
    }
}

void nfs_client_disconnect(struct nfs_client *c)
{
    if (!c->requester && !c->packet)
        return;
    end_all(c, &c->active);
    end_all(c, &c->waiting);
    end_all(c, &c->over);
    if (c->packet)
        caller_close(c->packet);
    else
        requester_close(c->requester);
    c->packet = NULL;
    c->requester = NULL;
}

void nfs_client_close(struct nfs_client *c)
{
    nfs_client_disconnect(c);
    client_unmount(c);
    free(c->path);
    free(c);
}

/* --- state ----------------------------------------------------------------------------------------------------- */

const struct nfs3_fh *nfs_root(const struct nfs_client *c)
{
    return &c->root;
}

uint32_t nfs_read_max(const struct nfs_client *c)
{
    return c->read_max;
}

uint32_t nfs_write_max(const struct nfs_client *c)
{
    return c->write_max;
}

void nfs_client_stats(const struct nfs_client *c, struct requester_stats *stats)
{
    *stats = (struct requester_stats){0};
    if (c->requester)
        requester_stats(c->requester, stats);
}

uint64_t nfs_client_placed(const struct nfs_client *c)
{
    struct packet_stats stats = {0};

    if (c->packet)
        caller_stats(c->packet, &stats);
    return stats.placed;
}
