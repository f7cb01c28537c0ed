/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* idle.c - processor time of a context with an idle connection: alone, after a child of fork() has closed what it
 * inherited, and after a child has simply ended. idle [SECONDS] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/ends.h"

static void print_idle(const char *when, double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    double before = ends_cpu_s();

    nanosleep(&pause, NULL);
    printf("%-32s %.4f processor seconds a second\n", when, (ends_cpu_s() - before) / seconds);
    fflush(stdout);
}

static void run_child(struct end *end, bool closes)
{
    pid_t pid = fork();

    if (!pid) {
        if (closes)
            ends_close(end, true);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        ends_fail("fork", 0);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    struct ends_peer peer;
    struct end end;

    if (seconds <= 0)
        return 2;
    ends_start(&peer, NULL);
    ends_open(&end, &peer, NULL, 1);
    print_idle("idle", seconds);
    run_child(&end, true);
    print_idle("after a child has closed all", seconds);
    run_child(&end, false);
    print_idle("after a child has ended", seconds);
    ends_stop(&peer);
    ends_close(&end, true);
    return 0;
}
