/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy.h - one copy seen from one end: the link, and a source or a sink on it. */
#ifndef TOOLS_XFER_COPY_H
#define TOOLS_XFER_COPY_H

#include "tools/xfer/sink.h"
#include "tools/xfer/source.h"

enum copy_role { COPY_IDLE, COPY_SOURCE, COPY_SINK };

struct xfer_copy {
    struct xfer_link link;
    struct xfer_tally tally;
    enum copy_role role;
    struct xfer_source source;
    struct xfer_sink sink;
    bool finished; /* FINISH came, and said this: */
    uint64_t peer_cpu_us;
    enum xfer_result refused; /* ERROR came */
};

/* What the other end's CPU time is if it does not know. */
#define COPY_CPU_UNKNOWN UINT64_MAX

/* copy->role is set when the source or the sink is open. Not copy->link: it has other owners beside. */
void copy_close(struct xfer_copy *copy);

/* Waits for a record of `type`, the first that comes; ERROR sets copy->refused. False if it does not come in time. */
bool copy_await(struct xfer_copy *copy, enum xfer_type type, struct xfer_record *record, int timeout_ms);

/* Takes what came and does a little more. False if there is nothing to do but xfer_link_wait(). */
bool copy_step(struct xfer_copy *copy);
/* Is there something left to do, and a connection to do it over? */
bool copy_runs(const struct xfer_copy *copy);
/* Puts the last record, FINISH, as soon as the peer lets us; a peer that never does is given up by xfer_link_wait(). */
void copy_put_finish(struct xfer_copy *copy, uint64_t cpu_us);
/* Has every entry been told of, at this end? */
bool copy_over(const struct xfer_copy *copy);

const char *copy_verb(bool pull); /* "pull" or "push" */

#endif
