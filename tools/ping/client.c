/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - the client of `rddp ping`: connects, makes the round trips, and prints a summary. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ping/ping.h"

enum { SAMPLES = 1 << 20, CLOSE_MS = 3000 };

/* --- functions for a trip ------------------------------------------------------------------------------------ */

int pinger_receive(struct pinger *pinger, size_t offset, uint32_t length)
{
    struct rddp_sge sge = region_sge(&pinger->memory, offset, length);
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    int error = rddp_post_recv(pinger->qp, &wr, &bad);
    return error ? fail(EXIT_FAILED, "cannot post a receive: %s", error_text(error)) : 0;
}

int pinger_send(struct pinger *pinger, size_t offset, uint32_t length)
{
    struct rddp_sge sge = region_sge(&pinger->memory, offset, length);
    struct rddp_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED | RDDP_SEND_SOLICITED};
    struct rddp_send_wr *bad;
    int error = rddp_post_send(pinger->qp, &wr, &bad);
    return error ? fail(EXIT_FAILED, "cannot send to %s: %s", pinger->peer, error_text(error)) : 0;
}

int pinger_await(struct pinger *pinger, uint32_t length)
{
    uint64_t until_ns = clock_ns() + (uint64_t)(pinger->options->timeout_s * 1e9);
    for (;;) {
        struct rddp_wc wc;
        uint64_t now_ns = clock_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000 + 1) : 0;
        int got = endpoint_completion(&pinger->endpoint, &wc, left_ms);
        if (got < 0)
            return -got;
        if (!got && tool_stopped)
            return PING_INTERRUPTED;
        if (!got)
            return fail(EXIT_FAILED, "no answer from %s in %g s", pinger->peer, pinger->options->timeout_s);
        if (wc.status != RDDP_WC_SUCCESS)
            return fail(EXIT_FAILED, "%s: %s", pinger->peer, wc_trouble(pinger->qp, &wc));
        if (wc.opcode != RDDP_WC_RECV)
            continue;
        if (wc.byte_len != length)
            return fail(EXIT_PROTOCOL, "%s: an answer of %" PRIu32 " octets instead of %" PRIu32, pinger->peer,
                        wc.byte_len, length);
        return 0;
    }
}

/* --- our own protocol ---------------------------------------------------------------------------------------- */

/* The first half of the memory is sent from, the second half is received into. */
static size_t ping_client_echo_size(const struct ping_options *options)
{
    return 2 * (options->size ? options->size : 1);
}

static int echo_prepare(struct rddp_qp *qp, void *user)
{
    struct pinger *pinger = user;
    pinger->qp = qp;
    return pinger_receive(pinger, pinger->memory.size / 2, (uint32_t)pinger->options->size);
}

/* Fills the buffer so that its octets differ from message to message and from place to place: stale or shifted data are
 * noticed. */
static void ping_client_fill(unsigned char *out, size_t size, uint64_t seed)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < size; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out[i] = (unsigned char)(x >> 32);
    }
}

static int echo_go(struct pinger *pinger, uint64_t iteration)
{
    uint32_t size = (uint32_t)pinger->options->size;
    unsigned char *sent = pinger->memory.at, *back = pinger->memory.at + pinger->memory.size / 2;
    ping_client_fill(sent, size, iteration);
    memset(back, 0, size);
    int code = 0;
    if (iteration)
        code = pinger_receive(pinger, pinger->memory.size / 2, size);
    if (!code)
        code = pinger_send(pinger, 0, size);
    if (!code)
        code = pinger_await(pinger, size);
    if (!code && memcmp(sent, back, size))
        return fail(EXIT_FAILED, "%s: the answer differs from what was sent", pinger->peer);
    return code;
}

const struct trip echo_trip = {
    .what = "from",
    .size = ping_client_echo_size,
    .access = RDDP_ACCESS_LOCAL_WRITE,
    .prepare = echo_prepare,
    .go = echo_go,
};

/* --- the run ------------------------------------------------------------------------------------------------- */

static void record(struct pinger *pinger, double us)
{
    pinger->samples[pinger->done % SAMPLES] = us;
    pinger->sum_us += us;
    if (!pinger->done || us < pinger->min_us)
        pinger->min_us = us;
    if (us > pinger->max_us)
        pinger->max_us = us;
    pinger->done++;
}

/* Waits until `until_ns`. A completion meanwhile belongs to an earlier Send, or reports the end of the connection. */
static int pause_until(struct pinger *pinger, uint64_t until_ns)
{
    for (;;) {
        uint64_t now_ns = clock_ns();
        if (now_ns >= until_ns)
            return 0;
        struct rddp_wc wc;
        int got = endpoint_completion(&pinger->endpoint, &wc, (int)((until_ns - now_ns + 999999) / 1000000));
        if (got < 0)
            return -got;
        if (!got && tool_stopped)
            return PING_INTERRUPTED;
        if (got && wc.status != RDDP_WC_SUCCESS)
            return fail(EXIT_FAILED, "%s: %s", pinger->peer, wc_trouble(pinger->qp, &wc));
    }
}

static int make_trips(struct pinger *pinger)
{
    const struct ping_options *options = pinger->options;
    uint64_t interval_ns = (uint64_t)(options->interval_s * 1e9);
    /* The library delays its first message by first_delay_ms, which must not count as round-trip time. */
    int code = pause_until(pinger, clock_ns() + (uint64_t)(options->wire.first_delay_ms + 1) * 1000000);
    while (!code) {
        uint64_t start_ns = clock_ns();
        code = pinger->trip->go(pinger, pinger->done);
        if (code)
            return code;
        double us = (double)(clock_ns() - start_ns) / 1e3;
        record(pinger, us);
        if (!options->quiet && !options->json)
            printf("%" PRIu64 " octets %s %s: seq=%" PRIu64 " time=%.1f us\n", options->size, pinger->trip->what,
                   pinger->peer, pinger->done, us);
        if (pinger->done == options->count)
            return 0;
        fflush(stdout);
        if (tool_stopped)
            return PING_INTERRUPTED;
        code = pause_until(pinger, start_ns + interval_ns);
    }
    return code;
}

static void print_start(struct pinger *pinger)
{
    struct rddp_qp_info info;
    char wire[WIRE_TEXT];
    if (rddp_query_qp(pinger->qp, &info))
        return;
    address_text(pinger->peer, &info.peer);
    if (pinger->options->json || pinger->options->quiet)
        return;
    printf("%s %s: %" PRIu64 " octets, %s\n", pinger->options->rping ? "rping" : "ping", pinger->peer,
           pinger->options->size, wire_text(wire, &info));
}

static bool is_verified(const struct ping_options *options)
{
    return !options->rping || options->verify;
}

static void ping_client_print_json(const struct pinger *pinger, const struct target *target, int code, double elapsed_s)
{
    size_t n = pinger->done < SAMPLES ? (size_t)pinger->done : SAMPLES;
    struct json json = {.out = stdout};
    json_open(&json, NULL, '{');
    json_text(&json, "program", "rddp ping");
    json_text(&json, "protocol", pinger->options->rping ? "rping" : "rddp");
    json_text(&json, "target", target->text);
    json_text(&json, "peer", pinger->peer[0] ? pinger->peer : NULL);
    json_bool(&json, "ok", !code);
    json_u64(&json, "size_octets", pinger->options->size);
    json_u64(&json, "round_trips", pinger->done);
    json_bool(&json, "verified", is_verified(pinger->options) && pinger->done && !code);
    json_real(&json, "elapsed_seconds", elapsed_s);
    if (n) {
        json_real(&json, "rtt_us_min", pinger->min_us);
        json_real(&json, "rtt_us_mean", pinger->sum_us / (double)pinger->done);
        json_real(&json, "rtt_us_max", pinger->max_us);
        json_real(&json, "rtt_us_p50", quantile(pinger->samples, n, 0.5));
        json_real(&json, "rtt_us_p99", quantile(pinger->samples, n, 0.99));
    }
    json_close(&json, '}');
}

static void ping_client_print_summary(const struct pinger *pinger, double elapsed_s)
{
    size_t n = pinger->done < SAMPLES ? (size_t)pinger->done : SAMPLES;
    printf("--- %s: %" PRIu64 " round trips%s, %.3f s\n", pinger->peer, pinger->done,
           is_verified(pinger->options) ? ", all verified" : "", elapsed_s);
    if (n)
        printf("round trip min/avg/max/p50/p99 = %.1f/%.1f/%.1f/%.1f/%.1f us\n", pinger->min_us,
               pinger->sum_us / (double)pinger->done, pinger->max_us, quantile(pinger->samples, n, 0.5),
               quantile(pinger->samples, n, 0.99));
}

static int connect_pinger(struct pinger *pinger, const struct target *target)
{
    struct rddp_qp_attr qp_attr;
    rddp_qp_attr_init(&qp_attr);
    qp_attr.max_send_wr = 16;
    qp_attr.max_recv_wr = 4;
    struct rddp_conn_attr attr;
    rddp_conn_attr_init(&attr);
    attr.wire = pinger->options->wire;
    if (pinger->trip->reads)
        attr.ird = attr.ord = pinger->trip->reads;
    return endpoint_connect(&pinger->endpoint, target, &qp_attr, &attr, pinger->trip->prepare, pinger, &pinger->qp,
                            NULL, NULL);
}

static int run_pinger(struct pinger *pinger, const struct target *target)
{
    int code = endpoint_open(&pinger->endpoint, &(struct endpoint_attr){.wire = pinger->options->wire.wire});
    if (!code)
        code =
            region_make(&pinger->endpoint, pinger->trip->size(pinger->options), pinger->trip->access, &pinger->memory);
    uint64_t start_ns = clock_ns();
    if (!code)
        code = connect_pinger(pinger, target);
    if (!code) {
        print_start(pinger);
        start_ns = clock_ns();
        code = make_trips(pinger);
    }
    double elapsed_s = (double)(clock_ns() - start_ns) / 1e9;
    if (code == PING_INTERRUPTED)
        code = pinger->done ? EXIT_OK : EXIT_FAILED;

    sort_samples(pinger->samples, pinger->done < SAMPLES ? (size_t)pinger->done : SAMPLES);
    if (pinger->options->json)
        ping_client_print_json(pinger, target, code, elapsed_s);
    else if (pinger->done)
        ping_client_print_summary(pinger, elapsed_s);
    if (pinger->qp && !code)
        endpoint_disconnect(&pinger->endpoint, pinger->qp, CLOSE_MS);
    return code;
}

int ping_client(const struct ping_options *options, const struct trip *trip, const struct target *target)
{
    struct pinger pinger = {.options = options, .trip = trip};
    snprintf(pinger.peer, sizeof(pinger.peer), "%.*s", ADDRESS_TEXT - 1, target->text);
    pinger.samples = malloc(SAMPLES * sizeof(*pinger.samples));
    int code = pinger.samples ? run_pinger(&pinger, target) : fail(EXIT_FAILED, "out of memory");
    if (pinger.qp)
        rddp_destroy_qp(pinger.qp);
    region_free(&pinger.memory);
    endpoint_close(&pinger.endpoint);
    free(pinger.samples);
    return code;
}
