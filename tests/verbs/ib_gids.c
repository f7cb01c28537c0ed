/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_gids.c - the GIDs of rddpe0, of a host whose addresses this program makes up: how often they are read, and what
 * becomes of an index. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "tests/verbs/lib/devices.h"
#include "tests/verbs/lib/ids.h"
#include "tests/verbs/lib/looped.h"

/* Of rdma-core's private symbols, in no header. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);

enum { ADDRESSES = 40, LOOPBACK = ADDRESSES - 1, FRESH_US = 10000 };

static struct ifaddrs host[ADDRESSES];
static struct sockaddr_in addresses[ADDRESSES];
static char loopback_name[] = "lo", unknown_name[] = "none0";
static int reads;

/* The C library's, for all that is loaded. */
__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **list)
{
    reads++;
    *list = host;
    return 0;
}

__attribute__((visibility("default"))) void freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

static void make_host(void)
{
    for (int i = 0; i < ADDRESSES; i++) {
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000200 + (uint32_t)i)};
        host[i] = (struct ifaddrs){.ifa_next = i < LOOPBACK ? &host[i + 1] : NULL,
                                   .ifa_name = loopback_name,
                                   .ifa_flags = IFF_UP | (i == LOOPBACK ? IFF_LOOPBACK : 0),
                                   .ifa_addr = (struct sockaddr *)&addresses[i]};
    }
    addresses[LOOPBACK].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static struct ibv_context *context;
static union ibv_gid loopback_gid;

static int set_up(void **state)
{
    (void)state;
    make_host();
    context = devices_open("rddpe0");
    return devices_loopback(context, &loopback_gid) != LOOPBACK;
}

static int tear_down(void **state)
{
    (void)state;
    return ibv_close_device(context);
}

static void whole_table(void **state)
{
    struct ibv_gid_entry entries[ADDRESSES];

    (void)state;
    reads = 0;
    assert_int_equal(ibv_query_gid_table(context, entries, ADDRESSES, 0), ADDRESSES);
    assert_int_equal(reads, 1);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        assert_int_equal(entries[i].gid_index, i);
        assert_int_equal(entries[i].gid_type, IBV_GID_TYPE_ROCE_V2);
        assert_int_equal(entries[i].ndev_ifindex, if_nametoindex(loopback_name));
        assert_memory_equal(entries[i].gid.raw + 12, &addresses[i].sin_addr, 4);
    }
    assert_int_equal(ibv_query_gid_table(context, entries, ADDRESSES - 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(context, entries, ADDRESSES, 1), -EINVAL);
}

/* Programs make a handle for each datagram that they answer. */
static void many_handles(void **state)
{
    enum { HANDLES = 1000 };
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = loopback_gid, .sgid_index = LOOPBACK}};

    (void)state;
    reads = 0;
    for (int i = 0; i < HANDLES; i++) {
        struct ibv_ah *ah = ibv_create_ah(pd, &attr);
        assert_non_null(ah);
        assert_int_equal(ibv_destroy_ah(ah), 0);
    }
    assert_true(reads < HANDLES / 2);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* An address that has come is found at once, and one that is gone leaves its index empty. */
static void changes(void **state)
{
    static struct sockaddr_in new_address;
    static struct ifaddrs more;
    union ibv_gid gid, none = {{0}};

    (void)state;
    new_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6336401)};
    more = (struct ifaddrs){.ifa_next = host[0].ifa_next,
                            .ifa_name = loopback_name,
                            .ifa_flags = IFF_UP,
                            .ifa_addr = (struct sockaddr *)&new_address};
    assert_int_equal(ibv_query_gid(context, 1, ADDRESSES, &gid), 0);
    assert_memory_equal(&gid, &none, sizeof(gid));
    host[0].ifa_next = &more;
    assert_int_equal(ibv_query_gid(context, 1, ADDRESSES, &gid), 0);
    assert_memory_equal(gid.raw + 12, &new_address.sin_addr, 4);
    host[0].ifa_next = more.ifa_next;
    usleep(FRESH_US);
    assert_int_equal(ibv_query_gid(context, 1, ADDRESSES, &gid), 0);
    assert_memory_equal(&gid, &none, sizeof(gid));
}

/* Each GID is of RoCE version 2. An empty entry is of the first type that files of the kernel have. */
static void types(void **state)
{
    enum { FIRST, ROCE_V2, UNSET };
    int type = UNSET;

    (void)state;
    assert_int_equal(ibv_query_gid_type(context, 1, LOOPBACK, &type), 0);
    assert_int_equal(type, ROCE_V2);
    assert_int_equal(ibv_query_gid_type(context, 1, ADDRESSES, &type), 0);
    assert_int_equal(type, FIRST);
    type = UNSET;
    errno = 0;
    assert_int_equal(ibv_query_gid_type(context, 1, UINT32_MAX, &type), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_query_gid_type(context, 2, LOOPBACK, &type), -1);
    assert_int_equal(type, UNSET);
}

/* Whose interface cannot be asked for, as without descriptors, is where it was. */
static void nameless(void **state)
{
    union ibv_gid gid;

    (void)state;
    host[LOOPBACK].ifa_name = unknown_name;
    usleep(FRESH_US);
    assert_int_equal(ibv_query_gid(context, 1, LOOPBACK, &gid), 0);
    assert_memory_equal(&gid, &loopback_gid, sizeof(gid));
    host[LOOPBACK].ifa_name = loopback_name;
}

static uint8_t index_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_AV, &init), 0);
    assert_memory_equal(&attr.ah_attr.grh.dgid, &loopback_gid, sizeof(loopback_gid));
    return attr.ah_attr.grh.sgid_index;
}

/* A path that is refused leaves the one that there is. */
static void refused_path(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .ah_attr = {.is_global = 1, .port_num = 1}};
    struct looped looped;

    (void)state;
    looped_open(&looped, 0);
    assert_int_equal(index_of(looped.qp[0]), LOOPBACK);
    assert_int_equal(ibv_modify_qp(looped.qp[0], &attr, IBV_QP_STATE), 0);
    attr.ah_attr.grh.dgid = loopback_gid;
    attr.ah_attr.grh.sgid_index = ADDRESSES; /* empty */
    assert_int_equal(ibv_modify_qp(looped.qp[0], &attr, IBV_QP_AV), EINVAL);
    assert_int_equal(index_of(looped.qp[0]), LOOPBACK);
    looped_close(&looped);
}

/* rdma_cm selects the address, and the queue pair says which it is. */
static void path_of_cm(void **state)
{
    static struct ids ids;

    (void)state;
    ids_connect(&ids);
    assert_int_equal(index_of(ids.client->qp), LOOPBACK);
    assert_int_equal(index_of(ids.server->qp), LOOPBACK);
    ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_table), cmocka_unit_test(many_handles), cmocka_unit_test(changes),
        cmocka_unit_test(types),       cmocka_unit_test(nameless),     cmocka_unit_test(refused_path),
        cmocka_unit_test(path_of_cm),
    };

    return cmocka_run_group_tests_name("ib_gids", tests, set_up, tear_down);
}
