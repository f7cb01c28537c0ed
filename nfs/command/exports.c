/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exports.c - `rddp nfs exports`: lists the exports of a server and who may mount them. */
#include <errno.h>

#include "nfs/command/nfs.h"

static void print_export(void *user, const char *path, const char *groups)
{
    char name[XFER_TEXT], list[XFER_TEXT];

    (void)user;
    printf("%s%s%s\n", xfer_printable(name, path), *groups ? " " : "", xfer_printable(list, groups));
}

int nfs_exports(const struct nfs_options *options, int argc, char **argv)
{
    struct nfs_client_attr attr;
    char text[NFS_CLIENT_TEXT], line[XFER_TEXT];
    int error;

    (void)argc;
    nfs_set_attr(&attr, options);
    attr.host = argv[0];
    error = nfs_client_exports(&attr, print_export, NULL, text);
    return error ? fail(nfs_connect_code(-error), "%s", xfer_printable(line, text)) : 0;
}
