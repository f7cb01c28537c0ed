/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.c - the output of `rddp cp`: a line of progress, failures, and the final figures. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "tools/cp/cp.h"

enum {
    TERMINAL_MS = 200, /* between two drawings of the line */
    PLAIN_MS = 5000,   /* between two plain lines */
};

static const double giga = 1e9;

static void progress_wipe(struct cp_report *report)
{
    if (report->drawn)
        fputs("\r\033[K", stderr);
    report->drawn = false;
}

/* Prepends the path that the user gave. */
static void full_name(const struct cp_report *report, const char *path, char text[XFER_TEXT])
{
    char whole[2 * XFER_PATH + 2];
    size_t n = strnlen(report->source, XFER_PATH);
    bool slash = *path && n && report->source[n - 1] != '/' && report->source[n - 1] != ':';
    snprintf(whole, sizeof(whole), "%.*s%s%s", (int)n, report->source, slash ? "/" : "", path);
    xfer_printable(text, whole);
}

/* Whether `of` is `path` or below it. "" is below nothing: the top itself cannot fail. */
static bool is_below(const char *path, const char *of)
{
    size_t n = strlen(path);
    return n && !strncmp(of, path, n) && (!of[n] || of[n] == '/');
}

static void progress_event(void *user, enum tally_event event, const char *path, enum xfer_result result,
                           uint64_t octets)
{
    struct cp_report *report = user;
    char name[XFER_TEXT];
    full_name(report, path, name);
    progress_wipe(report);
    if (event == TALLY_FAILED || event == TALLY_UNREAD) {
        if (is_below(report->failed, path))
            return; /* `path` is below a directory that failed, so its failure is no news */
        snprintf(report->failed, sizeof(report->failed), "%s", path);
        warn("%s%s: %s", (event == TALLY_FAILED) != report->pull ? "at the server, " : "", name,
             xfer_result_text(result));
        if (report->errors < CP_ERRORS) {
            memcpy(report->error[report->errors].path, name, sizeof(name));
            report->error[report->errors++].result = result;
        }
    } else if (event == TALLY_WOULD) {
        if (!report->options->quiet && !report->options->json)
            printf("%s\n", name);
    } else if (!report->options->quiet) {
        const char *what = event == TALLY_RESUMED ? "resumed at" : "started again: differs in its first";
        char text[SMALL_TEXT];
        fprintf(stderr, "%s: %s %s\n", name, what, octets_text(text, octets));
    }
}

void report_start(struct cp_report *report)
{
    report->terminal = isatty(STDERR_FILENO);
    report->start_ns = report->shown_ns = clock_ns();
    report->start_cpu_s = cpu_seconds();
    report->copy->tally.report = progress_event;
    report->copy->tally.user = report;
}

/* --- on the way ---------------------------------------------------------------------------------------------- */

static uint64_t dealt_with(const struct xfer_tally *tally)
{
    return tally->octets + tally->resumed + tally->unchanged_octets + tally->hole_octets;
}

static uint64_t files_dealt_with(const struct xfer_tally *tally)
{
    return tally->files + tally->unchanged;
}

static void print_eta(const struct xfer_tally *tally, double rate)
{
    uint64_t done = dealt_with(tally);
    uint64_t left = tally->total_octets > done ? tally->total_octets - done : 0;
    double seconds = rate > 0 ? (double)left / rate : 0;
    if (rate <= 0 || seconds > 360000)
        return;
    uint64_t s = (uint64_t)(seconds + 0.5);
    fputs("  ETA ", stderr);
    if (s >= 3600)
        fprintf(stderr, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        fprintf(stderr, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

static void print_progress(struct cp_report *report)
{
    const struct xfer_tally *tally = &report->copy->tally;
    char rate[SMALL_TEXT], octets[SMALL_TEXT];
    uint64_t done = dealt_with(tally);
    if (tally->total_known && tally->total_octets)
        fprintf(stderr, "%3.0f%%  ",
                100 * (double)(done < tally->total_octets ? done : tally->total_octets) / (double)tally->total_octets);
    fprintf(stderr, "%s  %s  %" PRIu64, octets_text(octets, done), rate_text(rate, report->rate),
            files_dealt_with(tally));
    if (tally->total_known)
        fprintf(stderr, "/%" PRIu64, tally->total_files);
    fprintf(stderr, " file%s", plural_s(tally->total_known ? tally->total_files : files_dealt_with(tally)));
    if (report->still_ns && report->shown_ns - report->still_ns > STALLED_MS * 1000000ULL)
        fputs("  stalled", stderr);
    if (tally->total_known)
        print_eta(tally, report->rate);
}

void report_progress(struct cp_report *report)
{
    uint64_t now = clock_ns(), ms = (now - report->shown_ns) / 1000000;
    if (report->options->quiet || report->options->json)
        return;
    if (ms < (report->terminal ? TERMINAL_MS : PLAIN_MS))
        return;
    const struct xfer_tally *tally = &report->copy->tally;
    uint64_t octets = tally->octets, all = dealt_with(tally) + files_dealt_with(tally);
    if (all != report->shown_all || !report->still_ns)
        report->still_ns = now;
    report->shown_all = all;
    double rate = (double)(octets - report->shown_octets) * 1000 / (double)ms;
    report->rate = report->rate > 0 ? 0.7 * report->rate + 0.3 * rate : rate;
    report->shown_ns = now;
    report->shown_octets = octets;
    progress_wipe(report);
    print_progress(report);
    report->drawn = report->terminal;
    fputs(report->terminal ? "" : "\n", stderr);
}

int report_failure(struct cp_report *report, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->trouble, sizeof(report->trouble), format, arguments);
    va_end(arguments);
    progress_wipe(report);
    return fail(code, "%s", report->trouble);
}

/* --- at the end ---------------------------------------------------------------------------------------------- */

struct figures {
    double seconds, rate;       /* octets a second */
    double cpu_here, cpu_there; /* CPU seconds per 10^9 octets; negative if not known */
};

static struct figures figure(const struct cp_report *report)
{
    const struct xfer_copy *copy = report->copy;
    double gb = copy->tally.octets < COST_OCTETS ? 0 : (double)copy->tally.octets / giga;
    struct figures f = {.cpu_here = -1, .cpu_there = -1};
    f.seconds = (double)(report->end_ns - report->start_ns) / giga;
    f.rate = f.seconds > 0 ? (double)copy->tally.octets / f.seconds : 0;
    if (gb > 0)
        f.cpu_here = (report->end_cpu_s - report->start_cpu_s) / gb;
    if (gb > 0 && copy->finished && copy->peer_cpu_us != COPY_CPU_UNKNOWN)
        f.cpu_there = (double)copy->peer_cpu_us / 1e6 / gb;
    return f;
}

static void summary_print(const struct cp_report *report, int code)
{
    const struct xfer_tally *tally = &report->copy->tally;
    struct figures f = figure(report);
    char octets[SMALL_TEXT], rate[SMALL_TEXT];
    bool dry = report->options->dry;
    printf("%s%" PRIu64 " file%s", dry ? "dry run: " : "", tally->files, plural_s(tally->files));
    if (tally->directories)
        printf(", %" PRIu64 " director%s", tally->directories, tally->directories == 1 ? "y" : "ies");
    if (tally->links)
        printf(", %" PRIu64 " link%s", tally->links, plural_s(tally->links));
    printf(", %s%s in %.2f s", octets_text(octets, tally->octets), dry ? " to copy, found" : "", f.seconds);
    if (tally_has_rate(tally, f.seconds) && !dry)
        printf(": %s", rate_text(rate, f.rate));
    if (tally->resumed)
        printf("; %s were there already", octets_text(octets, tally->resumed));
    if (tally->hole_octets)
        printf("; %s in holes", octets_text(octets, tally->hole_octets));
    if (tally->unchanged)
        printf("; %" PRIu64 " file%s unchanged", tally->unchanged, plural_s(tally->unchanged));
    if (tally->left_out)
        printf("; %" PRIu64 " link%s left out", tally->left_out, plural_s(tally->left_out));
    if (!code && !dry && tally->files)
        printf("; every file verified");
    else if (tally->failed)
        printf("; %" PRIu64 " failed", tally->failed);
    if (f.cpu_here >= 0 && !dry)
        printf("; CPU %.2f s/GB here", f.cpu_here);
    if (f.cpu_there >= 0 && !dry)
        printf(", %.2f s/GB at the server", f.cpu_there);
    putchar('\n');
}

static void real_or_null(struct json *json, const char *key, double value)
{
    if (value >= 0)
        json_real(json, key, value);
    else
        json_text(json, key, NULL);
}

static void summary_print_json(const struct cp_report *report, int code)
{
    const struct xfer_tally *tally = &report->copy->tally;
    struct figures f = figure(report);
    struct json json = {.out = stdout};
    char text[XFER_TEXT];
    json_open(&json, NULL, '{');
    json_text(&json, "direction", copy_verb(report->pull));
    json_text(&json, "source", xfer_printable(text, report->source));
    json_text(&json, "destination", xfer_printable(text, report->destination));
    json_bool(&json, "verified", code == EXIT_OK && !report->options->dry);
    json_u64(&json, "exit_code", (uint64_t)code);
    json_bool(&json, "dry_run", report->options->dry);
    json_u64(&json, "files", tally->files);
    json_u64(&json, "files_unchanged", tally->unchanged);
    json_u64(&json, "directories", tally->directories);
    json_u64(&json, "links", tally->links);
    json_u64(&json, "links_left_out", tally->left_out);
    json_u64(&json, "failed", tally->failed);
    json_u64(&json, "bytes", tally->octets);
    json_u64(&json, "resumed_bytes", tally->resumed);
    json_u64(&json, "unchanged_bytes", tally->unchanged_octets);
    json_u64(&json, "hole_bytes", tally->hole_octets);
    json_real(&json, "seconds", f.seconds);
    json_real(&json, "bytes_per_second", f.rate);
    json_real(&json, "gigabits_per_second", f.rate * 8 / giga);
    real_or_null(&json, "cpu_seconds_per_gb_client", f.cpu_here);
    real_or_null(&json, "cpu_seconds_per_gb_server", f.cpu_there);
    json_u64(&json, "placed_early_bytes", report->connection.placed_early);
    json_u64(&json, "kept_bytes_max", report->connection.kept_max);
    json_text(&json, "trouble", *report->trouble ? report->trouble : NULL);
    json_open(&json, "errors", '[');
    for (unsigned i = 0; i < report->errors; i++) {
        json_open(&json, NULL, '{');
        json_text(&json, "path", report->error[i].path);
        json_text(&json, "reason", xfer_result_text(report->error[i].result));
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

void report_end(struct cp_report *report, int code)
{
    report->end_ns = clock_ns();
    report->end_cpu_s = cpu_seconds();
    progress_wipe(report);
    if (report->options->json)
        summary_print_json(report, code);
    else if (!report->options->quiet)
        summary_print(report, code);
}
