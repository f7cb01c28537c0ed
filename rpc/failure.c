/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failure.c - calls whose chunk was not accessible. Such a call ends its connection; the same call would end the next
 * connection as well, so it is answered with ERR_CHUNK (RFC 8166 4.5.3). */
#include <string.h>

#include "rpc/clock.h"
#include "rpc/responder_inner.h"

enum { FAILURE_MS = 120000 };

/* The key uses the header alone: the call's payload was not received. */
static void key_of(struct replay_key *key, const struct rpc_serve *serve)
{
    static const struct responder_call nothing;

    replay_key(key, &serve->call.peer, serve->header.xid, &nothing);
}

void failure_note(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;
    struct failure *failure = &r->failures.entry[r->failures.count++ % FAILURES];

    key_of(&failure->key, serve);
    failure->until_ms = r->failures.until_ms = clock_ms() + FAILURE_MS;
}

bool failure_is_known(const struct rpc_serve *serve)
{
    const struct responder *r = serve->call.responder;
    struct replay_key key;
    uint64_t now;

    if (!r->failures.count || r->failures.until_ms <= (now = clock_ms()))
        return false;
    key_of(&key, serve);
    for (unsigned i = 0; i < FAILURES; i++)
        if (r->failures.entry[i].until_ms > now && memcmp(&r->failures.entry[i].key, &key, sizeof(key)) == 0)
            return true;
    return false;
}
