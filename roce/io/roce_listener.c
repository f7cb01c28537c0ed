/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_listener.c - a listener of the application is a service of the connection manager. */
#include "roce/io/roce_listener.h"

#include <errno.h>
#include <stdlib.h>

#include "roce/io/endpoint_roce.h"
#include "roce/io/endpoint_sidr.h"
#include "roce/io/roce_cm.h"

int roce_listener_begin(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length)
{
    struct roce_service *service = calloc(1, sizeof(*service));
    struct roce_host *host;
    int error = service ? 0 : -ENOMEM;

    if (!error && !roce_address_copy(addr, length, &service->address))
        error = -EAFNOSUPPORT;
    if (!error)
        error = roce_address_is_here(&service->address);
    if (!error)
        error = roce_host_open(listener->loop, &host);
    if (!error) {
        service->of = listener;
        service->listener.datagram = listener->wire.datagrams;
        service->requested = listener->wire.datagrams ? endpoint_sidr_requested : endpoint_roce_requested;
        roce_address_unmap(&service->address);
        error = roce_cm_listen(roce_cm_of(host), service);
        if (error)
            roce_host_sweep(host);
    }
    if (error) {
        free(service);
        return error;
    }
    listener->roce = service;
    return 0;
}

void roce_listener_end(struct rddp_listener *listener)
{
    struct roce_service *service = listener->roce;

    if (!service) /* fork() left it to the parent */
        return;
    listener->roce = NULL;
    roce_cm_unlisten(service);
    free(service);
}

void roce_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr)
{
    *addr = listener->roce->address;
}
