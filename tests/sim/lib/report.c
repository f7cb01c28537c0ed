/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.c - makes a failed run reproducible. */
#include "tests/sim/lib/report.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void __attribute__((weak)) __sanitizer_set_death_callback(void (*callback)(void));

static char told[2048];
static size_t told_octets;

static void tell(void)
{
    (void)!write(STDERR_FILENO, told, told_octets);
    (void)!write(STDERR_FILENO, "\n", 1);
}

static void on_abort(int number)
{
    tell();
    signal(number, SIG_DFL);
    raise(number);
}

static void add(const char *format, va_list arguments)
{
    int n = vsnprintf(told + told_octets, sizeof(told) - told_octets, format, arguments);

    if (n > 0)
        told_octets += (size_t)n < sizeof(told) - told_octets ? (size_t)n : sizeof(told) - told_octets - 1;
}

void report_begin(uint64_t seed)
{
    told_octets = 0;
    report_add("sim: SIM_SEED=0x%016llx SIM_RUNS=1:", (unsigned long long)seed);
    signal(SIGABRT, on_abort);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(tell);
}

void report_add(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(format, arguments);
    va_end(arguments);
}

void report_failure(const char *format, ...)
{
    va_list arguments;

    report_add("\nsim: ");
    va_start(arguments, format);
    add(format, arguments);
    va_end(arguments);
    tell();
    _exit(EXIT_FAILURE);
}

void report_end(void)
{
    if (getenv("SIM_VERBOSE"))
        tell();
    signal(SIGABRT, SIG_DFL);
}
