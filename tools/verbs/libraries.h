/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libraries.h - what `rddp run`, `rddp env` and `rddp doctor` share: where libibverbs.so.1 and librdmacm.so.1 are. */
#ifndef TOOLS_VERBS_LIBRARIES_H
#define TOOLS_VERBS_LIBRARIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { SEARCH_PATH = 4 * PATH_MAX };

/* Stores the folder of the libraries: beside the command where it was built, or where both were installed. Returns
 * false, with the folder that was expected, if they are not there. */
bool verbs_folder(char path[PATH_MAX]);

/* Stores the folder and, behind it, what LD_LIBRARY_PATH names now. Returns 0, or an exit code after a message. */
int verbs_search_path(char text[SEARCH_PATH]);

/* What may have refused user namespaces. */
#define VERBS_NAMESPACES \
    "see user.max_user_namespaces and kernel.unprivileged_userns_clone of sysctl(8), or what the container allows"

/* namespaces.c: the user and the group keep their numbers there. Returns 0, or a negative errno. */
int verbs_enter_namespaces(void);
/* Does the system allow the namespaces that verbs_view() needs? */
bool verbs_can_view(void);

/* Gives this process, and what it executes, a /sys/class/infiniband and a /dev/infiniband of both devices, in
 * namespaces of its own. Returns 0, or an exit code after a message. */
int verbs_view(void);

#endif
