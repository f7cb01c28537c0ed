/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_links.c - two interfaces of a host with the same address of their link: a path has the GID of its own. It makes
 * them in a namespace of its own. */
#include <arpa/inet.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000, CANNOT_RUN = 77 };

static unsigned interface_of_path(const char *name)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_scope_id = if_nametoindex(name)};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct ibv_gid_entry entry;
    struct rdma_cm_id *id;
    int mask;

    assert_int_equal(inet_pton(AF_INET6, "fe80::5", &address.sin6_addr), 1);
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&address, (struct sockaddr *)&address, WAIT_MS), 0);
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(ibv_query_gid_ex(id->verbs, 1, attr.ah_attr.grh.sgid_index, &entry, 0), 0);
    assert_memory_equal(&entry.gid, &address.sin6_addr, 16);
    assert_int_equal(rdma_destroy_id(id), 0);
    return entry.ndev_ifindex;
}

static void test_paths(void **state)
{
    (void)state;
    assert_int_equal(interface_of_path("rddp-a"), if_nametoindex("rddp-a"));
    assert_int_equal(interface_of_path("rddp-b"), if_nametoindex("rddp-b"));
}

static int make_interface(const char *name)
{
    char command[256];

    snprintf(command, sizeof(command),
             "ip tuntap add dev %s mode tun && ip address add fe80::5/64 dev %s nodad && ip link set %s up", name, name,
             name);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths)};

    if (unshare((getuid() ? CLONE_NEWUSER : 0) | CLONE_NEWNET) || make_interface("rddp-a") ||
        make_interface("rddp-b")) {
        print_message("cannot run here: no network namespace with interfaces of its own\n");
        return CANNOT_RUN;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
