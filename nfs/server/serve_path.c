/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_path.c - names of clients as names for the kernel, and paths of what is open. */
#include <stdio.h>
#include <string.h>

#include "nfs/server/serve_in.h"

enum nfs3_status name_of(const struct nfs3_text *text, char name[NFS3_NAME_MAX + 1])
{
    if (text->length == 0)
        return NFS3ERR_ACCES;
    if (text->length > NFS3_NAME_MAX)
        return NFS3ERR_NAMETOOLONG;
    if (memchr(text->at, '/', text->length) || memchr(text->at, 0, text->length))
        return NFS3ERR_ACCES;
    memcpy(name, text->at, text->length);
    name[text->length] = 0;
    return NFS3_OK;
}

bool name_is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

void self_path(char path[SELF_PATH], int fd)
{
    snprintf(path, SELF_PATH, "/proc/self/fd/%d", fd);
}
