/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.c - what can be registered: mapped memory, writable where `access` requires it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

#define FAR UINT64_C(0x200000000000)

enum { PAGES = 8, ALL = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ };

struct memory {
    struct rddp_context *context;
    struct rddp_pd *pd;
    size_t page;
    uint8_t *at; /* PAGES pages, with a hole on either side */
};

static int open_memory(void **state)
{
    static struct memory m;
    uint8_t *buffer;

    m.page = (size_t)sysconf(_SC_PAGESIZE);
    m.context = rddp_open(NULL);
    m.pd = rddp_alloc_pd(m.context);
    /* Far from where the system puts other mappings, one of which would fill a hole. */
    buffer = mmap((void *)FAR, (PAGES + 2) * m.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!m.pd || buffer == MAP_FAILED)
        return -1;
    m.at = buffer + m.page;
    *state = &m;
    return munmap(buffer, m.page) || munmap(m.at + PAGES * m.page, m.page);
}

static int close_memory(void **state)
{
    struct memory *m = *state;

    munmap(m->at, PAGES * m->page);
    return rddp_dealloc_pd(m->pd) || rddp_close(m->context);
}

/* Returns 0 or the errno. */
static int try(struct memory *m, const void *at, size_t length, unsigned access)
{
    struct rddp_mr *mr = rddp_reg_mr(m->pd, (void *)(uintptr_t)at, length, access);

    return !mr ? errno : rddp_dereg_mr(mr);
}

/* One octet less than is mapped, all of it, and one more, at either end. */
static void holes(void **state)
{
    struct memory *m = *state;
    size_t all = PAGES * m->page;

    for (unsigned access = 0; access <= ALL; access += ALL) {
        assert_int_equal(try(m, m->at, all - 1, access), 0);
        assert_int_equal(try(m, m->at, all, access), 0);
        assert_int_equal(try(m, m->at, all + 1, access), EFAULT);
        assert_int_equal(try(m, m->at + 1, all - 1, access), 0);
        assert_int_equal(try(m, m->at - 1, 1, access), EFAULT);
        assert_int_equal(try(m, m->at - 1, all, access), EFAULT);
        assert_int_equal(try(m, m->at - 1, 0, access), 0);
        /* One page, and two, which are checked in different ways. */
        assert_int_equal(try(m, m->at + all - 1, 1, access), 0);
        assert_int_equal(try(m, m->at + all - 1, 2, access), EFAULT);
        assert_int_equal(try(m, m->at + all, 1, access), EFAULT);
        assert_int_equal(try(m, m->at - 1, 2, access), EFAULT);
        assert_int_equal(try(m, m->at, m->page + 1, access), 0);
        assert_int_equal(try(m, m->at + all - 2 * m->page, 2 * m->page + 1, access), EFAULT);
    }
    assert_int_equal(munmap(m->at + 3 * m->page, m->page), 0);
    assert_int_equal(try(m, m->at, all, 0), EFAULT);
    assert_int_equal(try(m, m->at, all, ALL), EFAULT);
    /* The least that can have a hole inside: three pages, of which both ends are there. */
    assert_int_equal(try(m, m->at + 3 * m->page - 1, m->page + 2, 0), EFAULT);
    assert_int_equal(try(m, m->at + 3 * m->page - 1, m->page + 2, ALL), EFAULT);
    assert_int_equal(try(m, m->at, 3 * m->page, ALL), 0);
    assert_int_equal(try(m, m->at + 4 * m->page, 4 * m->page, ALL), 0);
}

static void read_only(void **state)
{
    static const char text[] = "a literal lies in read-only memory";
    struct memory *m = *state;

    assert_int_equal(try(m, text, sizeof(text), RDDP_ACCESS_REMOTE_READ), 0);
    assert_int_equal(try(m, text, sizeof(text), RDDP_ACCESS_LOCAL_WRITE), EFAULT);
    assert_int_equal(try(m, text, sizeof(text), ALL), EFAULT);
    assert_int_equal(mprotect(m->at + 4 * m->page, m->page, PROT_READ), 0);
    assert_int_equal(try(m, m->at, 4 * m->page, ALL), 0);
    assert_int_equal(try(m, m->at, 4 * m->page + 1, ALL), EFAULT);
    assert_int_equal(try(m, m->at + 5 * m->page, m->page, ALL), 0);
    assert_int_equal(try(m, m->at + 5 * m->page - 1, m->page, ALL), EFAULT);
    assert_int_equal(try(m, m->at, 5 * m->page, RDDP_ACCESS_REMOTE_READ), 0);
}

/* The check changes nothing, wherever the octets lie in the first and the last page. */
static void no_octet_changes(void **state)
{
    struct memory *m = *state;

    for (size_t i = 0; i < PAGES * m->page; i++)
        m->at[i] = (uint8_t)(i * 37 + 1);
    for (size_t at = 0; at < 9; at++)
        for (size_t n = 1; n < 9; n++)
            assert_int_equal(try(m, m->at + at, PAGES * m->page - at - n, ALL), 0);
    for (size_t i = 0; i < PAGES * m->page; i++)
        assert_int_equal(m->at[i], (uint8_t)(i * 37 + 1));
}

static atomic_bool enough;

static void *count(void *arg)
{
    volatile uint32_t *word = arg;
    uintptr_t n = 0;

    while (!enough) {
        *word = *word + 1;
        n++;
    }
    return (void *)n;
}

/* ... nor while another thread writes there with plain stores. */
static void no_store_is_lost(void **state)
{
    struct memory *m = *state;
    pthread_t thread;
    void *n;

    enough = false;
    assert_int_equal(pthread_create(&thread, NULL, count, m->at), 0);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(try(m, m->at, m->page, ALL), 0);
    enough = true;
    pthread_join(thread, &n);
    assert_int_equal(*(uint32_t *)m->at, (uint32_t)(uintptr_t)n);
}

/* Behind the end of a mapped file memory is not checked for writing, because the file may grow. */
static void behind_the_end_of_a_file(void **state)
{
    struct memory *m = *state;
    FILE *file = tmpfile();
    uint8_t *at;

    assert_non_null(file);
    at = mmap(NULL, 2 * m->page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    assert_int_equal(try(m, at, 2 * m->page, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_VOLATILE), 0);
    assert_int_equal(try(m, at, 2 * m->page, RDDP_ACCESS_LOCAL_WRITE), EFAULT);
    assert_int_equal(try(m, at, 2 * m->page, 0), EFAULT);
    assert_int_equal(ftruncate(fileno(file), (off_t)(2 * m->page)), 0);
    assert_int_equal(try(m, at, 2 * m->page, RDDP_ACCESS_LOCAL_WRITE), 0);
    munmap(at, 2 * m->page);
    fclose(file);
}

/* A file that may only be read, mapped as it is, and as a copy that this process may change. */
static void read_only_file(void **state)
{
    struct memory *m = *state;
    int fd = open("/proc/self/exe", O_RDONLY);
    uint8_t *at = mmap(NULL, 2 * m->page, PROT_READ, MAP_SHARED, fd, 0);
    uint8_t *copy = mmap(NULL, 2 * m->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

    assert_true(at != MAP_FAILED && copy != MAP_FAILED);
    assert_int_equal(try(m, at, 2 * m->page, RDDP_ACCESS_REMOTE_READ), 0);
    assert_int_equal(try(m, at + 5, m->page, 0), 0);
    assert_int_equal(try(m, at, 2 * m->page, RDDP_ACCESS_LOCAL_WRITE), EFAULT);
    assert_int_equal(try(m, copy, 2 * m->page, ALL), 0);
    munmap(at, 2 * m->page);
    munmap(copy, 2 * m->page);
    close(fd);
}

static void not_readable(void **state)
{
    struct memory *m = *state;

    assert_int_equal(mprotect(m->at + 4 * m->page, m->page, PROT_NONE), 0);
    assert_int_equal(try(m, m->at + 4 * m->page, 1, 0), EFAULT);
    assert_int_equal(try(m, m->at, 4 * m->page, 0), 0);
    assert_int_equal(try(m, m->at, 4 * m->page + 1, 0), EFAULT);
    assert_int_equal(try(m, m->at + 5 * m->page - 1, 3 * m->page, 0), EFAULT);
    assert_int_equal(try(m, m->at + 4 * m->page, 1, RDDP_ACCESS_VOLATILE), 0);
}

/* A region of 1 GiB that was never touched takes no memory. */
static void large_and_untouched(void **state)
{
    enum { PROBED = 256 };
    struct memory *m = *state;
    size_t length = (size_t)1 << 30;
    uint8_t *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char here[PROBED];

    assert_ptr_not_equal(at, MAP_FAILED);
    madvise(at, length, MADV_NOHUGEPAGE);
    assert_int_equal(try(m, at, length, ALL), 0);
    for (size_t from = m->page; from < length - m->page; from += length / 16) {
        assert_int_equal(mincore(at + from, PROBED * m->page, here), 0);
        for (int i = 0; i < PROBED; i++)
            assert_false(here[i] & 1);
    }
    munmap(at, length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(holes, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(read_only, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(no_octet_changes, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(no_store_is_lost, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(behind_the_end_of_a_file, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(read_only_file, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(not_readable, open_memory, close_memory),
        cmocka_unit_test_setup_teardown(large_and_untouched, open_memory, close_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
