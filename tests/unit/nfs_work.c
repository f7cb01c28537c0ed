/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_work.c - threads of a pool have the server's own rights, whichever identity their starter has assumed. */
#include <linux/capability.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/container.h"
#include "nfs/server/export.h"
#include "nfs/server/work.h"

enum { GROUPS = 64, THREADS = 3, UNCHANGED = -1 };

/* What the kernel lets a thread do with files. */
struct rights {
    long user, group;
    int groups;
    gid_t more[GROUPS];
    uint32_t caps;
};

struct look {
    struct work work;
    pthread_barrier_t *all;
    struct rights rights;
};

static struct rights rights_now(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    struct rights rights;

    memset(&rights, 0, sizeof(rights));
    assert_int_equal(syscall(SYS_capget, &header, caps), 0);
    rights.user = syscall(SYS_setfsuid, UNCHANGED);
    rights.group = syscall(SYS_setfsgid, UNCHANGED);
    rights.groups = getgroups(GROUPS, rights.more);
    rights.caps = caps[0].effective;
    return rights;
}

/* Each is looked at by a thread of its own. */
static void look(struct work *work)
{
    struct look *l = container_of(work, struct look, work);

    l->rights = rights_now();
    pthread_barrier_wait(l->all);
}

static void ignore(struct work *work)
{
    (void)work;
}

static void await(struct finished *finished, unsigned n)
{
    while (n) {
        struct pollfd fd = {finished->fd, POLLIN, 0};

        assert_int_equal(poll(&fd, 1, -1), 1);
        for (const struct work *work = finished_take(finished); work; work = work->next)
            n--;
    }
}

static void own_rights(void **state)
{
    struct identity caller = {.uid = 12345, .gid = 12346, .groups = 2, .group = {12347, 12348}};
    struct rights own = rights_now();
    struct look looks[THREADS];
    struct finished finished;
    struct workers *workers;
    pthread_barrier_t all;

    (void)state;
    if (!identity_can_change())
        skip();
    assert_int_equal(finished_init(&finished), 0);
    assert_int_equal(pthread_barrier_init(&all, NULL, THREADS), 0);
    workers = workers_open(&finished, THREADS);
    assert_non_null(workers);
    for (unsigned i = 0; i < THREADS; i++) {
        looks[i] = (struct look){{.run = look, .done = ignore}, .all = &all};
        assert_int_equal(identity_assume(&caller), 0);
        assert_true(workers_give(workers, &looks[i].work));
    }
    await(&finished, THREADS);
    workers_close(workers);
    identity_drop();
    for (unsigned i = 0; i < THREADS; i++)
        assert_memory_equal(&looks[i].rights, &own, sizeof(own));
    pthread_barrier_destroy(&all);
    finished_fini(&finished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_rights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
