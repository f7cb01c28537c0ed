/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_end.h - a connection over SCTP without an endpoint: what the loop does for one, for programs that have none. */
#ifndef RDDP_TESTS_LIB_SCTP_END_H
#define RDDP_TESTS_LIB_SCTP_END_H

#include "loop/reactor.h"
#include "sctp/io/sctp_conn.h"

/* After the provider's drive(): receives, ticks and serves. */
static inline void sctp_end_serve(struct sctp_conn *c)
{
    uint64_t now_us = reactor_now_us();

    sctp_conn_receive(c, now_us);
    assoc_tick(&c->assoc, now_us);
    sctp_conn_serve(c, true, now_us);
}

/* Drives the socket of this one connection, which may still have to arrive there. Returns false until it has. */
static inline bool sctp_end_turn(struct sctp_conn *c, struct sctp_socket *socket)
{
    struct sctp_assoc *sctp = NULL;

    socket->provider->drive(socket);
    if (!c->sctp)
        sctp = socket->provider->accept(socket);
    if (sctp)
        sctp_conn_attach(c, socket, sctp);
    if (c->sctp)
        sctp_end_serve(c);
    return c->sctp;
}

/* Begins the active end, whose `assoc` is initialised. Returns 0 or a negative errno. */
static inline int sctp_end_connect(struct sctp_conn *c, struct sctp_socket *socket, const struct sockaddr_in *peer)
{
    struct sctp_assoc *sctp;
    int error = socket->provider->connect(socket, (const struct sockaddr *)peer, &sctp);

    if (!error)
        sctp_conn_attach(c, socket, sctp);
    return error;
}

#endif
