/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_mount.c - `rddp mount` of a server that lies: each operation ends, in time, and so does the mount. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/clock.h"
#include "tests/suite/lib/nfs_fake.h"

enum { WAIT_MS = 60000 };

static struct fake fake;
static char dir[] = "/tmp/rddp-mount-XXXXXX", leaks[] = "/tmp/rddp-leaks-XXXXXX";
static pid_t mounter;

static bool is_mounted(void)
{
    char line[4096], text[sizeof(dir) + 2];
    FILE *f = fopen("/proc/self/mounts", "re");
    bool found = false;

    snprintf(text, sizeof(text), " %s ", dir);
    while (f && fgets(line, sizeof(line), f))
        found = found || strstr(line, text);
    if (f)
        fclose(f);
    return found;
}

/* Starts `rddp mount` in the foreground, and waits until it is there. */
static void mount_fake(void)
{
    uint64_t until = clock_ms() + WAIT_MS;
    char port[16], mount_port[16];

    snprintf(port, sizeof(port), "%d", fake.port);
    snprintf(mount_port, sizeof(mount_port), "%d", fake.mount_port);
    mounter = fork();
    if (mounter == 0) {
        execl(getenv("RDDP_TOOL"), "rddp", "mount", "-f", "--first-delay", "0", "-p", port, "--mount-port", mount_port,
              "127.0.0.1:/fake", dir, (char *)NULL);
        _exit(127);
    }
    while (!is_mounted() && clock_ms() < until)
        usleep(10000);
    assert_true(is_mounted());
}

/* Returns the exit code of the mount's process. */
static int mount_code(void)
{
    uint64_t until = clock_ms() + WAIT_MS;
    int status = -1;

    while (waitpid(mounter, &status, WNOHANG) == 0 && clock_ms() < until)
        usleep(10000);
    if (status == -1) {
        kill(mounter, SIGKILL);
        waitpid(mounter, &status, 0);
    }
    mounter = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int set_up(void **state)
{
    (void)state;
    fake_open(&fake);
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    if (mounter) {
        kill(mounter, SIGKILL);
        waitpid(mounter, NULL, 0);
        mounter = 0;
    }
    if (is_mounted())
        umount2(dir, MNT_DETACH);
    fake_close(&fake);
    unlink(leaks); /* which LeakSanitizer reads in the end */
    return rmdir(dir);
}

/* Reads the directory to its end, or to an error, in a process that is killed when that takes too long. */
static int list_error(void)
{
    uint64_t until = clock_ms() + WAIT_MS;
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        DIR *d = opendir(dir);

        if (!d)
            _exit(255);
        errno = 0;
        while (readdir(d))
            errno = 0;
        _exit(errno);
    }
    while (waitpid(pid, &status, WNOHANG) == 0 && clock_ms() < until)
        usleep(10000);
    if (status == -1)
        kill(pid, SIGKILL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void circles(void **state)
{
    static const enum fake_lie lie[] = {LIE_CIRCLE, LIE_COOKIE_0, LIE_BAD_NAMES};

    (void)state;
    for (int i = 0; i < 10; i++) {
        char name[16];

        snprintf(name, sizeof(name), "file %d", i);
        fake_add_file(&fake, name, 10);
    }
    mount_fake();
    assert_int_equal(list_error(), 0);
    for (size_t i = 0; i < sizeof(lie) / sizeof(*lie); i++) {
        atomic_store(&fake.lie, lie[i]);
        assert_int_equal(list_error(), EIO);
    }
    atomic_store(&fake.lie, LIE_NONE);
    assert_int_equal(list_error(), 0);
    assert_int_equal(umount2(dir, 0), 0);
    assert_int_equal(mount_code(), 0);
}

/* Writes to the file and waits for fsync(), in a process that is killed in the end. */
static pid_t write_and_sync(void)
{
    static const char data[4096];
    char path[64];
    pid_t pid = fork();
    int fd;

    if (pid)
        return pid;
    snprintf(path, sizeof(path), "%s/f", dir);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, data, sizeof(data)) != sizeof(data))
        _exit(1);
    _exit(fsync(fd) ? errno : 0);
}

/* libfuse frees its copy of the path only where it unmounts. Nothing else may be left behind, which LeakSanitizer sees.
 */
static void mount_that_is_taken_away(void)
{
    static const char known[] = "leak:fuse_session_mount\n";
    char option[64];
    int fd;

    strcpy(leaks + strlen(leaks) - 6, "XXXXXX");
    fd = mkstemp(leaks);
    assert_int_equal(write(fd, known, sizeof(known) - 1), sizeof(known) - 1);
    close(fd);
    snprintf(option, sizeof(option), "suppressions=%s", leaks);
    setenv("LSAN_OPTIONS", option, 1);
    mount_fake();
    unsetenv("LSAN_OPTIONS");
}

/* A server that loses what was written again and again gets it again after pauses. When the mount has to end, it says
 * that data were lost, by its exit code, too. */
static void lost_again_and_again(void **state)
{
    pid_t writer;
    int status;

    (void)state;
    fake_add_file(&fake, "f", 4096); /* WRITEs of the test stay in it */
    mount_that_is_taken_away();
    atomic_store(&fake.lie, LIE_COMMIT);
    writer = write_and_sync();
    usleep(2000000);
    assert_in_range(atomic_load(&fake.calls[NFS3_WRITE]), 3, 20);
    assert_int_equal(waitpid(writer, &status, WNOHANG), 0); /* it waits for the server to keep its data */
    kill(mounter, SIGTERM); /* the writer has its file open beyond the end of the mount */
    assert_int_equal(mount_code(), 128 + SIGTERM);
    kill(writer, SIGKILL);
    waitpid(writer, &status, 0);
}

/* A server that has lost data once is not kept waiting. */
static void lost_once(void **state)
{
    int status;

    (void)state;
    fake_add_file(&fake, "f", 4096); /* WRITEs of the test stay in it */
    mount_fake();
    atomic_store(&fake.lie, LIE_COMMIT);
    status = write_and_sync();
    while (atomic_load(&fake.calls[NFS3_COMMIT]) == 0)
        usleep(1000);
    atomic_store(&fake.lie, LIE_NONE);
    assert_int_equal(waitpid(status, &status, 0) > 0 ? status : -1, 0);
    assert_int_equal(atomic_load(&fake_find(&fake, "f")->ranges), 0);
    assert_int_equal(umount2(dir, 0), 0);
    assert_int_equal(mount_code(), 0);
}

static bool has_hidden(void)
{
    bool found = false;

    fake_sync(&fake);
    for (unsigned i = 0; i < fake.files; i++)
        found = found || (!fake.file[i].removed && !strncmp(fake.file[i].name, ".nfs", 4));
    return found;
}

/* The kernel does not say that a file was closed if the mount ends before `rddp mount` asks: a file removed while it
 * was open leaves no hidden name all the same, and neither it nor a directory leaves memory behind. */
static void closed_unseen(void **state)
{
    char path[64];
    int file, list, status;

    (void)state;
    fake_add_file(&fake, "f", 10);
    mount_fake();
    snprintf(path, sizeof(path), "%s/f", dir);
    file = open(path, O_RDONLY | O_CLOEXEC);
    list = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(file >= 0 && list >= 0);
    assert_int_equal(unlink(path), 0);
    assert_true(has_hidden());
    assert_int_equal(kill(mounter, SIGSTOP), 0);
    assert_int_equal(waitpid(mounter, &status, WUNTRACED), mounter);
    close(list);
    close(file); /* which asks nothing, because nothing can have been written */
    assert_int_equal(umount2(dir, 0), 0);
    assert_int_equal(kill(mounter, SIGCONT), 0);
    assert_int_equal(mount_code(), 0);
    assert_false(has_hidden());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(circles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lost_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lost_again_and_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closed_unseen, set_up, tear_down),
    };
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (!getenv("RDDP_TOOL") || fuse < 0 || geteuid() != 0 || unshare(CLONE_NEWNS) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        print_message("nfs_mount: needs root, /dev/fuse and a mount namespace of its own\n");
        return 77;
    }
    close(fuse);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
