/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy.h - one copy at one end: the link, and a source or a sink on it. */
#ifndef TOOLS_XFER_COPY_H
#define TOOLS_XFER_COPY_H

#include <stdatomic.h>

#include "tools/xfer/sink.h"
#include "tools/xfer/source.h"

enum copy_role { COPY_IDLE, COPY_SOURCE, COPY_SINK };

struct xfer_copy {
    struct xfer_link link;
    struct xfer_tally tally;
    enum copy_role role;
    struct xfer_source source;
    struct xfer_sink sink;
    bool finished; /* FINISH was received, with `peer_cpu_us` */
    uint64_t peer_cpu_us;
    enum xfer_result refused; /* the result in a received ERROR */
    _Atomic uint64_t
        moved_ns; /* when something was last done; mere keep-alives do not count. Any thread may read it. */
};

/* The CPU time in a FINISH of an end that does not know it. */
#define COPY_CPU_UNKNOWN UINT64_MAX

/* copy->role must be set when the source or the sink is open. The caller closes copy->link. */
void copy_close(struct xfer_copy *copy);

/* Waits for a record of `type`, which must be the first to arrive; ERROR sets copy->refused. Returns false on failure
 * or timeout. */
bool copy_await(struct xfer_copy *copy, enum xfer_type type, struct xfer_record *record, int timeout_ms);

/* Takes received records and does a little work. Returns false if there is nothing to do but xfer_link_wait(). */
bool copy_step(struct xfer_copy *copy);
/* Whether there is work left and a connection to do it over. */
bool copy_runs(const struct xfer_copy *copy);
/* Puts FINISH, the last record, as soon as the peer permits. xfer_link_wait() gives up a peer that never does. */
void copy_put_finish(struct xfer_copy *copy, uint64_t cpu_us);
/* Whether all entries are acknowledged at this end. */
bool copy_over(const struct xfer_copy *copy);

const char *copy_verb(bool pull); /* "pull" or "push" */

#endif
