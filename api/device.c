/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - rddp_open_device() and rddp_close_device(). */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/objects.h"
#include "tcp/io/handoff.h"
#include "drive/inherit.h"
#include "tcp/io/packet_name.h"

enum {
    MTU_MIN = 1280,
    MTU_MAX = 65535,
    WINDOW_MIN = 4096,
    LINGER_US = 2000000, /* the time for the peers to acknowledge what was sent */
    LINGER_MS = 10,      /* of which at once */
};

void rddp_device_attr_init(struct rddp_device_attr *attr)
{
    *attr = (struct rddp_device_attr){
        .mtu = 1500, .window = 1 << 20, .window_max = 1 << 24, .connections = 1024, .lose_seed = 1};
}

static bool are_windows(const struct rddp_device_attr *attr)
{
    return attr->window >= WINDOW_MIN && attr->window <= UTCP_WINDOW_MAX && attr->window_max <= UTCP_WINDOW_MAX;
}

/* What says how a TUN device is to be made says nothing here. */
static int hand_off_check(const struct rddp_device_attr *attr)
{
    if (attr->address || attr->neighbor || attr->name || attr->prefix || attr->checksums || !are_windows(attr) ||
        !attr->connections || attr->lose > PACKET_CHANCES)
        return -EINVAL;
    return handoff_check();
}

static int device_check(const struct rddp_device_attr *attr)
{
    const struct sockaddr *neighbor = attr->neighbor;
    bool v6 = attr->address && attr->address->sa_family == AF_INET6;

    if (attr->hand_off)
        return hand_off_check(attr);
    if (!attr->address || (!v6 && attr->address->sa_family != AF_INET) || attr->mtu < MTU_MIN || attr->mtu > MTU_MAX ||
        !are_windows(attr) || !attr->connections || attr->lose > PACKET_CHANCES ||
        (attr->name && strlen(attr->name) >= IFNAMSIZ))
        return -EINVAL;
    if (neighbor && (neighbor->sa_family != attr->address->sa_family || attr->prefix > (v6 ? 128 : 32)))
        return -EINVAL;
    return 0;
}

static int device_begin(struct rddp_device *device)
{
    const struct sockaddr *own = device->attr.address;
    socklen_t length = own && own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int error = own ? packet_name_from(&device->own, own, length) : 0;

    handoff_init(device);
    if (error)
        return error;
    loop_lock(device->loop);
    error = packet_open(device);
    /* They point to memory of the caller, and are not needed any more. */
    device->attr.name = NULL;
    device->attr.address = device->attr.neighbor = NULL;
    if (error)
        packet_close(device);
    loop_unlock(device->loop);
    return error;
}

struct rddp_device *rddp_open_device(struct rddp_context *context, const struct rddp_device_attr *attr)
{
    struct rddp_device *device;
    int error = context_use(context);

    if (!error)
        error = device_check(attr);
    device = error ? NULL : calloc(1, sizeof(*device));

    if (!error && !device)
        error = -ENOMEM;
    if (!error) {
        device->loop = loop_next(context);
        device->attr = *attr;
        error = device_begin(device);
    }
    if (!error) {
        context->objects++;
        member_add(&context->members, MEMBER_DEVICE, &device->member);
        return device;
    }
    free(device);
    errno = -error;
    return NULL;
}

/* Is a listener, a queue pair or an unanswered request using the device? By the driver. An endpoint without a queue
 * pair ends by itself. */
static bool is_used(const struct rddp_device *device)
{
    if (device->ports || device->users || handoff_is_awaited(device))
        return true;
    for (const struct packet_link *l = device->links; l; l = l->next) {
        const struct endpoint *endpoint = l->link.owner;

        if (endpoint && (endpoint->qp || endpoint_is_unanswered(endpoint)))
            return true;
    }
    return false;
}

/* Does a link still have an endpoint, or (`with_unsent`) octets that were not acknowledged? Locks the loop. */
static bool is_waited_for(struct rddp_device *device, bool with_unsent)
{
    bool waits;

    loop_lock(device->loop);
    waits = handoff_is_begun(device);
    for (const struct packet_link *l = device->links; l && !waits; l = l->next)
        waits = l->link.owner || (with_unsent && l->tcp.tx.una <= l->tcp.tx.end);
    loop_unlock(device->loop);
    return waits;
}

int rddp_close_device(struct rddp_device *device)
{
    struct rddp_context *context = device->loop->context;
    uint64_t until_us = reactor_now_us() + LINGER_US;
    int error = context_enter(context);
    bool used;

    if (error)
        return error;
    loop_lock(device->loop);
    used = is_used(device);
    loop_unlock(device->loop);
    if (used)
        return -EBUSY;
    /* Endpoints have their own time limits. Without descriptors nothing comes that would be waited for. */
    while (is_waited_for(device, reactor_now_us() < until_us) && rddp_progress(context, LINGER_MS) != -EBADF)
        continue;
    member_remove(&context->members, &device->member);
    loop_lock(device->loop);
    packet_close(device);
    loop_unlock(device->loop);
    free(device);
    context->objects--;
    return 0;
}
