/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_passing.h - passes packets on to the process that owns their queue pair, and requests for connections to the one
 * that listens. Each UDP port of a process, and each of its listeners, has a datagram socket named after it, in the
 * abstract names of Unix sockets: names are those of the network namespace, as ports are, and nothing that is no owner
 * of such a name can be reached. The processes behind one UDP port are one user's, as the system demands, so packets of
 * another user's are dropped: it could not send them over the network either, from an address that it chooses. What is
 * passed on is as untrusted as what comes from the network, and is never passed on again. */
#ifndef RDDP_ROCE_IO_ROCE_PASSING_H
#define RDDP_ROCE_IO_ROCE_PASSING_H

#include <sys/types.h>

#include "roce/io/roce_address.h"

enum {
    PASSING_OCTETS = 1 << 16, /* of a datagram: several runs of packets */
    PASSING_HEAD = 44,        /* in front of each run */
};

struct roce_run;

/* Runs that are collected for one port. */
struct roce_passing {
    int fd;       /* sends; -1: none */
    uint8_t *out; /* owned */
    uint32_t octets, packets;
    uint16_t to_port;
    uint64_t unowned; /* packets whose port has no owner */
    uint64_t lost;    /* packets whose owner does not keep up */
};

/* Returns 0, -ENOMEM or a negative errno; roce_passing_fini() in any case. */
int roce_passing_init(struct roce_passing *passing);
void roce_passing_fini(struct roce_passing *passing);

/* Returns a socket that receives what is passed on to this port, or a negative errno. -EADDRINUSE: another has it. */
int roce_passing_open(uint16_t port);

/* The same of requests for the listener of a service ID at this address. */
int roce_passing_listen(uint64_t service, const struct roce_address *local);

/* Sends a request to the listener that is there for run->to, of the best address. Returns 0; -ECONNREFUSED: there is
 * none; -EAGAIN: its queue is full. */
int roce_passing_offer(struct roce_passing *passing, uint64_t service, const struct roce_run *run);

/* Collects a run for the owner of this port, and sends what was collected for another before. */
void roce_passing_put(struct roce_passing *passing, uint16_t port, const struct roce_run *run);
void roce_passing_flush(struct roce_passing *passing);

/* Receives a datagram of at most `octets`, without waiting. Returns its length, 0 for one that another user sent, or
 * -1: there is none. */
ssize_t roce_passing_receive(int fd, uint8_t *to, size_t octets);

/* Reads the next run of a datagram of `octets`, from *at on, which moves behind it. Returns false at its end, or if the
 * rest is malformed. */
bool roce_passing_read(const uint8_t *p, uint32_t octets, uint32_t *at, struct roce_run *run);

#endif
