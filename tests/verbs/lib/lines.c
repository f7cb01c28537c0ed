/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lines.c - see lines.h. */
#include "tests/verbs/lib/lines.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int log_fd, real_fd;

int lines_begin(void)
{
    log_fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    real_fd = dup(STDERR_FILENO);
    return log_fd < 0 || dup2(log_fd, STDERR_FILENO) < 0 ? -1 : 0;
}

void lines_end(void)
{
    dup2(real_fd, STDERR_FILENO);
    close(real_fd);
    close(log_fd);
}

void lines_read(char line[LINES_MAX])
{
    ssize_t n = pread(log_fd, line, LINES_MAX - 1, 0);

    line[n > 0 ? n : 0] = '\0';
    assert_int_equal(ftruncate(log_fd, 0), 0);
    assert_int_equal(lseek(log_fd, 0, SEEK_SET), 0);
}

void lines_expect(const char *call, const char *rule, const char *error)
{
    char line[LINES_MAX];

    lines_read(line);
    if (strncmp(line, "rddp: ", 6) || !strstr(line, call) || !strstr(line, rule) || !strstr(line, error) ||
        strchr(line, '\n') != line + strlen(line) - 1) {
        dprintf(real_fd, "'%s' is no line about %s: %s: %s\n", line, call, rule, error);
        fail();
    }
}
