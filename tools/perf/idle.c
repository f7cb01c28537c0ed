/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* idle.c - what an idle connection costs: opens many, and asks both sides how much more memory is resident. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/packet_options.h"
#include "tools/perf/perf.h"

enum { AT_ONCE = 64 };

struct crowd {
    struct tool_endpoint *endpoint;
    struct rddp_conn_attr attr;
    struct rddp_qp **qps;
    uint64_t wanted, started, established;
};

static int start_one(struct crowd *crowd, const struct rddp_qp_info *info)
{
    struct rddp_qp **qp = &crowd->qps[crowd->started];
    int code = endpoint_qp(crowd->endpoint, NULL, qp);
    if (code)
        return code;
    crowd->started++;
    int error = rddp_connect(*qp, crowd->endpoint->events, (const struct sockaddr *)&info->peer,
                             address_length(&info->peer), &crowd->attr);
    return error ? fail(EXIT_CONNECT, "connection %" PRIu64 ": %s", crowd->started, error_text(error)) : 0;
}

static int perf_idle_take_events(struct crowd *crowd)
{
    struct rddp_event *event;
    int code = 0;
    while (!code && endpoint_event(crowd->endpoint, &event)) {
        if (event->type == RDDP_EVENT_ESTABLISHED)
            crowd->established++;
        else
            code = fail(EXIT_CONNECT, "after %" PRIu64 " connections: %s", crowd->established,
                        event->status ? error_text(event->status) : rddp_event_str(event->type));
        rddp_ack_event(event);
    }
    return code;
}

static int open_crowd(struct crowd *crowd, struct rddp_qp *first)
{
    struct rddp_qp_info info;
    uint64_t until_ns = clock_ns() + SILENCE_S * 1000000000ull;
    int code = rddp_query_qp(first, &info) ? EXIT_FAILED : 0;
    while (!code && crowd->established < crowd->wanted) {
        if (tool_stopped || clock_ns() > until_ns)
            return fail(EXIT_FAILED, tool_stopped ? "interrupted" : "not all connections were established within %d s",
                        SILENCE_S);
        while (!code && crowd->started < crowd->wanted && crowd->started - crowd->established < AT_ONCE)
            code = start_one(crowd, &info);
        if (!code) {
            endpoint_wait(crowd->endpoint, 100);
            code = perf_idle_take_events(crowd);
        }
    }
    return code;
}

static int ask_memory(struct lane *lane, uint64_t *octets)
{
    struct message answer = {0};
    int code = lane_ask(lane, &(struct message){.type = CONTROL_MEMORY}, CONTROL_MEMORY_IS, &answer);
    *octets = answer.size;
    return code;
}

static void print_text(uint64_t n, double client, double server)
{
    printf("%" PRIu64 " idle connections, queues of the default size, resident memory more than before:\n", n);
    printf("  client %8.0f octets each (%.1f KiB)\n  server %8.0f octets each (%.1f KiB)\n", client, client / 1024,
           server, server / 1024);
}

static void perf_idle_print_json(uint64_t n, double client, double server)
{
    struct json json = {.out = stdout};
    json_open(&json, NULL, '{');
    json_text(&json, "program", "rddp perf");
    json_u64(&json, "idle_connections", n);
    json_real(&json, "client_octets_per_connection", client);
    json_real(&json, "server_octets_per_connection", server);
    json_close(&json, '}');
}

static int perf_idle_measure(struct crowd *crowd, struct lane *lane, bool as_json)
{
    uint64_t client[2], server[2];
    int code = ask_memory(lane, &server[0]);
    client[0] = resident_octets();
    if (!code)
        code = open_crowd(crowd, lane->qp);
    client[1] = resident_octets();
    if (!code)
        code = ask_memory(lane, &server[1]);
    if (code)
        return code;
    double n = (double)crowd->wanted;
    (as_json ? perf_idle_print_json : print_text)(crowd->wanted, ((double)client[1] - (double)client[0]) / n,
                                                  ((double)server[1] - (double)server[0]) / n);
    return 0;
}

int perf_idle(const struct perf_options *options, struct lane *lane)
{
    struct crowd crowd = {.endpoint = lane->endpoint, .wanted = options->idle};
    raise_file_limit(); /* each connection is a descriptor at least */
    rddp_conn_attr_init(&crowd.attr);
    crowd.attr.wire = packet_wire(lane->endpoint, &options->wire);
    crowd.attr.private_data = PERF_IDLE_DATA;
    crowd.attr.private_data_length = (uint16_t)strlen(PERF_IDLE_DATA);
    crowd.qps = calloc(options->idle, sizeof(struct rddp_qp *));
    if (!crowd.qps)
        return fail(EXIT_FAILED, "no memory");
    int code = perf_idle_measure(&crowd, lane, options->json);
    for (uint64_t i = 0; i < crowd.started; i++)
        rddp_destroy_qp(crowd.qps[i]);
    free(crowd.qps);
    return code;
}
