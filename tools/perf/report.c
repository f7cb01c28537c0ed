/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.c - what `rddp perf` prints: two aligned tables, or the JSON of doc/perf-json.md. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/perf.h"

/* The median of `n` values, which stay in their order; 0 if there are none. */
static double median(const double *values, size_t n)
{
    double sorted[PERF_REPEAT_MAX] = {0};
    memcpy(sorted, values, n * sizeof(*sorted));
    sort_samples(sorted, n);
    return quantile(sorted, n, 0.5);
}

/* The median of a[i] / b[i]: each repetition is compared with its own reference. */
static double median_ratio(const double *a, const double *b, size_t n)
{
    double ratios[PERF_REPEAT_MAX] = {0};
    for (size_t i = 0; i < n; i++)
        ratios[i] = a[i] / b[i];
    return median(ratios, n);
}

static double smallest(const double *values, size_t n)
{
    double least = values[0];
    for (size_t i = 1; i < n; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

static double largest(const double *values, size_t n)
{
    double most = values[0];
    for (size_t i = 1; i < n; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static double gigabytes(const struct row *row)
{
    return (double)row->test.size * (double)row->test.count * (double)row->runs / 1e9;
}

/* Green and red are for the eye alone: the words say it. */
static const char *verdict(const struct row *row)
{
    if (!wants_colour(stdout))
        return row->verified ? "verified" : "NOT VERIFIED";
    return row->verified ? "\033[32mverified\033[0m" : "\033[31mNOT VERIFIED\033[0m";
}

/* --- what RoCE has counted ------------------------------------------------------------------------------------- */

/* In the order in which they are printed. */
static const struct {
    const char *name, *words;
    size_t offset;
} counters[] = {
    {"resent", "packets sent again", offsetof(struct rddp_ib_counters, resent)},
    {"timeouts", "time-outs", offsetof(struct rddp_ib_counters, timeouts)},
    {"undone", "resends undone", offsetof(struct rddp_ib_counters, undone)},
    {"naks", "NAKs", offsetof(struct rddp_ib_counters, naks)},
    {"not_ready", "RNR NAKs", offsetof(struct rddp_ib_counters, not_ready)},
    {"not_ready_here", "RNR NAKs sent", offsetof(struct rddp_ib_counters, not_ready_here)},
    {"duplicates", "duplicates", offsetof(struct rddp_ib_counters, duplicates)},
    {"gaps", "gaps", offsetof(struct rddp_ib_counters, gaps)},
    {"wrong_icrc", "wrong ICRCs", offsetof(struct rddp_ib_counters, wrong_icrc)},
    {"wrong_peer", "of other addresses", offsetof(struct rddp_ib_counters, wrong_peer)},
    {"dropped", "dropped by the system", offsetof(struct rddp_ib_counters, dropped)},
    {"unowned", "for no queue pair", offsetof(struct rddp_ib_counters, unowned)},
    {"passed", "passed on to other processes", offsetof(struct rddp_ib_counters, passed)},
    {"handed", "handed over by them", offsetof(struct rddp_ib_counters, handed)},
};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static uint64_t counter_of(const struct rddp_ib_counters *all, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)all + counters[i].offset, sizeof(value));
    return value;
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static void print_head(const struct report *report)
{
    const struct rddp_qp_info *info = &report->info;
    char peer[ADDRESS_TEXT], wire[WIRE_TEXT];
    printf("rddp perf %s: %s, %" PRIu64 " repetition%s\n", address_text(peer, &info->peer), wire_text(wire, info),
           report->options->repeat, report->options->repeat == 1 ? "" : "s");
}

static void print_bandwidth_row(const struct row *row, bool tcp)
{
    char size[SMALL_TEXT], text[5][SMALL_TEXT];
    double rate = median(row->rate, row->runs);
    printf("%-9s %5s %6" PRIu32 " %9" PRIu64 " %9s %9s %9s %9s", op_names[row->test.op],
           size_text(size, row->test.size), row->test.window, row->test.count, rate_text(text[0], rate),
           bit_rate_text(text[1], rate), rate_text(text[2], smallest(row->rate, row->runs)),
           rate_text(text[3], largest(row->rate, row->runs)));
    if (!tcp)
        printf(" %9s", count_rate_text(text[4], rate / (double)row->test.size));
    printf(" %7.3f %7.3f", row->cpu_client_s / gigabytes(row), row->cpu_server_s / gigabytes(row));
    if (tcp)
        printf(" %9s %5.2f %7.3f %7.3f", rate_text(text[4], median(row->tcp_rate, row->runs)),
               median_ratio(row->rate, row->tcp_rate, row->runs), row->tcp_cpu_client_s / (row->tcp_octets / 1e9),
               row->tcp_cpu_server_s / (row->tcp_octets / 1e9));
    printf("  %s\n", verdict(row));
}

static void print_bandwidth(const struct report *report)
{
    bool tcp = report->options->tcp_ref;
    printf("\n%-9s %5s %6s %9s %9s %9s %9s %9s%s %7s %7s%s\n", "bandwidth", "size", "window", "count", "median", "",
           "min", "max", tcp ? "" : "  messages", "client", "server", tcp ? "   raw TCP ratio  client  server" : "");
    for (const struct row *row = report->rows; row < report->rows + report->row_count; row++) {
        if (row->test.kind == KIND_BANDWIDTH)
            print_bandwidth_row(row, tcp);
    }
    printf("client, server: processor seconds for 10^9 octets\n");
}

static void print_latency(const struct report *report)
{
    bool tcp = report->options->tcp_ref;
    printf("\n%-9s %5s %9s %7s %7s %7s %7s%s\n", "latency", "size", "count", "p50 us", "p99", "min", "mean",
           tcp ? " raw p50     p99    mean  ratio" : "");
    for (const struct row *row = report->rows; row < report->rows + report->row_count; row++) {
        if (row->test.kind != KIND_LATENCY)
            continue;
        char size[SMALL_TEXT];
        size_t n = row->sample_count, m = row->tcp_sample_count;
        printf("%-9s %5s %9" PRIu64 " %7.2f %7.2f %7.2f %7.2f", op_names[row->test.op], size_text(size, row->test.size),
               row->test.count, quantile(row->samples_us, n, 0.5), quantile(row->samples_us, n, 0.99),
               quantile(row->samples_us, n, 0), mean(row->samples_us, n));
        if (tcp)
            printf(" %7.2f %7.2f %7.2f %6.2f", quantile(row->tcp_samples_us, m, 0.5),
                   quantile(row->tcp_samples_us, m, 0.99), mean(row->tcp_samples_us, m),
                   median_ratio(row->p50_us, row->tcp_p50_us, row->runs));
        printf("  %s%s\n", verdict(row), op_is_full_round_trip(row->test.op) ? ", full round trip" : "");
    }
}

/* One line, of what has happened at all. */
static void print_counters(const struct rddp_ib_counters *all)
{
    const char *between = "";
    printf("\nRoCE, the client: ");
    for (size_t i = 0; i < COUNTERS; i++) {
        if (!counter_of(all, i))
            continue;
        printf("%s%" PRIu64 " %s", between, counter_of(all, i), counters[i].words);
        between = ", ";
    }
    printf("%s\n", *between ? "" : "nothing sent again, refused or dropped");
}

/* All runs of a row's latency become one sorted list. */
static void merge_samples(const struct report *report)
{
    for (struct row *row = report->rows; row < report->rows + report->row_count; row++) {
        sort_samples(row->samples_us, row->sample_count);
        sort_samples(row->tcp_samples_us, row->tcp_sample_count);
    }
}

void report_text(const struct report *report)
{
    merge_samples(report);
    print_head(report);
    if (report->options->bandwidth)
        print_bandwidth(report);
    if (report->options->latency)
        print_latency(report);
    if (report->options->tcp_ref)
        printf("\nraw: plain TCP in turn with each run, both sides %s; the better of 64K and 1M reads of 1M writes.\n"
               "ratio: rddp / raw, the median over the repetitions (latency: of their p50).\n",
               report->options->events ? "asleep until something comes" : "polling");
    if (report->info.wire == RDDP_WIRE_ROCE)
        print_counters(&report->info.ib);
}

/* --- JSON ---------------------------------------------------------------------------------------------------- */

static void json_list(struct json *json, const char *key, const double *values, size_t n)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < n; i++)
        json_real(json, NULL, values[i]);
    json_close(json, ']');
}

static void json_bandwidth(struct json *json, const struct row *row, bool tcp)
{
    json_u64(json, "window", row->test.window);
    json_real(json, "bytes_per_second", median(row->rate, row->runs));
    json_list(json, "bytes_per_second_runs", row->rate, row->runs);
    json_real(json, "client_cpu_seconds_per_gigabyte", row->cpu_client_s / gigabytes(row));
    json_real(json, "server_cpu_seconds_per_gigabyte", row->cpu_server_s / gigabytes(row));
    if (!tcp)
        return;
    json_real(json, "raw_bytes_per_second", median(row->tcp_rate, row->runs));
    json_list(json, "raw_bytes_per_second_runs", row->tcp_rate, row->runs);
    json_real(json, "raw_client_cpu_seconds_per_gigabyte", row->tcp_cpu_client_s / (row->tcp_octets / 1e9));
    json_real(json, "raw_server_cpu_seconds_per_gigabyte", row->tcp_cpu_server_s / (row->tcp_octets / 1e9));
    json_real(json, "ratio_to_raw", median_ratio(row->rate, row->tcp_rate, row->runs));
}

static void json_quantiles(struct json *json, const char *prefix, const double *samples, size_t n)
{
    static const struct {
        const char *name;
        double q;
    } quantiles[] = {{"min", 0}, {"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    char key[SMALL_TEXT];
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        snprintf(key, sizeof(key), "%slat_us_%s", prefix, quantiles[i].name);
        json_real(json, key, quantile(samples, n, quantiles[i].q));
    }
    snprintf(key, sizeof(key), "%slat_us_mean", prefix);
    json_real(json, key, mean(samples, n));
}

static void json_latency(struct json *json, const struct row *row, bool tcp)
{
    json_bool(json, "full_round_trip", op_is_full_round_trip(row->test.op));
    json_quantiles(json, "", row->samples_us, row->sample_count);
    json_list(json, "lat_us_p50_runs", row->p50_us, row->runs);
    if (!tcp)
        return;
    json_quantiles(json, "raw_", row->tcp_samples_us, row->tcp_sample_count);
    json_list(json, "raw_lat_us_p50_runs", row->tcp_p50_us, row->runs);
    json_real(json, "ratio_to_raw", median_ratio(row->p50_us, row->tcp_p50_us, row->runs));
}

static void json_counters(struct json *json, const struct rddp_ib_counters *all)
{
    json_open(json, "roce", '{');
    for (size_t i = 0; i < COUNTERS; i++)
        json_u64(json, counters[i].name, counter_of(all, i));
    json_close(json, '}');
}

static void json_row(struct json *json, const struct row *row, bool tcp)
{
    json_open(json, NULL, '{');
    json_text(json, "operation", op_names[row->test.op]);
    json_text(json, "kind", row->test.kind == KIND_LATENCY ? "latency" : "bandwidth");
    json_u64(json, "size_octets", row->test.size);
    json_u64(json, "count", row->test.count);
    json_u64(json, "repetitions", row->runs);
    json_bool(json, "verified", row->verified);
    if (row->test.kind == KIND_LATENCY)
        json_latency(json, row, tcp);
    else
        json_bandwidth(json, row, tcp);
    json_close(json, '}');
}

void report_json(const struct report *report)
{
    const struct rddp_qp_info *info = &report->info;
    struct json json = {.out = stdout};
    char peer[ADDRESS_TEXT];
    merge_samples(report);
    json_open(&json, NULL, '{');
    json_text(&json, "program", "rddp perf");
    json_text(&json, "peer", address_text(peer, &info->peer));
    json_text(&json, "wire",
              info->wire == RDDP_WIRE_RDMATCP ? "rdmatcp"
              : info->wire == RDDP_WIRE_SCTP  ? "sctp"
              : info->wire == RDDP_WIRE_ROCE  ? "roce"
                                              : "iwarp");
    json_u64(&json, "mpa_revision", info->mpa_revision);
    json_bool(&json, "crc", info->crc);
    json_bool(&json, "markers_sent", info->tx_markers);
    json_bool(&json, "markers_received", info->rx_markers);
    json_bool(&json, "events", report->options->events);
    json_bool(&json, "stable", report->options->stable);
    json_u64(&json, "walk_octets", report->options->walk);
    json_open(&json, "results", '[');
    for (const struct row *row = report->rows; row < report->rows + report->row_count; row++)
        json_row(&json, row, report->options->tcp_ref);
    json_close(&json, ']');
    if (info->wire == RDDP_WIRE_ROCE)
        json_counters(&json, &info->ib);
    json_close(&json, '}');
}
