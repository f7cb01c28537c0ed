/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - the client of `rddp perf`: runs each test, and raw TCP in turn with it, and collects what was measured. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/perf.h"

enum { PERF_CQE = 16384, CLOSE_MS = 2000, LARGE = 64 << 10, WINDOW_LARGE = 16, WINDOW_SMALL = 256 };
static const double calibration_s = 0.05;
static const uint64_t tcp_octets_min = 64 << 20;

struct client {
    const struct perf_options *options;
    struct tool_endpoint endpoint;
    struct lane lane;
    struct report report;
    uint64_t nonce;
    bool tty;
};

/* --- one run ------------------------------------------------------------------------------------------------- */

static int perf_client_run_test(struct client *client, struct test *test, struct run *run)
{
    struct lane *lane = &client->lane;
    test->nonce = client->nonce += 0x100000001;
    lane_fill(lane, test);
    struct message start = {
        .type = CONTROL_START,
        .op = (uint8_t)test->op,
        .kind = (uint8_t)test->kind,
        .value = test->events,
        .size = test->size,
        .count = test->count,
        .nonce = test->nonce,
    };
    struct message answer;
    int code = lane_ask(lane, &start, CONTROL_READY, &answer);
    if (code)
        return code;
    lane_reset(lane, test, test->kind == KIND_LATENCY ? test->count : 0);
    double cpu_s = cpu_seconds();
    uint64_t start_ns = clock_ns();
    lane_let_wait(lane, test->kind == KIND_BANDWIDTH ? !op_takes_receive(test->op) : op_is_full_round_trip(test->op));
    lane_let_sleep(lane, test->events);
    code = test->kind == KIND_BANDWIDTH ? bandwidth_client(lane, test) : latency_client(lane, test, run->samples_us);
    lane_let_sleep(lane, false);
    lane_let_wait(lane, false);
    if (!code)
        code = lane_ask(lane, &(struct message){.type = CONTROL_DONE}, CONTROL_ARRIVED, &answer);
    run->seconds = (double)(clock_ns() - start_ns) / 1e9;
    run->cpu_client_s = cpu_seconds() - cpu_s;
    if (!code)
        code = lane_receive(lane, CONTROL_RESULT, &answer);
    if (code)
        return code;
    run->cpu_server_s = (double)answer.count / 1e9;
    run->verified = answer.value == 1 && client_is_right(lane, test);
    return run->verified ? 0
                         : fail(EXIT_FAILED, "%s of %" PRIu64 " octets: the last message is not what was sent",
                                op_names[test->op], test->size);
}

/* How often a second of the wanted time needs: grows until a run is long enough to say. */
static int calibrate(struct client *client, struct test *test)
{
    if (client->options->count) {
        test->count = client->options->count;
        return 0;
    }
    for (test->count = 16;;) {
        struct run run = {0};
        int code = perf_client_run_test(client, test, &run);
        if (code)
            return code;
        double wanted = (double)test->count * client->options->seconds / run.seconds;
        bool enough = run.seconds >= calibration_s || run.seconds >= client->options->seconds;
        if (!enough && wanted > 16.0 * (double)test->count)
            wanted = 16.0 * (double)test->count;
        double most = test->kind == KIND_LATENCY ? 1e6 : PERF_COUNT_MAX;
        test->count = wanted < 1 ? 1 : wanted > most ? (uint64_t)most : (uint64_t)wanted;
        if (enough || wanted > most)
            return 0;
    }
}

/* --- rows ---------------------------------------------------------------------------------------------------- */

/* Both reads' rates; the row takes the better one. */
static int run_tcp_bandwidth(struct client *client, struct row *row)
{
    double best = 0;
    struct run best_run = {0};
    struct tcp_test test = {.kind = KIND_BANDWIDTH,
                            .count = row->test.size * row->test.count,
                            .events = row->test.events,
                            .walk = row->test.walk};
    if (test.count < tcp_octets_min)
        test.count = tcp_octets_min;
    for (int i = 0; i < TCP_READS; i++) {
        struct run run = {0};
        test.size = tcp_read_sizes[i];
        int code = tcp_client(&client->lane, &test, &run);
        if (code)
            return code;
        double rate = (double)test.count / run.seconds;
        if (rate > best) {
            best = rate;
            best_run = run;
        }
    }
    row->tcp_rate[row->runs] = best;
    row->tcp_octets += (double)test.count;
    row->tcp_cpu_client_s += best_run.cpu_client_s;
    row->tcp_cpu_server_s += best_run.cpu_server_s;
    return 0;
}

static int run_tcp_latency(struct client *client, struct row *row)
{
    double *samples = row->tcp_samples_us + row->tcp_sample_count;
    struct tcp_test test = {
        .kind = KIND_LATENCY, .size = row->test.size, .count = row->test.count, .events = row->test.events};
    struct run run = {.samples_us = samples};
    int code = tcp_client(&client->lane, &test, &run);
    if (code)
        return code;
    /* What is there and back is compared with TCP there and back. */
    for (size_t i = 0; op_is_full_round_trip(row->test.op) && i < test.count; i++)
        samples[i] *= 2;
    sort_samples(samples, test.count);
    row->tcp_p50_us[row->runs] = quantile(samples, test.count, 0.5);
    row->tcp_sample_count += test.count;
    return 0;
}

static int run_row(struct client *client, struct row *row)
{
    int code = 0;
    bool latency = row->test.kind == KIND_LATENCY;
    if (client->options->tcp_ref)
        code = latency ? run_tcp_latency(client, row) : run_tcp_bandwidth(client, row);
    double *samples = latency ? row->samples_us + row->sample_count : NULL;
    struct run run = {.samples_us = samples};
    if (!code)
        code = perf_client_run_test(client, &row->test, &run);
    if (code)
        return code;
    row->rate[row->runs] = (double)row->test.size * (double)row->test.count / run.seconds;
    if (latency) {
        sort_samples(samples, row->test.count);
        row->p50_us[row->runs] = quantile(samples, row->test.count, 0.5);
        row->sample_count += row->test.count;
    }
    row->cpu_client_s += run.cpu_client_s;
    row->cpu_server_s += run.cpu_server_s;
    row->verified = run.verified && (row->verified || !row->runs);
    row->runs++;
    return 0;
}

static int make_row(struct client *client, struct row *row)
{
    size_t repeat = client->options->repeat;
    int code = calibrate(client, &row->test);
    if (code)
        return code;
    double **each[] = {&row->rate, &row->tcp_rate, &row->p50_us, &row->tcp_p50_us};
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        if (!(*each[i] = calloc(repeat, sizeof(double))))
            return fail(EXIT_FAILED, "no memory");
    }
    if (row->test.kind != KIND_LATENCY)
        return 0;
    row->samples_us = calloc(repeat * row->test.count, sizeof(double));
    row->tcp_samples_us = calloc(client->options->tcp_ref ? repeat * row->test.count : 1, sizeof(double));
    return row->samples_us && row->tcp_samples_us ? 0 : fail(EXIT_FAILED, "no memory");
}

static void free_rows(struct report *report)
{
    for (struct row *row = report->rows; row < report->rows + report->row_count; row++) {
        free(row->rate);
        free(row->tcp_rate);
        free(row->p50_us);
        free(row->tcp_p50_us);
        free(row->samples_us);
        free(row->tcp_samples_us);
    }
    free(report->rows);
}

static void show_progress(const struct client *client, const struct row *row, size_t repetition)
{
    char size[SMALL_TEXT];
    if (client->tty)
        fprintf(stderr, "\r\033[K%s %s %s, %zu of %" PRIu64, op_names[row->test.op],
                row->test.kind == KIND_LATENCY ? "latency" : "bandwidth", size_text(size, row->test.size),
                repetition + 1, client->options->repeat);
}

/* All repetitions of one row stand together in time: its raw TCP is measured right beside it. */
static int run_rows(struct client *client)
{
    struct report *report = &client->report;
    int code = 0;
    for (struct row *row = report->rows; !code && row < report->rows + report->row_count; row++) {
        show_progress(client, row, 0);
        code = make_row(client, row);
        for (size_t i = 0; !code && i < client->options->repeat; i++) {
            show_progress(client, row, i);
            code = run_row(client, row);
        }
    }
    if (client->tty)
        fputs("\r\033[K", stderr);
    return code;
}

static struct test plan_test(const struct perf_options *options, enum op op, enum kind kind, uint64_t size)
{
    uint64_t window = size >= LARGE ? WINDOW_LARGE : WINDOW_SMALL;
    return (struct test){.op = op,
                         .kind = kind,
                         .size = size,
                         .window = (uint32_t)(options->window ? options->window : window),
                         .events = options->events,
                         .walk = kind == KIND_BANDWIDTH ? options->walk : 0};
}

/* An atomic has one size. */
static void plan_sizes(const struct perf_options *options, struct report *report, enum op op, enum kind kind)
{
    if (op_is_atomic(op))
        report->rows[report->row_count++].test = plan_test(options, op, kind, sizeof(uint64_t));
    for (size_t i = 0; !op_is_atomic(op) && i < options->size_count[kind]; i++)
        report->rows[report->row_count++].test = plan_test(options, op, kind, options->sizes[kind][i]);
}

static int perf_client_plan(struct client *client)
{
    const struct perf_options *options = client->options;
    struct report *report = &client->report;
    report->rows = calloc((size_t)KINDS * OPS * PERF_SIZES, sizeof(*report->rows));
    if (!report->rows)
        return fail(EXIT_FAILED, "no memory");
    for (enum kind kind = 0; kind < KINDS; kind++) {
        if (!(kind == KIND_LATENCY ? options->latency : options->bandwidth))
            continue;
        for (enum op op = 0; op < OPS; op++) {
            if (options->op[op])
                plan_sizes(options, report, op, kind);
        }
    }
    return 0;
}

/* --- the session --------------------------------------------------------------------------------------------- */

static int greet(struct client *client, const struct target *target)
{
    struct lane *lane = &client->lane;
    struct rddp_conn_attr attr;
    struct rddp_qp_attr qp_attr;
    rddp_conn_attr_init(&attr);
    attr.wire = client->options->wire;
    lane_qp_attr(&qp_attr);
    int code = lane_open(lane, &client->endpoint, client->options->stable);
    if (!code)
        code = endpoint_connect(&client->endpoint, target, &qp_attr, &attr, lane_prepare, lane, &lane->qp, NULL, NULL);
    uint64_t size = client->options->walk > HEAD ? client->options->walk : HEAD;
    for (size_t i = 0; i < client->report.row_count; i++)
        size = client->report.rows[i].test.size > size ? client->report.rows[i].test.size : size;
    if (!code)
        code = lane_size(lane, size);
    if (code)
        return code;
    struct message hello = {
        .type = CONTROL_HELLO,
        .size = size,
        .offset = rddp_mr_offset(lane->data.mr, lane->data.at),
        .key = rddp_mr_key(lane->data.mr),
    };
    code = lane_ask(lane, &hello, CONTROL_WELCOME, &lane->peer);
    if (!code && lane->peer.size < size)
        code =
            fail(EXIT_FAILED, "the server takes messages of up to %" PRIu64 " octets: see its --size", lane->peer.size);
    if (!code && lane->peer.size != size)
        code = fail(EXIT_PROTOCOL, "the server's memory does not have the requested size");
    return code;
}

static int perf_client_measure(struct client *client, const struct target *target)
{
    struct report *report = &client->report;
    int code = client->options->idle ? 0 : perf_client_plan(client);
    if (!code)
        code = greet(client, target);
    if (code)
        return code;
    code = client->options->idle ? perf_idle(client->options, &client->lane) : run_rows(client);
    if (code)
        return code;
    rddp_query_qp(client->lane.qp, &report->info);
    if (!client->options->idle)
        (client->options->json ? report_json : report_text)(report);
    return 0;
}

int perf_client(const struct perf_options *options, const struct target *target)
{
    struct client client = {.options = options,
                            .report = {.options = options, .target = target->text},
                            .nonce = clock_ns(),
                            .tty = isatty(2)};
    struct endpoint_attr attr = {.cqe = PERF_CQE, .wire = options->wire.wire, .manual_progress = true};
    int code = endpoint_open(&client.endpoint, &attr);
    if (!code)
        code = perf_client_measure(&client, target);
    if (!code)
        code = lane_send(&client.lane, &(struct message){.type = CONTROL_BYE});
    if (!code)
        endpoint_disconnect(&client.endpoint, client.lane.qp, CLOSE_MS);
    lane_close(&client.lane);
    endpoint_close(&client.endpoint);
    free_rows(&client.report);
    return code;
}
