/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.c - contexts that cannot be opened leave nothing behind; queue pair numbers are never allocated twice; a child
 * of fork() and its contexts. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/lib/descriptors.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

static int closed_twice;
static bool no_thread;

/* Replaces the C library's close(): counts closes of descriptors that are not open, which another thread may soon
 * own. */
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

/* The functions that the linker puts in place of the C library's: the call with this number fails, from 1 on. */
static _Atomic int bad_allocation, bad_random;

void *__real_calloc(size_t n, size_t octets);
void *__real_aligned_alloc(size_t alignment, size_t octets);
ssize_t __real_getrandom(void *at, size_t octets, unsigned flags);
void *__wrap_calloc(size_t n, size_t octets);
void *__wrap_aligned_alloc(size_t alignment, size_t octets);
ssize_t __wrap_getrandom(void *at, size_t octets, unsigned flags);

static bool open_fails(_Atomic int *left)
{
    return *left > 0 && atomic_fetch_sub(left, 1) == 1;
}

void *__wrap_calloc(size_t n, size_t octets)
{
    return open_fails(&bad_allocation) ? NULL : __real_calloc(n, octets);
}

void *__wrap_aligned_alloc(size_t alignment, size_t octets)
{
    return open_fails(&bad_allocation) ? NULL : __real_aligned_alloc(alignment, octets);
}

ssize_t __wrap_getrandom(void *at, size_t octets, unsigned flags)
{
    return open_fails(&bad_random) ? -1 : __real_getrandom(at, octets, flags);
}

/* With room for 0, 1, 2 ... descriptors until it succeeds. */
static void without_descriptors(void **state)
{
    struct rlimit before, few;
    struct rddp_context *context = NULL;
    int highest = open("/dev/null", O_RDONLY), filler[64], fillers = 0;
    unsigned files = count_descriptors();

    (void)state;
    close(highest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)highest + 8, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (fillers < 64 && (filler[fillers] = open("/dev/null", O_RDONLY)) >= 0)
        fillers++;
    assert_in_range(fillers, 4, 63);
    closed_twice = 0;
    for (int space = 0; space < 8 && !context; space++) {
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
    assert_int_equal(count_descriptors(), files - 1);
}

/* Each allocation fails in turn, until there are no more; then the random numbers. */
static void without_memory(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_context *context = NULL;
    unsigned files = count_descriptors();
    int failed = 0;

    (void)state;
    rddp_context_attr_init(&attr);
    attr.loops = 3;
    closed_twice = 0;
    for (int i = 1; !context; i++) {
        bad_allocation = i;
        context = rddp_open(&attr);
        failed += !context;
        bad_allocation = 0;
        assert_true(context || count_descriptors() == files);
    }
    assert_in_range(failed, 5, 100);
    assert_int_equal(rddp_close(context), 0);
    bad_random = 1;
    assert_null(rddp_open(&attr));
    bad_random = 0;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(count_descriptors(), files);
    assert_int_equal(closed_twice, 0);
}

static void without_a_thread(void **state)
{
    unsigned files = count_descriptors();

    (void)state;
    closed_twice = 0;
    no_thread = true;
    for (int i = 0; i < 10; i++) {
        assert_null(rddp_open(NULL));
        assert_int_equal(errno, EAGAIN);
    }
    no_thread = false;
    assert_int_equal(count_descriptors(), files);
    assert_int_equal(closed_twice, 0);
}

/* After 2^24 queue pairs the numbers start over: a living one keeps its number and its completions. */
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
    assert_int_equal(rddp_qp_num(young[1]), 2); /* 0 and 1 have a special meaning in verbs */
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

/* As long as allowed, and longer. */
static void spin_limits(void **state)
{
    enum { SPIN_MAX_US = 1000000 };
    struct rddp_context_attr attr;
    struct rddp_context *context;

    (void)state;
    rddp_context_attr_init(&attr);
    assert_int_equal(attr.spin_us, 0);
    attr.spin_us = SPIN_MAX_US + 1;
    assert_null(rddp_open(&attr));
    assert_int_equal(errno, EINVAL);
    attr.spin_us = SPIN_MAX_US;
    context = rddp_open(&attr);
    assert_non_null(context);
    assert_int_equal(rddp_close(context), 0);
}

/* As many loops as allowed, and one more. */
static void loop_limits(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;

    (void)state;
    rddp_context_attr_init(&attr);
    attr.loops = LOOPS_MAX + 1;
    assert_null(rddp_open(&attr));
    assert_int_equal(errno, EINVAL);
    attr.loops = LOOPS_MAX;
    context = rddp_open(&attr);
    assert_non_null(context);
    assert_int_equal(rddp_close(context), 0);
}

/* --- fork() ---------------------------------------------------------------------------------------------------- */

static int status_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int fork_status = -1;

/* fork() from the log function is inside the library: the child cannot use the context and gets an error. */
static void fork_here(void *user, enum rddp_log_level level, const char *line)
{
    struct rddp_context **context = user;
    pid_t child;

    (void)level;
    (void)line;
    child = fork();
    if (!child)
        _exit(rddp_close(*context) != -EDEADLK || rddp_progress(*context, 0) != -EDEADLK);
    fork_status = status_of(child);
}

static void fork_from_inside(void **state)
{
    struct sockaddr_in no_listener = {.sin_family = AF_INET, .sin_port = htons(1)};
    struct rddp_context_attr attr;
    struct rddp_event_channel *events;
    struct rddp_event *event;
    struct rddp_qp_attr qp_attr;
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;

    (void)state;
    no_listener.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rddp_context_attr_init(&attr);
    attr.log_level = RDDP_LOG_INFO;
    attr.log = fork_here;
    attr.log_user = &context;
    context = rddp_open(&attr);
    pd = rddp_alloc_pd(context);
    cq = rddp_create_cq(context, 16, NULL, NULL);
    events = rddp_create_event_channel(context);
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = cq;
    qp = rddp_create_qp(pd, &qp_attr);
    assert_int_equal(rddp_connect(qp, events, (struct sockaddr *)&no_listener, sizeof(no_listener), NULL), 0);
    assert_int_equal(rddp_get_event(events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_UNREACHABLE);
    rddp_ack_event(event);
    assert_int_equal(rddp_destroy_qp(qp), 0); /* waits for the thread that logs */
    assert_int_equal(fork_status, 0);
    assert_int_equal(rddp_destroy_event_channel(events), 0);
    assert_int_equal(rddp_destroy_cq(cq), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    assert_int_equal(rddp_close(context), 0);
}

enum { CHILD_SECONDS = 20 };

/* The line of the log is that of a call which ends all contexts. */
static void close_and_fork(void)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;

    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    attr.log = fork_here;
    attr.log_user = &context;
    context = rddp_open(&attr);
    closefrom(STDERR_FILENO + 1);
    _exit(rddp_progress(context, 1) != -EBADF || fork_status || !rddp_open(NULL));
}

static void fork_as_all_is_closed(void **state)
{
    pid_t child = fork_apart(CHILD_SECONDS);

    (void)state;
    if (!child)
        close_and_fork();
    assert_int_equal(status_of(child), 0);
}

/* A program that never lets rddp_progress() wait learns it of the first call, too. */
static void progress_when_all_is_closed(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;
    pid_t child = fork_apart(CHILD_SECONDS);

    (void)state;
    if (!child) {
        rddp_context_attr_init(&attr);
        attr.manual_progress = true;
        context = rddp_open(&attr);
        if (rddp_progress(context, 0))
            _exit(1);
        closefrom(STDERR_FILENO + 1);
        _exit(rddp_progress(context, 0) == -EBADF && rddp_progress(context, 0) == -EBADF ? 0 : 2);
    }
    assert_int_equal(status_of(child), 0);
}

/* Without a thread: the progress descriptor keeps its number and is not the parent's. The sentinel (loop/descriptors.h)
 * gets its other end again. */
static int drive(struct rddp_context *context, int number)
{
    struct epoll_event event = {.events = EPOLLIN};
    unsigned files = count_descriptors();
    int fd = open("/dev/null", O_RDONLY);

    close(fd);
    if (rddp_progress(context, 0) || rddp_progress_fd(context) != number || count_descriptors() != files + 1)
        return 1;
    fd = eventfd(1, 0);
    if (epoll_ctl(number, EPOLL_CTL_ADD, fd, &event) || epoll_wait(number, &event, 1, 0) != 1 ||
        epoll_ctl(number, EPOLL_CTL_DEL, fd, NULL))
        return 2;
    return rddp_close(context) || count_descriptors() != files - 3; /* epoll set, timer, wake-up, sentinel; and `fd` */
}

static void fork_without_threads(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;
    struct epoll_event event;
    int number;
    pid_t child;

    (void)state;
    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    context = rddp_open(&attr);
    assert_non_null(context);
    number = rddp_progress_fd(context);
    child = fork();
    if (!child)
        _exit(drive(context, number));
    assert_int_equal(status_of(child), 0);
    assert_int_equal(epoll_wait(number, &event, 1, 0), 0);
    assert_int_equal(rddp_close(context), 0);
}

/* A child without free descriptors gets an error and can try again. */
static int try_again(struct rddp_context *context)
{
    struct rlimit before, none;

    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    if (rddp_progress(context, 0) != -EMFILE || rddp_progress(context, 0) != -EMFILE)
        return 1;
    setrlimit(RLIMIT_NOFILE, &before);
    return rddp_progress(context, 0) || rddp_close(context) ? 2 : 0;
}

static void fork_without_descriptors(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;
    pid_t child;

    (void)state;
    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    attr.loops = 1;
    context = rddp_open(&attr);
    assert_non_null(context);
    child = fork();
    if (!child)
        _exit(try_again(context));
    assert_int_equal(status_of(child), 0);
    assert_int_equal(rddp_close(context), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_descriptors),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(without_a_thread),
        cmocka_unit_test(numbers_come_round),
        cmocka_unit_test(loop_limits),
        cmocka_unit_test(spin_limits),
        cmocka_unit_test(fork_from_inside),
        cmocka_unit_test(fork_as_all_is_closed),
        cmocka_unit_test(fork_without_threads),
        cmocka_unit_test(fork_without_descriptors),
        cmocka_unit_test(progress_when_all_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
