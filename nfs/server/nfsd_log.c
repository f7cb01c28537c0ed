/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_log.c - decides whether a peer is admitted, and logs a line for the administrator if not. */
#include "nfs/server/nfsd_in.h"

static void write_line(void *user, enum rddp_log_level level, const char *line)
{
    struct nfsd *d = user;

    (void)level;
    if (d->attr.log)
        d->attr.log(d->attr.user, line);
}

void nfsd_log_init(struct nfsd *d)
{
    rpc_log_init(&d->log, write_line, d);
}

bool nfsd_admits(struct nfsd *d, const struct sockaddr_storage *peer)
{
    const struct nfs_server *server = d->attr.server;
    char text[RPC_ADDRESS];

    for (unsigned i = 0; i < server->exports; i++)
        if (export_allows(&server->export[i], (const struct sockaddr *)peer))
            return true;
    rpc_log(&d->log, RDDP_LOG_WARN, "refused %s: no export allows this address", rpc_address_text(text, peer));
    return false;
}
