/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_none.c - a build without usrsctp: no port can be opened, so no other call is ever made. */
#include "net/usctp.h"

#ifndef RDDP_USRSCTP

#include <assert.h>
#include <errno.h>
#include <stddef.h>

bool usctp_is_there(void)
{
    return false;
}

void usctp_abandon(void)
{
}

int usctp_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr, struct usctp_port **port)
{
    (void)local;
    (void)length;
    (void)attr;
    *port = NULL;
    return -EPROTONOSUPPORT;
}

void usctp_close_port(struct usctp_port *port)
{
    assert(!port);
}

int usctp_fd(const struct usctp_port *port)
{
    assert(!port);
    return -1;
}

void usctp_local(const struct usctp_port *port, struct sockaddr_storage *local)
{
    assert(!port && local);
}

int usctp_listen(struct usctp_port *port, uint16_t sctp_port)
{
    assert(!port && sctp_port);
    return -EPROTONOSUPPORT;
}

uint16_t usctp_listen_port(const struct usctp_port *port)
{
    assert(!port);
    return 0;
}

void usctp_unlisten(struct usctp_port *port)
{
    assert(!port);
}

struct usctp *usctp_accept(struct usctp_port *port)
{
    assert(!port);
    return NULL;
}

int usctp_connect(struct usctp_port *port, const struct sockaddr *peer, struct usctp **assoc)
{
    assert(!port && peer && assoc);
    return -EPROTONOSUPPORT;
}

bool usctp_drive(struct usctp_port *port)
{
    assert(!port);
    return false;
}

void *usctp_ready(struct usctp_port *port)
{
    assert(!port);
    return NULL;
}

void usctp_own(struct usctp *assoc, void *owner)
{
    assert(!assoc && owner);
}

bool usctp_enter(bool wait)
{
    (void)wait;
    return true;
}

void usctp_leave(void)
{
}

bool usctp_next(struct usctp *assoc, struct sctp_news *event)
{
    assert(!assoc && event);
    return false;
}

void usctp_free(struct sctp_news *event)
{
    assert(!event->data);
}

int usctp_submit(struct usctp *assoc, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid)
{
    assert(!assoc && span && spans);
    (void)stream;
    (void)ppid;
    return -EPROTONOSUPPORT;
}

void usctp_flush(struct usctp_port *port)
{
    assert(!port);
}

void usctp_shutdown(struct usctp *assoc)
{
    assert(!assoc);
}

void usctp_abort(struct usctp *assoc, const char *reason, size_t octets)
{
    assert(!assoc && reason);
    (void)octets;
}

void usctp_names(const struct usctp *assoc, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    assert(!assoc && local && peer);
}

void usctp_close(struct usctp *assoc)
{
    assert(!assoc);
}

#endif
