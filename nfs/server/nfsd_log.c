/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_log.c - lines for an administrator. A peer can bring some about as often as it likes, so there is a limit. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "nfs/server/nfsd_in.h"
#include "rpc/clock.h"

enum { LINE = 512 };

/* A burst is written, then one line for each NFSD_LINE_MS; what is left out is counted. */
static bool may_write(struct nfsd_log *log, uint64_t now)
{
    uint64_t earned = (now - log->earned_ms) / NFSD_LINE_MS;

    log->earned_ms += earned * NFSD_LINE_MS;
    log->lines = earned < log->lines ? log->lines - (unsigned)earned : 0;
    if (log->lines == NFSD_LINES) {
        log->left_out++;
        return false;
    }
    log->lines++;
    return true;
}

void nfsd_log(struct nfsd *d, const char *text)
{
    char line[LINE];

    if (!d->attr.log || !may_write(&d->log, clock_ms()))
        return;
    if (d->log.left_out)
        snprintf(line, sizeof(line), "%s (%u lines were left out before this one)", text, d->log.left_out);
    else
        snprintf(line, sizeof(line), "%s", text);
    d->log.left_out = 0;
    d->attr.log(d->attr.user, line);
}

char *nfsd_address_text(char text[NFSD_ADDRESS], const struct sockaddr_storage *peer)
{
    static const char mapped[] = "::ffff:";
    socklen_t length = peer->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    if (getnameinfo((const struct sockaddr *)peer, length, text, NFSD_ADDRESS, NULL, 0, NI_NUMERICHOST))
        snprintf(text, NFSD_ADDRESS, "an unknown address");
    if (!strncmp(text, mapped, sizeof(mapped) - 1) && strchr(text, '.'))
        memmove(text, text + sizeof(mapped) - 1, strlen(text) - (sizeof(mapped) - 1) + 1);
    return text;
}

bool nfsd_admits(struct nfsd *d, const struct sockaddr_storage *peer)
{
    const struct nfs_server *server = d->attr.server;
    char text[NFSD_ADDRESS], line[LINE];

    for (unsigned i = 0; i < server->exports; i++)
        if (export_allows(&server->export[i], (const struct sockaddr *)peer))
            return true;
    snprintf(line, sizeof(line), "refused %s: no export allows this address", nfsd_address_text(text, peer));
    nfsd_log(d, line);
    return false;
}
