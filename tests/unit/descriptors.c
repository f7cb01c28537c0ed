/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.c - whose the library's descriptors are, before the first user, beside users that come and go, after a
 * loss, and in a child. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/descriptors.h"
#include "tests/lib/engine.h"

static bool hangs_up(int fd)
{
    struct pollfd what = {.fd = fd};

    return poll(&what, 1, 0) != 0;
}

static ino_t sentinel_inode(void)
{
    struct stat about;

    assert_int_equal(fstat(descriptors_sentinel(), &about), 0);
    return about.st_ino;
}

static bool is_a_socket(int fd)
{
    struct stat about;

    return !fstat(fd, &about) && S_ISSOCK(about.st_mode);
}

/* The number of losses is the same before and after one is noticed, and after a new sentinel was made. */
static void losses(void **state)
{
    unsigned before = descriptors_losses();

    (void)state;
    assert_int_equal(descriptors_open(), 0);
    assert_int_equal(descriptors_losses(), before);
    for (unsigned lost = 1; lost < 4; lost++) {
        close(descriptors_sentinel());
        assert_false(descriptors_are_ours());
        assert_int_equal(descriptors_losses(), before + lost);
        assert_true(descriptors_are_lost());
        assert_true(descriptors_are_lost());
        assert_int_equal(descriptors_losses(), before + lost);
        assert_int_equal(descriptors_open(), 0);
        assert_true(descriptors_are_ours());
        assert_int_equal(descriptors_losses(), before + lost);
    }
    for (unsigned users = 0; users < 4; users++)
        descriptors_close();
    assert_int_equal(descriptors_sentinel(), -1);
    assert_true(descriptors_are_ours());
}

/* A child that has left its copy to the parent makes a sentinel of its own, which does not go with the parent. */
static void own_of_a_child(void **state)
{
    ino_t parents;
    int other;

    (void)state;
    assert_int_equal(descriptors_open(), 0);
    parents = sentinel_inode();
    other = dup(descriptors_sentinel());
    descriptors_leave();
    assert_true(hangs_up(other)); /* no parent has the other end here */
    assert_int_equal(descriptors_open(), 0);
    assert_int_not_equal(sentinel_inode(), parents);
    assert_false(hangs_up(descriptors_sentinel()));
    close(other);
    descriptors_close();
    descriptors_close();
}

/* The first three numbers may be free when it is made, and are not closed with the others. Either end that goes is a
 * loss. */
static void numbers(void **state)
{
    int kept[3], before[64], other = -1;
    struct stat about;

    (void)state;
    for (int fd = 0; fd < 64; fd++)
        before[fd] = fstat(fd, &about);
    for (int fd = 0; fd < 3; fd++) {
        kept[fd] = fcntl(fd, F_DUPFD, 64);
        close(fd);
    }
    assert_int_equal(descriptors_open(), 0);
    for (int fd = 0; fd < 3; fd++) {
        assert_int_equal(fstat(fd, &about), -1);
        dup2(kept[fd], fd);
        close(kept[fd]);
    }
    for (int fd = 0; fd < 64; fd++)
        if (before[fd] && fd != descriptors_sentinel() && !fstat(fd, &about))
            other = fd;
    assert_true(descriptors_are_ours());
    close(other);
    assert_false(descriptors_are_ours());
    assert_true(descriptors_are_lost());
    descriptors_close();
}

/* One who has joined keeps the sentinel, makes the first one, and a new one unless users have lost theirs. */
static void guests(void **state)
{
    unsigned before = descriptors_losses();
    ino_t inode;

    (void)state;
    assert_int_equal(descriptors_join(), 0);
    inode = sentinel_inode();
    assert_int_equal(descriptors_open(), 0);
    descriptors_close();
    assert_true(sentinel_inode() == inode);
    close(descriptors_sentinel());
    assert_int_equal(descriptors_losses(), before + 1);
    assert_int_equal(descriptors_join(), 0);
    assert_true(descriptors_are_ours());
    assert_int_equal(descriptors_losses(), before + 1);
    assert_int_equal(descriptors_open(), 0);
    close(descriptors_sentinel());
    assert_int_equal(descriptors_join(), 0);
    assert_false(descriptors_are_ours());
    descriptors_close();
    for (unsigned joined = 0; joined < 3; joined++)
        descriptors_part(0);
    assert_int_equal(descriptors_sentinel(), -1);
}

static unsigned given_up;

static int all_give_up(int (*then)(void))
{
    given_up++;
    return then();
}

/* Users who give up what they have lost leave no one who joins without a sentinel; before a loss they are not asked. */
static void guests_after_a_loss(void **state)
{
    unsigned before = descriptors_losses();

    (void)state;
    given_up = 0;
    descriptors_on_loss(all_give_up);
    assert_int_equal(descriptors_open(), 0);
    assert_int_equal(descriptors_join(), 0);
    assert_int_equal(given_up, 0);
    close(descriptors_sentinel());
    assert_int_equal(descriptors_join(), 0);
    assert_int_equal(given_up, 1);
    assert_true(descriptors_are_ours());
    assert_int_equal(descriptors_losses(), before + 1);
    close(descriptors_sentinel());
    assert_int_equal(descriptors_losses(), before + 2);
    descriptors_on_loss(NULL);
    descriptors_close();
    for (unsigned joined = 0; joined < 2; joined++)
        descriptors_part(0);
    assert_int_equal(descriptors_open(), 0); /* as it was */
    descriptors_close();
}

static void *join_and_part(void *over)
{
    while (!atomic_load((atomic_bool *)over)) {
        assert_int_equal(descriptors_join(), 0);
        descriptors_part(0);
    }
    return NULL;
}

/* A child is not one of those who have joined, has one end alone, and finds the lock free. */
static void fork_beside_guests(void **state)
{
    enum { FORKS = 300, CHILD_S = 20 };
    atomic_bool over = false;
    pthread_t other;
    int status;

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("cannot run here: a child of a process with threads makes calls\n");
    skip();
#endif
    assert_int_equal(pthread_create(&other, NULL, join_and_part, &over), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();

        if (!child) {
            alarm(CHILD_S);
            if (descriptors_open() || hangs_up(descriptors_sentinel()))
                _exit(1);
            descriptors_close();
            _exit(descriptors_sentinel() >= 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    over = true;
    pthread_join(other, NULL);
}

/* The parent of a child that goes on notices that it has lost its own, also if the first who made it has only joined.
 */
static void guest_with_a_child(void **state)
{
    pid_t child;
    int copy;

    (void)state;
    assert_int_equal(descriptors_join(), 0);
    child = fork();
    if (!child)
        for (;;)
            pause();
    usleep(50000);
    copy = dup(descriptors_sentinel());
    assert_false(hangs_up(copy));
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
        if (fd != copy && is_a_socket(fd))
            close(fd);
    assert_true(hangs_up(copy));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(descriptors_are_lost());
    close(copy);
    descriptors_part(0);
    assert_int_equal(descriptors_open(), 0); /* as it was */
    descriptors_close();
}

static volatile sig_atomic_t signal_forks;

static void fork_at_signal(int number)
{
    pid_t child = fork();

    (void)number;
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    signal_forks++;
}

/* Runs in a child. */
static void interrupted(void)
{
    enum { FORKS = 100, CHILD_S = 20 };
    const struct sigaction action = {.sa_handler = fork_at_signal, .sa_flags = SA_RESTART};
    const struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000}; /* of processor time */

    alarm(CHILD_S);
    sigaction(SIGPROF, &action, NULL);
    if (setitimer(ITIMER_PROF, &often, NULL))
        _exit(1);
    while (signal_forks < FORKS) {
        if (descriptors_open())
            _exit(2);
        (void)descriptors_are_lost();
        descriptors_close();
    }
    _exit(0);
}

/* A signal handler that forks finds the lock free, whatever it interrupts. */
static void fork_at_signals(void **state)
{
    pid_t child;
    int status;

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("cannot run here: signals come late\n");
    skip();
#endif
    child = fork();
    if (!child)
        interrupted();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Runs in a child. */
static void joined_by_the_parent(void)
{
    int joined = descriptors_join();

    if (joined <= 0 || hangs_up(descriptors_sentinel()))
        _exit(1);
    descriptors_part(0);
    if (descriptors_sentinel() < 0)
        _exit(2);
    descriptors_part(joined);
    _exit(descriptors_sentinel() >= 0 ? 3 : 0);
}

/* No one polls a sentinel that goes with the parent. A guest has one of its own also beside a user that the parent had;
 * and there is one as long as it stays, although one who joined in the parent parts. */
static void guest_in_a_child(void **state)
{
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(descriptors_open(), 0);
    descriptors_leave();
    assert_int_equal(descriptors_sentinel(), -1);
    assert_int_equal(descriptors_join(), 0);
    assert_true(descriptors_sentinel() >= 0);
    assert_false(hangs_up(descriptors_sentinel()));
    descriptors_close();
    child = fork();
    if (!child)
        joined_by_the_parent();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    descriptors_part(0);
    assert_int_equal(descriptors_sentinel(), -1);
}

enum { ROUNDS = 5000 };

static atomic_int rounds;

static void *come_and_go(void *arg)
{
    (void)arg;
    for (; rounds < ROUNDS; rounds++) {
        assert_int_equal(descriptors_open(), 0);
        descriptors_close();
    }
    return NULL;
}

static void beside_others(void **state)
{
    pthread_t other;
    unsigned wrong = 0, before = descriptors_losses();

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("cannot run here: one that looks at a descriptor races with one that closes it, and looks again\n");
    skip();
#endif
    assert_int_equal(pthread_create(&other, NULL, come_and_go, NULL), 0);
    while (rounds < ROUNDS)
        wrong += !descriptors_are_ours() || descriptors_losses() != before;
    pthread_join(other, NULL);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses),
        cmocka_unit_test(own_of_a_child),
        cmocka_unit_test(numbers),
        cmocka_unit_test(guests),
        cmocka_unit_test(guests_after_a_loss),
        cmocka_unit_test(fork_beside_guests),
        cmocka_unit_test(guest_with_a_child),
        cmocka_unit_test(guest_in_a_child),
        cmocka_unit_test(fork_at_signals),
        cmocka_unit_test(beside_others),
    };

    return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
