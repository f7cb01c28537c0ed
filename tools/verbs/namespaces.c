/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* namespaces.c - user and mount namespaces of this process, for a view of its own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/lib/tool.h"
#include "tools/verbs/libraries.h"

static bool set_map(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_set = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return is_set;
}

int verbs_enter_namespaces(void)
{
    unsigned uid = getuid(), gid = getgid();
    char users[SMALL_TEXT], groups[SMALL_TEXT];

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return -errno;
    snprintf(users, sizeof(users), "%u %u 1", uid, uid);
    snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
    return set_map("/proc/self/setgroups", "deny") && set_map("/proc/self/uid_map", users) &&
                   set_map("/proc/self/gid_map", groups)
               ? 0
               : -EPERM;
}

/* In a child: this process keeps its namespaces. */
bool verbs_can_view(void)
{
    int status = 1;
    pid_t child = fork();

    if (!child)
        _exit(verbs_enter_namespaces() ? EXIT_FAILED : 0);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && !status;
}
