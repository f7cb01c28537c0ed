/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_report.c - the output of a copy: progress, failures, and the final figures. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "nfs/command/nfs_report.h"

enum { TERMINAL_MS = 200, PLAIN_MS = 5000 };

static const double giga = 1e9;

static void report_wipe(struct nfs_report *report)
{
    if (report->drawn)
        fputs("\r\033[K", stderr);
    report->drawn = false;
}

void nfs_report_start(struct nfs_report *report)
{
    report->terminal = isatty(STDERR_FILENO);
    report->start_ns = report->shown_ns = clock_ns();
    report->start_cpu_s = cpu_seconds();
}

void nfs_report_progress(struct nfs_report *report)
{
    uint64_t now = clock_ns(), ms = (now - report->shown_ns) / 1000000;
    char rate[SMALL_TEXT], octets[SMALL_TEXT];
    if (report->options->quiet || report->options->json || ms < (report->terminal ? TERMINAL_MS : PLAIN_MS))
        return;
    double late = (double)(report->octets - report->shown_octets) * 1000 / (double)ms;
    report->rate = report->rate > 0 ? 0.7 * report->rate + 0.3 * late : late;
    if (report->octets != report->shown_octets || report->files != report->shown_files || !report->still_ns)
        report->still_ns = now;
    report->shown_ns = now;
    report->shown_octets = report->octets;
    report->shown_files = report->files;
    report_wipe(report);
    bool stalled = now - report->still_ns > STALLED_MS * 1000000ULL;
    fprintf(stderr, "%s  %s  %" PRIu64 " file%s%s%s", octets_text(octets, report->octets),
            rate_text(rate, report->rate), report->files, plural_s(report->files), stalled ? "  stalled" : "",
            report->terminal ? "" : "\n");
    report->drawn = report->terminal;
}

int nfs_report_failure(struct nfs_report *report, int code, const char *format, ...)
{
    char line[sizeof(report->trouble)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (!*report->trouble)
        memcpy(report->trouble, line, sizeof(line));
    report_wipe(report);
    return fail(code, "%s", line);
}

void nfs_report_resumed(struct nfs_report *report, const char *name, uint64_t octets)
{
    char text[XFER_TEXT], small[SMALL_TEXT];
    report->resumed += octets;
    if (report->options->quiet || report->options->json)
        return;
    report_wipe(report);
    fprintf(stderr, "%s: resumed at %s\n", xfer_printable(text, name), octets_text(small, octets));
}

static void report_print_summary(const struct nfs_report *report, double seconds, double cpu)
{
    char octets[SMALL_TEXT], rate[SMALL_TEXT];
    double each = seconds > 0 ? (double)report->octets / seconds : 0;
    printf("%" PRIu64 " file%s", report->files, plural_s(report->files));
    if (report->directories)
        printf(", %" PRIu64 " director%s", report->directories, report->directories == 1 ? "y" : "ies");
    if (report->links)
        printf(", %" PRIu64 " link%s", report->links, plural_s(report->links));
    printf(", %s in %.2f s", octets_text(octets, report->octets), seconds);
    if (report->octets >= RATE_OCTETS && seconds >= 0.01)
        printf(": %s", rate_text(rate, each));
    if (report->placed)
        printf("; %s placed", octets_text(octets, report->placed));
    if (report->resumed)
        printf("; %s were there already", octets_text(octets, report->resumed));
    if (report->verified)
        printf("; %" PRIu64 " file%s verified", report->verified, plural_s(report->verified));
    if (report->unsummed && (report->octets || report->resumed))
        printf("; not verified: the server has no digests");
    if (report->failed)
        printf("; %" PRIu64 " failed", report->failed);
    if (report->restarts)
        printf("; the server restarted: data sent again");
    if (report->octets >= COST_OCTETS)
        printf("; CPU %.2f s/GB", cpu * giga / (double)report->octets);
    putchar('\n');
}

static void report_print_json(const struct nfs_report *report, int code, double seconds, double cpu)
{
    struct json json = {.out = stdout};
    char text[XFER_TEXT];
    json_open(&json, NULL, '{');
    json_text(&json, "direction", report->pull ? "pull" : "push");
    json_text(&json, "source", xfer_printable(text, report->source));
    json_text(&json, "destination", xfer_printable(text, report->destination));
    json_u64(&json, "exit_code", (uint64_t)code);
    json_u64(&json, "files", report->files);
    json_u64(&json, "directories", report->directories);
    json_u64(&json, "links", report->links);
    json_u64(&json, "failed", report->failed);
    json_u64(&json, "bytes", report->octets);
    json_u64(&json, "resumed_bytes", report->resumed);
    json_u64(&json, "placed_bytes", report->placed);
    json_u64(&json, "verified_files", report->verified);
    json_u64(&json, "server_restarts", report->restarts);
    json_real(&json, "seconds", seconds);
    json_real(&json, "bytes_per_second", seconds > 0 ? (double)report->octets / seconds : 0);
    json_real(&json, "cpu_seconds", cpu);
    json_text(&json, "trouble", *report->trouble ? report->trouble : NULL);
    json_close(&json, '}');
}

void nfs_report_end(struct nfs_report *report, int code)
{
    double seconds = (double)(clock_ns() - report->start_ns) / giga, cpu = cpu_seconds() - report->start_cpu_s;
    report_wipe(report);
    if (report->options->json)
        report_print_json(report, code, seconds, cpu);
    else if (!report->options->quiet)
        report_print_summary(report, seconds, cpu);
}
