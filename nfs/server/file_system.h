/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_system.h - what the type of a file system says about waiting. */
#ifndef RDDP_NFS_SERVER_FILE_SYSTEM_H
#define RDDP_NFS_SERVER_FILE_SYSTEM_H

#include <stdbool.h>

/* Whether all changes of the file system of `fd` go through this machine's caches, and what the kernel has in memory of
 * it is used without asking anyone. Network, user-space and stacked file systems are not local: any of their calls may
 * wait for another process or machine. */
bool fs_is_local(int fd);

/* Whether it has no disk, so that nothing waits for one. */
bool fs_is_in_memory(int fd);

#endif
