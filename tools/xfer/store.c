/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* store.c - asks the file system whether it has stored what was written. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/xfer/store.h"

/* Network and user-space file systems write at close(), and report there what went wrong. Closing a duplicate of the
 * descriptor asks them while the file can still be given up. */
int store_check(int fd, bool sync)
{
    if (sync && fsync(fd))
        return -errno;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 || close(copy) ? -errno : 0;
}
