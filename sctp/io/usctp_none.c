/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_none.c - a build without usrsctp: no socket can be opened, so no other call is ever made. */
#include "sctp/io/usctp.h"

#ifndef RDDP_USRSCTP

#include <errno.h>

static const char *none_missing(const struct sctp_attr *attr)
{
    (void)attr;
    return "this build was made without usrsctp (Debian: libusrsctp-dev); rddp's own SCTP needs no library";
}

static void none_abandon(void)
{
}

static int none_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr,
                     struct sctp_socket **socket)
{
    (void)local;
    (void)length;
    (void)attr;
    *socket = NULL;
    return -EPROTONOSUPPORT;
}

const struct sctp_provider usctp = {
    .name = "usrsctp",
    .missing = none_missing,
    .abandon = none_abandon,
    .open = none_open,
};

#endif
