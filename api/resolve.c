/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resolve.c - which queue pair receives the datagrams of a service: questions of the application. */
#include <errno.h>
#include <stdlib.h>

#include "drive/inherit.h"
#include "drive/transports.h"
#include "endpoint/objects.h"

enum { TIMEOUT_MS = 10000 };

void rddp_resolve_attr_init(struct rddp_resolve_attr *attr)
{
    *attr = (struct rddp_resolve_attr){.timeout_ms = TIMEOUT_MS};
}

/* Returns 0 or a negative errno. */
static int resolution_begin(struct rddp_resolution *resolution, const struct sockaddr *addr, socklen_t length,
                            const struct rddp_resolve_attr *attr)
{
    int error = event_reserve_resolution(resolution);

    if (error)
        return error;
    resolution->channel->users++;
    loop_lock(resolution->loop);
    error = transport_by_hand()->resolve(resolution, addr, length, attr);
    loop_unlock(resolution->loop);
    if (error) {
        resolution->channel->users--;
        free(resolution->node);
    }
    return error;
}

struct rddp_resolution *rddp_resolve(struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                                     const struct rddp_resolve_attr *attr, void *user)
{
    struct rddp_context *context = channel->context;
    struct rddp_resolution *resolution = calloc(1, sizeof(*resolution));
    int error = resolution ? context_use(context) : -ENOMEM;
    struct rddp_resolve_attr defaults;

    rddp_resolve_attr_init(&defaults);
    if (!error && !transport_by_hand())
        error = -EPROTONOSUPPORT;
    if (!error) {
        *resolution =
            (struct rddp_resolution){.context = context, .loop = loop_next(context), .channel = channel, .user = user};
        error = resolution_begin(resolution, addr, length, attr ? attr : &defaults);
    }
    if (!error)
        return resolution;
    free(resolution);
    errno = -error;
    return NULL;
}

int rddp_destroy_resolution(struct rddp_resolution *resolution)
{
    struct loop *loop = resolution->loop;
    struct event_list unseen = {NULL, NULL};
    struct endpoint *endpoint;
    int error = context_enter(resolution->context);

    if (error)
        return error;
    loop_lock(loop);
    endpoint = resolution->endpoint;
    if (endpoint) {
        endpoint_hold(endpoint);
        transport_by_hand()->forget(endpoint);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
    event_withdraw(resolution->channel, EVENT_OF_RESOLUTION, resolution, &unseen);
    event_drop(&unseen);
    resolution->channel->users--;
    free(resolution->node);
    free(resolution);
    return 0;
}
