/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* common.c - messages, numbers as text, clocks and statistics for the subcommands. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/lib/tool.h"

const char *tool_name = "rddp";
volatile sig_atomic_t tool_stopped;

static void common_say(const char *format, va_list arguments)
{
    char line[1024];
    int n = vsnprintf(line, sizeof(line), format, arguments);
    if (n < 0)
        line[0] = 0;
    /* Keep the order of output when both streams go to one file. */
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", tool_name, line);
}

int fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    common_say(format, arguments);
    va_end(arguments);
    return code;
}

void warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    common_say(format, arguments);
    va_end(arguments);
}

const char *error_text(int error)
{
    static _Thread_local char text[96];
    snprintf(text, sizeof(text), "%s", strerror(abs(error)));
    /* Texts such as "RPC ..." and "I/O ..." keep their capitals. */
    if (text[0] && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

static void common_stop(int number)
{
    tool_stopped = number;
}

void catch_signals(void)
{
    struct sigaction action = {.sa_handler = common_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int stop_code(int code)
{
    return code && tool_stopped > 1 ? 128 + tool_stopped : code;
}

/* For messages that any peer can cause at will. */
_Noreturn void usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", tool_name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " (see `%s --help`)\n", tool_name);
    va_end(arguments);
    exit(EXIT_USAGE);
}

void warn_seldom(const char *format, ...)
{
    enum { A_SECOND = 5 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char last[512];
    static uint64_t second, said, kept;
    uint64_t now = clock_ns() / 1000000000;
    char line[sizeof(last)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    if (now != second) {
        if (kept)
            warn("... and %" PRIu64 " line%s like that", kept, plural_s(kept));
        second = now;
        said = kept = 0;
        last[0] = 0;
    }
    if (strcmp(line, last)) {
        memcpy(last, line, sizeof(last));
        if (said++ < A_SECOND)
            warn("%s", line);
        else
            kept++;
    }
    pthread_mutex_unlock(&lock);
}

const char *plural_s(uint64_t n)
{
    return n == 1 ? "" : "s";
}

void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        warn("cannot raise the number of open files: %s", error_text(errno));
}

bool wants_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    return !(no && *no) && isatty(fileno(out));
}

bool parse_u64(const char *text, uint64_t *value)
{
    char *end;
    /* strtoull() would accept blanks and a sign. */
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return !*end && !errno;
}

bool parse_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno)
        return false;
    unsigned shift = 0;
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
        if (!strcasecmp(end, "ib"))
            end += 2;
    }
    if (*end || value << shift >> shift != value)
        return false;
    *size = value << shift;
    return true;
}

char *size_text(char text[SMALL_TEXT], uint64_t size)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    unsigned i = 0;
    while (i < 4 && size && size % 1024 == 0) {
        size /= 1024;
        i++;
    }
    snprintf(text, SMALL_TEXT, "%" PRIu64 "%s", size, units[i]);
    return text;
}

static char *scaled_text(char *text, double value, const char *unit)
{
    static const char prefixes[] = " kMGT";
    unsigned i = 0;
    while (i < 4 && value >= 999.5) {
        value /= 1000;
        i++;
    }
    int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(text, SMALL_TEXT, "%.*f %.*s%s", digits, value, i > 0, &prefixes[i], unit);
    return text;
}

char *rate_text(char text[SMALL_TEXT], double octets_per_second)
{
    return scaled_text(text, octets_per_second, "B/s");
}

char *octets_text(char text[SMALL_TEXT], uint64_t octets)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)octets;
    int i = 0;
    for (; value >= 1000 && i < 4; i++)
        value /= 1000;
    snprintf(text, SMALL_TEXT, i ? "%.2f %s" : "%.0f %s", value, units[i]);
    return text;
}

char *count_rate_text(char text[SMALL_TEXT], double each_second)
{
    return scaled_text(text, each_second, "/s");
}

char *bit_rate_text(char text[SMALL_TEXT], double octets_per_second)
{
    return scaled_text(text, octets_per_second * 8, "b/s");
}

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

uint64_t resident_octets(void)
{
    unsigned long total, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm)
        return 0;
    if (fscanf(statm, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    fclose(statm);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int common_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort_samples(double *samples, size_t n)
{
    if (n)
        qsort(samples, n, sizeof(*samples), common_compare);
}

double quantile(const double *sorted, size_t n, double q)
{
    if (!n)
        return 0;
    size_t rank = (size_t)(q * (double)n);
    rank += (double)rank < q * (double)n;
    return sorted[rank ? rank - 1 : 0];
}

double mean(const double *samples, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += samples[i];
    return n ? sum / (double)n : 0;
}
