/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah.c - address handles: where datagrams go. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/ah.h"
#include "verbs/gid.h"
#include "verbs/verbs_object.h"

static int refuse_path(const char **why, const char *rule)
{
    *why = rule;
    return EINVAL;
}

int ah_path(const struct ibv_ah_attr *attr, struct sockaddr_storage *local, struct sockaddr_storage *peer,
            const char **why)
{
    unsigned interface = 0;
    union ibv_gid own;

    if (!attr->is_global)
        return refuse_path(why, "has no GRH (is_global), which RoCE needs");
    if (attr->port_num != 1)
        return refuse_path(why, "has another port_num than 1");
    if (verbs_gid_get(attr->grh.sgid_index, &own, &interface))
        return refuse_path(why, "names an sgid_index without an address");
    gid_to_address(&own, interface, local);
    gid_to_address(&attr->grh.dgid, interface, peer);
    return local->ss_family == peer->ss_family ? 0 : refuse_path(why, "has a dgid of another IP family than the sgid");
}

static unsigned scope_of(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? v6->sin6_scope_id : 0;
}

bool verbs_path(const struct sockaddr_storage *local, const struct sockaddr_storage *peer, struct ibv_ah_attr *attr)
{
    union ibv_gid own;
    int index;

    gid_of_address(local, &own);
    index = gid_find(&own, scope_of(local)); /* each interface may have the same address of its link */
    *attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    attr->grh.sgid_index = (uint8_t)(index < 0 ? 0 : index);
    attr->grh.hop_limit = UINT8_MAX;
    gid_of_address(peer, &attr->grh.dgid);
    return index >= 0;
}

static struct ibv_ah *make_ah(struct ibv_pd *pd, const struct rddp_ah_attr *attr)
{
    struct verbs_ah *ah = calloc(1, sizeof(*ah));

    if (!ah || !(ah->rddp = rddp_create_ah(pd_of(pd)->rddp, attr))) {
        free(ah);
        verbs_refuse(errno, "ibv_create_ah: there is no route to the GID");
        return NULL;
    }
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    pd_enter(pd);
    return &ah->ibv;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct rddp_ah_attr rddp;
    int error = device_is_ib(pd->context->device) ? 0 : EOPNOTSUPP;
    const char *why = "is of a device without datagrams";

    rddp_ah_attr_init(&rddp);
    if (!error)
        error = ah_path(attr, &rddp.local, &rddp.peer, &why);
    if (error) {
        verbs_refuse(error, "ibv_create_ah: port %u, sgid_index %u: it %s", attr->port_num, attr->grh.sgid_index, why);
        return NULL;
    }
    return make_ah(pd, &rddp);
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    struct verbs_ah *ah = ah_of(ibv);

    rddp_destroy_ah(ah->rddp);
    pd_leave(ibv->pd);
    free(ah);
    return 0;
}

/* The way back to the sender of a message. */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *attr)
{
    const struct rddp_wc from = {.wc_flags = wc->wc_flags, .src_qp = wc->src_qp};
    struct rddp_ah_attr way;

    memset(attr, 0, sizeof(*attr));
    if (!device_is_ib(context->device) || port != 1 || rddp_ah_attr_from_wc(&from, grh, &way))
        return verbs_refuse(EINVAL, "ibv_init_ah_from_wc: port %u of 1, or no GRH in the completion", port);
    if (!verbs_path(&way.local, &way.peer, attr))
        return verbs_refuse(EINVAL, "ibv_init_ah_from_wc: it came to an address that this host does not have");
    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;
    int error = ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr);

    if (error) {
        errno = error;
        return NULL;
    }
    return ibv_create_ah(pd, &attr);
}
