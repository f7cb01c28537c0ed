/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.c - contexts that cannot be opened leave nothing behind; numbers of queue pairs are never given out twice. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/api.h"
#include "tests/suite/lib/pair.h"

static int closed_twice;
static bool no_thread;

/* In front of the C library's: counts what was closed without being open, which is somebody else's descriptor soon. */
int close(int fd)
{
    static int (*real)(int);
    int result;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "close");
    result = real(fd);
    closed_twice += result && errno == EBADF;
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return no_thread ? EAGAIN : real(thread, attr, run, arg);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* With room for 0, 1, 2 ... descriptors until it works. */
static void without_descriptors(void **state)
{
    struct rlimit before, few;
    struct rddp_context *context = NULL;
    int highest = open("/dev/null", O_RDONLY), files = open_files(), filler[64], fillers = 0;

    (void)state;
    close(highest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)highest + 8, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (fillers < 64 && (filler[fillers] = open("/dev/null", O_RDONLY)) >= 0)
        fillers++;
    assert_in_range(fillers, 4, 63);
    closed_twice = 0;
    for (int room = 0; room < 8 && !context; room++) {
        context = rddp_open(NULL);
        assert_true(context || errno == EMFILE);
        assert_int_equal(closed_twice, 0);
        if (!context)
            close(filler[--fillers]);
    }
    assert_non_null(context);
    assert_int_equal(rddp_close(context), 0);
    while (fillers)
        close(filler[--fillers]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(closed_twice, 0);
    assert_int_equal(open_files(), files - 1);
}

static void without_a_thread(void **state)
{
    int files = open_files();

    (void)state;
    closed_twice = 0;
    no_thread = true;
    for (int i = 0; i < 10; i++) {
        assert_null(rddp_open(NULL));
        assert_int_equal(errno, EAGAIN);
    }
    no_thread = false;
    assert_int_equal(open_files(), files);
    assert_int_equal(closed_twice, 0);
}

/* After 2^24 queue pairs their numbers begin again: one that is still alive keeps its number, and its completions. */
static void numbers_come_round(void **state)
{
    struct rddp_context *context = rddp_open(NULL);
    struct rddp_pd *pd = rddp_alloc_pd(context);
    struct rddp_cq *cq = rddp_create_cq(context, 16, NULL, NULL);
    struct rddp_qp *old, *young[3];
    struct rddp_qp_attr attr;

    (void)state;
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = cq;
    context->qp_numbers.next = QP_NUMBERS - 1;
    old = rddp_create_qp(pd, &attr);
    assert_int_equal(rddp_qp_num(old), QP_NUMBERS - 1);
    context->qp_numbers.next = QP_NUMBERS - 2;
    for (int i = 0; i < 3; i++)
        young[i] = rddp_create_qp(pd, &attr);
    assert_int_equal(rddp_qp_num(young[0]), QP_NUMBERS - 2);
    assert_int_equal(rddp_qp_num(young[1]), 2); /* 0 and 1 mean something else to verbs */
    assert_int_equal(rddp_qp_num(young[2]), 3);
    rddp_destroy_qp(old);
    context->qp_numbers.next = QP_NUMBERS - 2;
    old = rddp_create_qp(pd, &attr);
    assert_int_equal(rddp_qp_num(old), QP_NUMBERS - 1);
    rddp_destroy_qp(old);
    for (int i = 0; i < 3; i++)
        rddp_destroy_qp(young[i]);
    assert_int_equal(rddp_destroy_cq(cq), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    assert_int_equal(rddp_close(context), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_descriptors),
        cmocka_unit_test(without_a_thread),
        cmocka_unit_test(numbers_come_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
