/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* server.c - the server of `rddp perf`: one client at a time is tested, idle connections are kept beside it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/eviction.h"
#include "tools/perf/perf.h"

enum { PERF_CQE = 16384, CLOSE_MS = 2000, TEST_S = 60, LEAVE_NOW = 1 /* a deadline that has passed */ };

struct host {
    const struct perf_options *options;
    struct tool_endpoint endpoint;
    struct lane lane;                /* lane.qp: there is a client */
    struct sockaddr_storage address; /* of the client */
    char peer[ADDRESS_TEXT];         /* the same as text */
    uint64_t since_ns;               /* when the client came */
    bool established, over, refused;
    int code; /* of the last client */
    uint64_t clients;
    struct rddp_qp **idle; /* connections that are only kept */
    size_t idle_count;
};

/* --- events -------------------------------------------------------------------------------------------------- */

static int accept_client(struct host *host, struct rddp_request *request)
{
    struct rddp_qp_attr attr;
    struct rddp_qp *qp = NULL;
    rddp_request_addr(request, &host->address);
    address_text(host->peer, &host->address);
    host->since_ns = clock_ns();
    host->lane = (struct lane){.idle = host->lane.idle, .idle_user = host, .silent_end = host->options->loopback};
    host->established = host->over = host->refused = false;
    lane_qp_attr(&attr);
    int code = lane_open(&host->lane, &host->endpoint, host->options->stable);
    if (!code)
        code = endpoint_qp(&host->endpoint, &attr, &qp);
    if (!code)
        code = lane_prepare(qp, &host->lane);
    if (code) {
        rddp_reject(request, NULL, 0);
    } else {
        int error = rddp_accept(request, qp, NULL);
        if (error)
            code = fail(EXIT_CONNECT, "%s: cannot accept: %s", host->peer, error_text(error));
    }
    if (code)
        lane_close(&host->lane);
    return code;
}

/* Room in the list for one more. */
static bool grow_idle(struct host *host)
{
    struct rddp_qp **idle = realloc(host->idle, (host->idle_count + 1) * sizeof(*idle));
    if (idle)
        host->idle = idle;
    return idle;
}

/* Idle connections are the client's: they come from its address and end with it, and their number is limited. */
static void accept_idle(struct host *host, struct rddp_request *request)
{
    struct rddp_qp *qp;
    struct sockaddr_storage peer = {0};
    uint64_t most = host->options->idle ? host->options->idle : PERF_SERVER_IDLE;
    rddp_request_addr(request, &peer);
    if (!host->lane.qp || !eviction_same_address(&peer, &host->address) || host->idle_count >= most ||
        !grow_idle(host) || endpoint_qp(&host->endpoint, NULL, &qp)) {
        rddp_reject(request, NULL, 0);
        return;
    }
    int error = rddp_accept(request, qp, NULL);
    if (error) {
        warn("cannot accept an idle connection: %s", error_text(error));
        rddp_destroy_qp(qp);
        return;
    }
    host->idle[host->idle_count++] = qp;
}

static void drop_idle(struct host *host, struct rddp_qp *qp)
{
    for (size_t i = 0; i < host->idle_count; i++) {
        if (host->idle[i] == qp)
            host->idle[i] = host->idle[--host->idle_count];
    }
    rddp_destroy_qp(qp);
}

/* Another client has to wait. After its turn, or if it is only there, the present one gives way. */
static void keep_waiting(struct host *host, struct rddp_request *request)
{
    if (host->lane.qp && clock_ns() - host->since_ns > (uint64_t)(host->options->turn_s * 1e9)) {
        host->lane.deadline.ns = LEAVE_NOW;
        host->lane.deadline.text = "the client had its turn, and another one waits";
    }
    rddp_reject(request, "busy with another client", 24);
}

/* A wire that does not tell how long private data are fills them up with zeros. */
static bool is_idle_request(const struct rddp_event *event)
{
    const char *said = event->private_data;
    size_t n = strlen(PERF_IDLE_DATA), octets = event->private_data_length;
    if (octets < n || memcmp(said, PERF_IDLE_DATA, n))
        return false;
    while (n < octets && !said[n])
        n++;
    return n == octets;
}

static void perf_server_take_request(struct host *host, const struct rddp_event *event)
{
    bool busy = host->lane.qp || (host->options->once && host->clients);
    if (is_idle_request(event))
        accept_idle(host, event->request);
    else if (busy)
        keep_waiting(host, event->request);
    else
        accept_client(host, event->request);
}

static void handle_events(struct host *host)
{
    struct rddp_event *event;
    while (endpoint_event(&host->endpoint, &event)) {
        bool client = event->qp && event->qp == host->lane.qp;
        if (event->type == RDDP_EVENT_CONNECT_REQUEST) {
            perf_server_take_request(host, event);
        } else if (event->type == RDDP_EVENT_ESTABLISHED) {
            host->established |= client;
        } else if (client) {
            host->over = true;
        } else if (event->qp) {
            drop_idle(host, event->qp);
        }
        rddp_ack_event(event);
    }
}

static void handle_idle(struct lane *lane)
{
    handle_events(lane->idle_user);
}

/* --- one client ---------------------------------------------------------------------------------------------- */

static int welcome(struct host *host)
{
    struct lane *lane = &host->lane;
    struct message hello;
    int code = lane_receive(lane, CONTROL_HELLO, &hello);
    if (code)
        return code;
    if (!hello.size || hello.size > host->options->size_max) {
        lane_send(lane, &(struct message){.type = CONTROL_WELCOME, .size = host->options->size_max});
        host->refused = true;
        return fail(EXIT_PROTOCOL, "%s: the client asked for messages of %" PRIu64 " octets", host->peer, hello.size);
    }
    code = lane_size(lane, hello.size);
    if (code)
        return code;
    lane->peer = hello;
    struct message answer = {
        .type = CONTROL_WELCOME,
        .size = lane->size,
        .offset = rddp_mr_offset(lane->data.mr, lane->data.at),
        .key = rddp_mr_key(lane->data.mr),
    };
    return lane_send(lane, &answer);
}

static int perf_server_run_test(struct host *host, const struct message *start)
{
    struct lane *lane = &host->lane;
    struct test test = {.op = start->op,
                        .kind = start->kind,
                        .size = start->size,
                        .count = start->count,
                        .nonce = start->nonce,
                        .events = start->value == 1};
    if (!test.size || test.size > lane->size || !test.count || test.count > PERF_COUNT_MAX)
        return fail(EXIT_PROTOCOL, "%s: a test of %" PRIu64 " octets, %" PRIu64 " times", host->peer, test.size,
                    test.count);
    lane_fill(lane, &test);
    lane_reset(lane, &test, test.count);
    double cpu_s = cpu_seconds();
    struct message done;
    int code = lane_send(lane, &(struct message){.type = CONTROL_READY});
    lane_let_sleep(lane, test.events);
    if (!code)
        code = test.kind == KIND_BANDWIDTH ? bandwidth_server(lane, &test) : latency_server(lane, &test);
    if (!code)
        code = lane_receive(lane, CONTROL_DONE, &done);
    lane_let_sleep(lane, false);
    if (!code)
        code = lane_send(lane, &(struct message){.type = CONTROL_ARRIVED});
    if (code)
        return code;
    uint64_t cpu_ns = (uint64_t)((cpu_seconds() - cpu_s) * 1e9);
    bool right = server_is_right(lane, &test);
    return lane_send(lane, &(struct message){.type = CONTROL_RESULT, .value = right, .count = cpu_ns});
}

/* Sets the time until which the client has to begin a test. One that is only there would keep others out. */
static void expect_test(struct host *host)
{
    if (host->lane.deadline.ns == LEAVE_NOW)
        return;
    host->lane.deadline.ns = clock_ns() + TEST_S * 1000000000ull;
    host->lane.deadline.text = "the client began no test in time";
}

static int perf_server_serve_client(struct host *host)
{
    expect_test(host);
    int code = welcome(host);
    while (!code) {
        struct message message;
        code = lane_receive_any(&host->lane, &message);
        if (code)
            return code;
        bool test = message.type == CONTROL_START || message.type == CONTROL_TCP;
        if (test && host->lane.deadline.ns != LEAVE_NOW)
            host->lane.deadline.ns = 0;
        switch (message.type) {
        case CONTROL_START:
            code = perf_server_run_test(host, &message);
            break;
        case CONTROL_TCP:
            code = tcp_server(&host->lane, &message, clock_ns() + (uint64_t)(host->options->turn_s * 1e9));
            break;
        case CONTROL_MEMORY:
            code = lane_send(&host->lane, &(struct message){.type = CONTROL_MEMORY_IS, .size = resident_octets()});
            break;
        case CONTROL_BYE:
            return 0;
        default:
            code = fail(EXIT_PROTOCOL, "%s: an unexpected control message", host->peer);
        }
        if (test)
            expect_test(host);
    }
    return code;
}

static void wait_events(struct host *host, int timeout_ms)
{
    handle_events(host);
    endpoint_wait(&host->endpoint, timeout_ms);
    handle_events(host);
}

static void perf_server_say(const struct host *host, const char *what)
{
    if (host->options->loopback)
        return;
    printf("%s: %s\n", host->peer, what);
    fflush(stdout);
}

static void run_client(struct host *host)
{
    perf_server_say(host, "connected");
    host->code = perf_server_serve_client(host);
    /* A client that has said goodbye, or was refused, closes the connection itself. */
    uint64_t until_ns = clock_ns() + CLOSE_MS * 1000000ull;
    while ((!host->code || host->refused) && !host->over && !tool_stopped && clock_ns() < until_ns) {
        struct rddp_wc wc;
        while (rddp_poll_cq(host->endpoint.cq, 1, &wc) > 0)
            ;
        wait_events(host, 50);
    }
    perf_server_say(host, host->code ? "failed" : "done");
    lane_close(&host->lane);
    while (host->idle_count)
        drop_idle(host, host->idle[0]);
    host->clients++;
}

/* --- the server ---------------------------------------------------------------------------------------------- */

static int report_port(int fd, const struct tool_endpoint *endpoint)
{
    struct sockaddr_storage address = {0};
    rddp_listener_addr(endpoint->listener, &address);
    uint16_t port = address_port(&address);
    return write(fd, &port, sizeof(port)) == sizeof(port) ? 0 : fail(EXIT_FAILED, "cannot report the port");
}

static void perf_server_serve(struct host *host)
{
    while (!tool_stopped && !(host->options->once && host->clients)) {
        if (host->lane.qp && host->over) {
            warn("%s: no connection", host->peer);
            lane_close(&host->lane);
        } else if (host->established && host->lane.qp) {
            run_client(host);
        } else {
            wait_events(host, -1);
        }
    }
}

int perf_server(const struct perf_options *options, const struct target *target, int port_fd)
{
    struct host host = {.options = options, .lane.idle = handle_idle};
    host.lane.idle_user = &host;
    struct endpoint_attr attr = {
        .cqe = PERF_CQE, .wire = options->wire.wire, .manual_progress = true, .quiet = port_fd >= 0, .server = true};
    raise_file_limit(); /* each idle connection is a descriptor at least */
    int code = endpoint_open(&host.endpoint, &attr);
    if (!code)
        code = endpoint_listen(&host.endpoint, target, &options->wire, NULL);
    if (!code && port_fd >= 0)
        code = report_port(port_fd, &host.endpoint);
    if (!code)
        perf_server_serve(&host);
    lane_close(&host.lane);
    while (host.idle_count)
        drop_idle(&host, host.idle[0]);
    free(host.idle);
    endpoint_close(&host.endpoint);
    return code ? code : options->once ? host.code : EXIT_OK;
}
