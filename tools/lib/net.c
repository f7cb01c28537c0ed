/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net.c - one end of connections: opens objects, connects, listens, waits. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/lib/packet_options.h"
#include "tools/lib/tool.h"

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static bool make_objects(struct tool_endpoint *endpoint, const struct rddp_context_attr *context_attr, int cqe)
{
    return (endpoint->context = rddp_open(context_attr)) && (endpoint->pd = rddp_alloc_pd(endpoint->context)) &&
           (endpoint->channel = rddp_create_comp_channel(endpoint->context)) &&
           (endpoint->cq = rddp_create_cq(endpoint->context, cqe, NULL, endpoint->channel)) &&
           (endpoint->events = rddp_create_event_channel(endpoint->context)) &&
           !set_nonblocking(rddp_comp_channel_fd(endpoint->channel)) &&
           !set_nonblocking(rddp_event_channel_fd(endpoint->events));
}

/* Log function of the context. The library calls it, in its own thread, for peers that it rejects before the subcommand
 * sees them. */
static void say_line(void *user, enum rddp_log_level level, const char *line)
{
    (void)user;
    (void)level;
    warn_seldom("%s", line);
}

int endpoint_open(struct tool_endpoint *endpoint, const struct endpoint_attr *attr)
{
    struct rddp_context_attr context_attr;
    rddp_context_attr_init(&context_attr);
    /* A client reports failures itself, so it wants no warnings of the library. */
    bool server = attr && attr->server;
    if (!getenv("RDDP_LOG")) {
        context_attr.log_level = server ? RDDP_LOG_WARN : RDDP_LOG_ERROR;
        context_attr.log = server ? say_line : NULL;
    }
    context_attr.manual_progress = attr && attr->manual_progress;
    *endpoint = (struct tool_endpoint){.manual_progress = context_attr.manual_progress, .quiet = attr && attr->quiet};
    /* Remote addresses of rdmatcp have only 32 bits. */
    endpoint->access = attr && attr->wire == RDDP_WIRE_RDMATCP ? RDDP_ACCESS_ZERO_BASED : 0;
    if (!make_objects(endpoint, &context_attr, attr && attr->cqe ? attr->cqe : 1024)) {
        int error = errno;
        endpoint_close(endpoint);
        return fail(EXIT_FAILED, "cannot start: %s", error_text(error));
    }
    int error = rddp_req_notify_cq(endpoint->cq, false);
    if (error)
        return fail(EXIT_FAILED, "cannot arm the completion queue: %s", error_text(error));
    return tool_packet_open(endpoint);
}

void endpoint_close(struct tool_endpoint *endpoint)
{
    if (endpoint->listener)
        rddp_destroy_listener(endpoint->listener);
    if (endpoint->events)
        rddp_destroy_event_channel(endpoint->events);
    if (endpoint->cq)
        rddp_destroy_cq(endpoint->cq);
    if (endpoint->channel)
        rddp_destroy_comp_channel(endpoint->channel);
    if (endpoint->pd)
        rddp_dealloc_pd(endpoint->pd);
    if (endpoint->device && rddp_close_device(endpoint->device))
        warn("a connection was left open");
    if (endpoint->context && rddp_close(endpoint->context))
        warn("an object of the library was left open");
    *endpoint = (struct tool_endpoint){0};
}

int endpoint_qp(struct tool_endpoint *endpoint, struct rddp_qp_attr *attr, struct rddp_qp **qp)
{
    struct rddp_qp_attr defaults;
    if (!attr) {
        rddp_qp_attr_init(&defaults);
        attr = &defaults;
    }
    attr->send_cq = endpoint->cq;
    attr->recv_cq = endpoint->cq;
    *qp = rddp_create_qp(endpoint->pd, attr);
    return *qp ? 0 : fail(EXIT_FAILED, "cannot create a queue pair: %s", error_text(errno));
}

int endpoint_listen(struct tool_endpoint *endpoint, const struct target *target, const struct rddp_wire_attr *wire,
                    void *user)
{
    int error = EINVAL;
    /* Tries IPv6 first: an IPv6 socket on the wildcard address also serves IPv4, but not vice versa. */
    for (int pass = 0; pass < 2 && !endpoint->listener; pass++) {
        for (int i = 0; i < target->count && !endpoint->listener; i++) {
            if ((target->address[i].ss_family == AF_INET6) != (pass == 0))
                continue;
            struct sockaddr_storage address = target->address[i];
            struct rddp_wire_attr attr = packet_wire(endpoint, wire);
            socklen_t length = target->length[i];
            packet_own(endpoint, &address, &length);
            endpoint->listener =
                rddp_listen(endpoint->events, (const struct sockaddr *)&address, length, 64, &attr, user);
            error = errno;
        }
    }
    if (!endpoint->listener)
        return fail(EXIT_CONNECT, "cannot listen on %s: %s", target->text, error_text(error));
    if (endpoint->quiet)
        return 0;
    struct sockaddr_storage bound = {0};
    char text[ADDRESS_TEXT];
    rddp_listener_addr(endpoint->listener, &bound);
    printf("listening on %s\n", address_text(text, &bound));
    fflush(stdout);
    return 0;
}

int region_make(struct tool_endpoint *endpoint, size_t size, unsigned access, struct region *region)
{
    *region = (struct region){.size = size};
    // cppcheck-suppress invalidFunctionArg ; -1 is what MAP_ANONYMOUS wants
    region->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region->at == MAP_FAILED) {
        region->at = NULL;
        return fail(EXIT_FAILED, "cannot allocate %zu octets: %s", size, error_text(errno));
    }
    region->mr = rddp_reg_mr(endpoint->pd, region->at, size, access | endpoint->access);
    if (region->mr)
        return 0;
    int error = errno;
    region_free(region);
    return fail(EXIT_FAILED, "cannot register %zu octets: %s", size, error_text(error));
}

void region_free(struct region *region)
{
    if (region->mr)
        rddp_dereg_mr(region->mr);
    if (region->at)
        munmap(region->at, region->size);
    *region = (struct region){0};
}

const char *wire_text(char text[WIRE_TEXT], const struct rddp_qp_info *info)
{
    const char *crc = info->crc ? "on" : "off";
    const char *markers = info->tx_markers && info->rx_markers ? "on"
                          : info->tx_markers                   ? "sent"
                          : info->rx_markers                   ? "received"
                                                               : "off";
    if (info->wire == RDDP_WIRE_RDMATCP)
        snprintf(text, WIRE_TEXT, "rdmatcp, CRC %s", crc);
    else if (info->wire == RDDP_WIRE_SCTP)
        snprintf(text, WIRE_TEXT, "SCTP, chunks of %u octets", info->emss);
    else if (info->wire == RDDP_WIRE_ROCE)
        snprintf(text, WIRE_TEXT, "RoCE, path MTU %u", info->emss);
    else
        snprintf(text, WIRE_TEXT, "iWARP, MPA revision %u, CRC %s, markers %s", info->mpa_revision, crc, markers);
    return text;
}

const char *wire_name(const struct rddp_wire_attr *wire)
{
    if (wire->wire == RDDP_WIRE_RDMATCP)
        return "--wire rdmatcp";
    if (wire->wire == RDDP_WIRE_SCTP)
        return "--wire sctp";
    if (wire->wire == RDDP_WIRE_ROCE)
        return "--wire roce";
    return wire->immediate ? "iWARP with --immediate" : "iWARP";
}

struct rddp_sge region_sge(const struct region *region, size_t offset, uint32_t length)
{
    return (struct rddp_sge){
        .addr = rddp_mr_offset(region->mr, region->at + offset), .length = length, .lkey = rddp_mr_key(region->mr)};
}

/* --- waiting ------------------------------------------------------------------------------------------------- */

/* Re-arms the CQ after its event. It is unarmed only between the event and the caller's next poll, so no completion is
 * missed. */
static void rearm(struct tool_endpoint *endpoint)
{
    struct rddp_cq *cq;
    void *user;
    bool notified = false;

    while (!rddp_get_cq_event(endpoint->channel, &cq, &user)) {
        rddp_ack_cq_events(cq, 1);
        notified = true;
    }
    if (notified)
        rddp_req_notify_cq(endpoint->cq, false);
}

void endpoint_wait(struct tool_endpoint *endpoint, int timeout_ms)
{
    /* A signal that comes just before poll() is noticed afterwards. */
    if (timeout_ms < 0 || timeout_ms > SIGNAL_MS)
        timeout_ms = SIGNAL_MS;
    if (tool_stopped)
        return;
    if (endpoint->manual_progress) {
        rddp_progress(endpoint->context, timeout_ms);
    } else {
        struct pollfd fds[] = {
            {.fd = rddp_comp_channel_fd(endpoint->channel), .events = POLLIN},
            {.fd = rddp_event_channel_fd(endpoint->events), .events = POLLIN},
        };
        poll(fds, 2, timeout_ms);
    }
    rearm(endpoint);
}

bool endpoint_event(struct tool_endpoint *endpoint, struct rddp_event **event)
{
    return !rddp_get_event(endpoint->events, event);
}

/* Milliseconds until `deadline_ns`, rounded up; -1 if there is no deadline. */
static int left_ms(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return -1;
    uint64_t now = clock_ns();
    return now >= deadline_ns ? 0 : (int)((deadline_ns - now + 999999) / 1000000);
}

static uint64_t deadline_in(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : clock_ns() + (uint64_t)timeout_ms * 1000000;
}

int endpoint_completion(struct tool_endpoint *endpoint, struct rddp_wc *wc, int timeout_ms)
{
    uint64_t deadline_ns = deadline_in(timeout_ms);
    for (;;) {
        int n = rddp_poll_cq(endpoint->cq, 1, wc);
        if (n > 0)
            return 1;
        if (n < 0)
            return -fail(EXIT_FAILED, "cannot poll the completion queue: %s", error_text(n));
        int left = left_ms(deadline_ns);
        if (!left || tool_stopped)
            return 0;
        endpoint_wait(endpoint, left);
    }
}

/* --- connecting ---------------------------------------------------------------------------------------------- */

/* Waits for the first event of `qp`. Drops other events and rejects connection requests. NULL: interrupted or timed
 * out. */
static struct rddp_event *event_of(struct tool_endpoint *endpoint, const struct rddp_qp *qp, int timeout_ms)
{
    uint64_t deadline_ns = deadline_in(timeout_ms);
    for (;;) {
        struct rddp_event *event;
        while (endpoint_event(endpoint, &event)) {
            if (event->qp == qp)
                return event;
            if (event->type == RDDP_EVENT_CONNECT_REQUEST)
                rddp_reject(event->request, NULL, 0);
            rddp_ack_event(event);
        }
        int left = left_ms(deadline_ns);
        if (!left || tool_stopped)
            return NULL;
        endpoint_wait(endpoint, left);
    }
}

static int event_code(const struct rddp_event *event)
{
    switch (event->type) {
    case RDDP_EVENT_ESTABLISHED:
        return EXIT_OK;
    case RDDP_EVENT_CONNECT_ERROR:
        return event->status == -EPROTO ? EXIT_PROTOCOL : EXIT_CONNECT;
    default:
        return EXIT_CONNECT;
    }
}

/* The reason of a rejection, if the peer sent printable text as its private data. */
static const char *rejection(const struct rddp_event *event)
{
    static char text[64];
    const char *words = event->private_data;
    int n = event->private_data_length < 40 ? event->private_data_length : 40;
    for (int i = 0; i < n; i++) {
        if (words[i] < ' ' || words[i] > '~')
            n = 0;
    }
    snprintf(text, sizeof(text), "rejected by the peer%s%.*s", n ? ": " : "", n, n ? words : "");
    return text;
}

static const char *event_reason(const struct rddp_event *event)
{
    if (event->type == RDDP_EVENT_REJECTED)
        return rejection(event);
    if (event->type == RDDP_EVENT_CONNECT_ERROR && event->status == -EPROTO)
        return "no valid start-up frame from the peer";
    return event->status ? error_text(event->status) : rddp_event_str(event->type);
}

/* When the start-up breaks off, the other end most likely speaks another protocol: ask about it. */
static const char *guess(const struct rddp_event *event, const struct rddp_wire_attr *wire, char text[64])
{
    if (event->type != RDDP_EVENT_CONNECT_ERROR)
        return "";
    snprintf(text, 64, "; does it speak %s?", wire_name(wire));
    return text;
}

/* Connects once. Returns 0, or an exit code and the reason in `why`. */
static int try_connect(struct tool_endpoint *endpoint, const struct sockaddr_storage *address, socklen_t length,
                       struct rddp_qp *qp, const struct rddp_conn_attr *conn_attr, void *reply, uint16_t *reply_length,
                       char why[160])
{
    int error = rddp_connect(qp, endpoint->events, (const struct sockaddr *)address, length, conn_attr);
    if (error) {
        snprintf(why, 160, "%s", error_text(error));
        return error == -EINVAL ? EXIT_USAGE : EXIT_CONNECT;
    }
    struct rddp_event *event = event_of(endpoint, qp, (int)conn_attr->wire.startup_timeout_ms + 1000);
    if (!event) {
        snprintf(why, 160, "%s", tool_stopped ? "interrupted" : "no answer in time");
        return tool_stopped ? EXIT_FAILED : EXIT_CONNECT;
    }
    int code = event_code(event);
    char doubt[64];
    snprintf(why, 160, "%s%s", event_reason(event), guess(event, &conn_attr->wire, doubt));
    if (reply) {
        uint16_t n = event->private_data_length < *reply_length ? event->private_data_length : *reply_length;
        if (n)
            memcpy(reply, event->private_data, n);
        *reply_length = n;
    }
    rddp_ack_event(event);
    return code;
}

int endpoint_connect(struct tool_endpoint *endpoint, const struct target *target, struct rddp_qp_attr *qp_attr,
                     const struct rddp_conn_attr *conn_attr, endpoint_prepare *prepare, void *user, struct rddp_qp **qp,
                     void *reply, uint16_t *reply_length)
{
    int code = EXIT_CONNECT;
    char why[160] = "";
    struct rddp_conn_attr over = *conn_attr;
    over.wire = packet_wire(endpoint, &conn_attr->wire);
    assert(target->count);
    for (int i = 0; i < target->count && !tool_stopped; i++) {
        int error = endpoint_qp(endpoint, qp_attr, qp);
        if (error)
            return error;
        error = prepare ? prepare(*qp, user) : 0;
        if (error) {
            rddp_destroy_qp(*qp);
            return error;
        }
        uint16_t space = reply ? *reply_length : 0;
        code = try_connect(endpoint, &target->address[i], target->length[i], *qp, &over, reply, &space, why);
        if (reply && !code)
            *reply_length = space;
        if (!code)
            return 0;
        rddp_destroy_qp(*qp);
    }
    *qp = NULL;
    return fail(code, "cannot connect to %s: %s", target->text, why);
}

void endpoint_disconnect(struct tool_endpoint *endpoint, struct rddp_qp *qp, int timeout_ms)
{
    if (rddp_disconnect(qp))
        return;
    struct rddp_event *event = event_of(endpoint, qp, timeout_ms);
    if (event)
        rddp_ack_event(event);
}

/* --- trouble ------------------------------------------------------------------------------------------------- */

const char *qp_trouble(struct rddp_qp *qp)
{
    static _Thread_local char text[200];
    struct rddp_qp_info info;
    if (!qp || rddp_query_qp(qp, &info))
        return "connection lost";
    if (!info.terminate)
        return info.fault ? rddp_fault_str(info.fault) : "connection closed by the peer";
    snprintf(text, sizeof(text), "the peer sent a Terminate: layer %u, type %u, code 0x%02x (RFC 5040 figure 9)",
             info.terminate >> 12 & 15, info.terminate >> 8 & 15, info.terminate & 255);
    return text;
}

const char *wc_trouble(struct rddp_qp *qp, const struct rddp_wc *wc)
{
    static _Thread_local char text[200];
    if (wc->status == RDDP_WC_WR_FLUSH_ERR)
        return qp_trouble(qp);
    snprintf(text, sizeof(text), "%s%s%s", rddp_wc_status_str(wc->status), wc->vendor_err ? ": " : "",
             wc->vendor_err ? rddp_fault_str(wc->vendor_err) : "");
    return text;
}
