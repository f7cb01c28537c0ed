/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw_race.c - one window is bound by two threads while a third looks it up: a key never leads to what another key was
 * bound to. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/mw.h"
#include "tests/lib/engine.h"

enum { BINDERS = 2, PLACES = BINDERS + 1, BINDS = 400, BINDS_MAX = 100000, OCTETS = 8, TAGS = 256, KEY = 0xabcd00 };

static struct engine e;
static struct epoch_reader place[PLACES];
static struct mr *region, window;
static atomic_uint found, wrong, refused;
static atomic_bool enough;

/* The tag says where in the region the window lies. */
static void *bind_often(void *arg)
{
    struct epoch_reader *reader = arg;
    uint32_t seed = 1 + (uint32_t)(reader - place);
    struct mr *joined = NULL;

    epoch_enter(&e.mrs.epochs, reader);
    for (int i = 0; i < BINDS || (!found && i < BINDS_MAX); i++) {
        uint32_t tag = chance(&seed) % TAGS;
        struct mw_bind what = {.key = KEY | tag,
                               .to = {.addr = region->start + tag,
                                      .length = i % 16 ? OCTETS : 0,
                                      .lkey = region->key,
                                      .access = RDDP_ACCESS_REMOTE_WRITE}};
        enum fault fault;
        while ((fault = mw_bind(&e.mrs, &e.pd, 1, &what, &joined)) == FAULT_NOT_NOW) {
            epoch_renew(&e.mrs.epochs, reader);
            sched_yield();
        }
        refused += fault != FAULT_NONE;
    }
    epoch_leave(reader);
    return NULL;
}

static void *look_up_often(void *arg)
{
    struct epoch_reader *reader = arg;

    while (!enough) {
        epoch_enter(&e.mrs.epochs, reader);
        for (uint32_t tag = 0; tag < TAGS; tag++) {
            uint8_t *at = NULL;
            enum fault fault =
                mr_check(&e.mrs, &e.pd, KEY | tag, region->start + tag, OCTETS, RDDP_ACCESS_REMOTE_WRITE, &at, NULL);
            found += fault == FAULT_NONE;
            wrong += fault == FAULT_NONE ? at != region->base + tag : fault != FAULT_KEY;
        }
        epoch_leave(reader);
    }
    return NULL;
}

static void bound_while_looked_up(void **state)
{
    pthread_t binder[BINDERS], reader;

    (void)state;
    assert_int_equal(pthread_create(&reader, NULL, look_up_often, &place[BINDERS]), 0);
    for (int i = 0; i < BINDERS; i++)
        assert_int_equal(pthread_create(&binder[i], NULL, bind_often, &place[i]), 0);
    for (int i = 0; i < BINDERS; i++)
        pthread_join(binder[i], NULL);
    enough = true;
    pthread_join(reader, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(refused, 0);
    assert_true(found);
    assert_int_equal(region->parts, window.valid ? 1 : 0); /* each bind that was replaced gave its part back */
    assert_true(mr_claim(&window));
    mr_remove(&e.mrs, &window);
    assert_int_equal(region->parts, 0);
}

static int set_up(void **state)
{
    (void)state;
    engine_init(&e);
    epochs_init(&e.mrs.epochs, place, PLACES);
    region = engine_region(&e, TAGS + OCTETS, LOCAL | RDDP_ACCESS_MW_BIND);
    window = (struct mr){.pd = &e.pd, .kind = MR_WINDOW};
    return !mr_insert_window(&e.mrs, &window, KEY);
}

static int tear_down(void **state)
{
    (void)state;
    engine_fini(&e);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bound_while_looked_up)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
