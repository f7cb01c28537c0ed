/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_pair.c - a TCP connection over loopback without rddp, to a process that is started for it. */
#include "bench/lib/raw_pair.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/ends.h"

static int without_delay(int fd)
{
    int on = 1;

    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        ends_fail("a TCP connection of our own", 0);
    return fd;
}

_Noreturn static void be_other(const struct sockaddr_in *to, void (*other)(int fd, void *of), void *of)
{
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fd = without_delay(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
        ends_fail("connect", 0);
    other(fd, of);
    _exit(0);
}

void raw_pair_open(struct raw_pair *pair, void (*other)(int fd, void *of), void *of)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof(own);

    if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&own, &length))
        ends_fail("listen", 0);
    pair->child = fork();
    if (pair->child < 0)
        ends_fail("fork", 0);
    if (!pair->child)
        be_other(&own, other, of);
    pair->fd = without_delay(accept(listener, NULL, NULL));
    close(listener);
}

void raw_pair_close(const struct raw_pair *pair)
{
    close(pair->fd);
    waitpid(pair->child, NULL, 0);
}
