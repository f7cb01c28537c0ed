/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* once.c - copies to memory that a program looks at meanwhile: the last octet is stored once, after all others. The
 * page that it lies on is protected, and each instruction that stores there is counted. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

#include "base/once.h"

enum { PAGE = 4096, LONGEST = 3000, TRAP_FLAG = 0x100 };

static uint8_t *memory; /* two pages; the second is protected while a copy is watched */
static uint8_t source[LONGEST];

#ifdef __x86_64__
static size_t length;
static volatile unsigned stores;
/* At each store to the second page the first had all but what that store may bring along. */
static volatile bool all_before;

static void on_store(int number, siginfo_t *info, void *context)
{
    (void)number;
    if ((uint8_t *)info->si_addr < memory + PAGE || (uint8_t *)info->si_addr >= memory + 2 * PAGE)
        abort();
    stores++;
    all_before =
        all_before && !memcmp(memory + PAGE - (length - 1), source, length > ONCE_TAIL ? length - ONCE_TAIL : 0);
    mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG; /* one instruction */
}

static void on_step(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    mprotect(memory + PAGE, PAGE, PROT_NONE);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* The last octet alone lies on the second page. */
static void last_is_stored_once(void **state)
{
    struct sigaction fault = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO},
                     step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    (void)state;
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGTRAP, &step, NULL);
    for (length = 1; length <= LONGEST; length += length < 300 ? 1 : 97) {
        memset(memory, 0, PAGE);
        stores = 0;
        all_before = true;
        mprotect(memory + PAGE, PAGE, PROT_NONE);
        copy_once(memory + PAGE - (length - 1), source, length);
        mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE);
        assert_int_equal(stores, 1);
        assert_memory_equal(memory + PAGE - (length - 1), source, length);
        assert_true(all_before);
    }
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
}
#endif

/* Whatever the length and the place, and nothing beside it. */
static void copies(void **state)
{
    uint8_t to[LONGEST + 16];

    (void)state;
    for (size_t n = 0; n <= 200; n++)
        for (size_t at = 0; at < 9; at++) {
            memset(to, 0xee, sizeof(to));
            copy_once(to + at, source + 1, n);
            assert_memory_equal(to + at, source + 1, n);
            assert_int_equal(to[at + n], 0xee);
            assert_true(!at || to[at - 1] == 0xee);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef __x86_64__
        cmocka_unit_test(last_is_stored_once),
#endif
        cmocka_unit_test(copies),
    };

    memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < LONGEST; i++)
        source[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
