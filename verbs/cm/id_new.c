/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* id_new.c - a new id, and the device and the PD that it shows. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/cm/cm.h"

static struct ibv_pd *default_pd[CM_DEVICES]; /* of ids that were given none; under verbs_lock */

struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps)
{
    struct cm_id *id = calloc(1, sizeof(*id));

    if (!id)
        return NULL;
    id->ibv.channel = channel;
    id->ibv.context = context;
    id->ibv.ps = ps;
    id->ibv.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    id->ack_timeout = CM_ACK_TIMEOUT;
    id->fd = -1;
    return id;
}

void cm_id_free(struct cm_id *id)
{
    if (id->fd >= 0)
        close(id->fd);
    free(id->ep_init);
    free(id);
}

struct ibv_device *cm_id_device(const struct cm_id *id)
{
    if (id->device)
        return id->device;
    return id->ibv.verbs ? id->ibv.verbs->device : NULL;
}

/* An id that has a device shows a PD, too: applications use it without a look. The caller holds verbs_lock. */
int cm_id_use_device(struct cm_id *id)
{
    struct ibv_device *device = cm_id_device(id) ? cm_id_device(id) : verbs_device_at(0);
    struct ibv_context *verbs = device ? verbs_shared_context(device) : NULL;
    struct ibv_pd **pd;

    if (!verbs)
        return device ? -errno : -ENODEV;
    pd = &default_pd[device_is_ib(device)];
    if (!*pd)
        *pd = ibv_alloc_pd(verbs);
    if (!*pd)
        return -errno;
    id->device = device;
    id->ibv.verbs = verbs;
    id->ibv.port_num = 1;
    if (!id->ibv.pd)
        id->ibv.pd = *pd;
    return 0;
}
