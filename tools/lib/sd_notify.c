/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sd_notify.c - notifies a service manager that the server is ready, or about to end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/lib/tool.h"

void tool_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof(addr.sun_path) || !strchr("/@", path[0]))
        return;
    memcpy(addr.sun_path, path, n);
    if (path[0] == '@')
        addr.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&addr,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
        warn("cannot notify the service manager: %s", error_text(errno));
    if (fd >= 0)
        close(fd);
}
