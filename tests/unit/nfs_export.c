/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_export.c - test which clients an export allows, which identity a caller gets, and that the kernel uses this
 * identity. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/export.h"

static char error[EXPORT_TEXT];

static int open_for(struct export *e, const char *const *clients)
{
    struct export_attr attr;

    export_attr_init(&attr);
    attr.clients = clients;
    *error = 0;
    return export_open(e, "/tmp", &attr, error);
}

static bool allows(const char *net, const char *peer)
{
    const char *clients[] = {"192.0.2.77", net, NULL};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct export e;
    bool v4 = inet_pton(AF_INET, peer, &in.sin_addr) == 1, yes;

    if (!v4)
        assert_int_equal(inet_pton(AF_INET6, peer, &in6.sin6_addr), 1);
    assert_int_equal(open_for(&e, clients), 0);
    yes = export_allows(&e, v4 ? (struct sockaddr *)&in : (struct sockaddr *)&in6);
    export_close(&e);
    return yes;
}

static void test_nets(void **state)
{
    static const struct {
        const char *net, *peer;
        bool yes;
    } row[] = {
        {"10.0.0.0/0", "203.0.113.9", true},
        {"10.0.0.0/0", "fd77::1", false},
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "9.255.255.255", false},
        {"10.1.2.3/8", "10.200.0.1", true},
        {"172.16.0.0/12", "172.31.255.255", true},
        {"172.16.0.0/12", "172.32.0.0", false},
        {"10.0.0.4/31", "10.0.0.5", true},
        {"10.0.0.4/31", "10.0.0.6", false},
        {"10.0.0.4/31", "10.0.0.3", false},
        {"10.0.0.4/32", "10.0.0.4", true},
        {"10.0.0.4/32", "10.0.0.5", false},
        {"10.0.0.4", "10.0.0.4", true},
        {"10.0.0.4", "10.0.0.5", false},
        {"10.0.0.0/8", "::ffff:10.1.1.1", true},
        {"10.0.0.0/8", "::ffff:11.1.1.1", false},
        {"10.0.0.0/8", "a00::1", false},
        {"::ffff:10.0.0.0/104", "10.9.9.9", true},
        {"::ffff:10.0.0.0/104", "::ffff:11.0.0.0", false},
        {"::/0", "fd77::1", true},
        {"::/0", "10.0.0.1", false},
        {"fd77::/64", "fd77::ffff:ffff:ffff:ffff", true},
        {"fd77::/64", "fd77:0:0:1::", false},
        {"fd77::2/127", "fd77::3", true},
        {"fd77::2/127", "fd77::4", false},
        {"fd77::2/128", "fd77::2", true},
        {"fd77::2/128", "fd77::3", false},
        {"fd77::2", "fd77::3", false},
        {"192.0.2.77", "192.0.2.77", true}, /* allows() puts this address first in the list */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        if (allows(row[i].net, row[i].peer) != row[i].yes)
            fail_msg("%s is %sallowed for %s", row[i].peer, row[i].yes ? "not " : "", row[i].net);
    }
}

static void test_bad_nets(void **state)
{
    static const char *const bad[] = {
        "",         "/",    "/8",           "10.0.0.0/",  "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8 ",
        "10.0.0/8", "host", "10.0.0.0/+8",  "fd77::/129", "fd77::/",     "fd77::1%lo",  "10.0.0.0/4294967304",
        "*",        "::g",  "10.0.0.0/8/8",
    };
    char longest[4096];
    struct export e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (open_for(&e, (const char *const[]){bad[i], NULL}) != -EINVAL)
            fail_msg("'%s' is taken", bad[i]);
        assert_non_null(strstr(error, bad[i]));
        assert_int_equal(e.root, -1);
    }
    memset(longest, '1', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    assert_int_equal(open_for(&e, (const char *const[]){longest, NULL}), -EINVAL);
    assert_non_null(strstr(error, "prefix"));
}

static void test_lists(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct export e;

    (void)state;
    assert_int_equal(open_for(&e, NULL), 0);
    assert_true(export_allows(&e, (struct sockaddr *)&in));
    export_close(&e);
    assert_int_equal(open_for(&e, (const char *const[]){NULL}), 0);
    assert_false(export_allows(&e, (struct sockaddr *)&in));
    export_close(&e);
    assert_int_equal(open_for(&e, (const char *const[]){"0.0.0.0/0", NULL}), 0);
    assert_false(export_allows(&e, (struct sockaddr *)&un));
    export_close(&e);
}

static void test_path(void **state)
{
    struct export_attr attr;
    struct export a, b;
    char dir[] = "/tmp/rddp-export.XXXXXX", link[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(symlink(dir, link), 0);
    export_attr_init(&attr);
    assert_int_equal(attr.anon_uid, 65534);
    assert_int_equal(attr.squash, SQUASH_ROOT);
    assert_int_equal(export_open(&a, dir, &attr, error), 0);
    assert_int_equal(export_open(&b, link, &attr, error), 0);
    assert_string_equal(a.path, dir);
    assert_string_equal(b.path, dir);
    assert_int_equal(a.id, b.id);
    assert_int_equal(a.dev, b.dev);
    export_close(&a);
    export_close(&b);
    assert_int_equal(export_open(&a, "/proc/version", &attr, error), -ENOTDIR);
    assert_non_null(strstr(error, "/proc/version"));
    assert_int_equal(export_open(&a, "/not/there", &attr, error), -ENOENT);
    attr.anon_uid = (uid_t)-1;
    assert_int_equal(export_open(&a, dir, &attr, error), -EINVAL);
    unlink(link);
    rmdir(dir);
}

static struct identity seen(enum squash squash, uint32_t flavor, uint32_t uid, uint32_t gid)
{
    struct export e = {.attr = {.squash = squash, .anon_uid = 99, .anon_gid = 98}};
    struct rpc_cred cred = {flavor, uid, gid, 3, {0, 7, UINT32_MAX}};
    struct identity who;

    export_identity(&e, &cred, &who);
    return who;
}

static void expect_identity(struct identity who, uid_t uid, gid_t gid, unsigned groups, gid_t first)
{
    assert_int_equal(who.uid, uid);
    assert_int_equal(who.gid, gid);
    assert_int_equal(who.groups, groups);
    if (groups) {
        assert_int_equal(who.group[0], first);
        assert_int_equal(who.group[1], 7);
        assert_int_equal(who.group[2], 98);
    }
}

static void test_squash(void **state)
{
    struct export e = {.attr = {.squash = SQUASH_NONE}};
    struct rpc_cred cred = {.flavor = RPC_AUTH_SYS, .groups = 17};
    struct identity who;

    (void)state;
    expect_identity(seen(SQUASH_ROOT, RPC_AUTH_SYS, 0, 0), 99, 98, 3, 98);
    expect_identity(seen(SQUASH_ROOT, RPC_AUTH_SYS, 0, 5), 99, 5, 3, 98);
    expect_identity(seen(SQUASH_ROOT, RPC_AUTH_SYS, 5, 0), 5, 98, 3, 98);
    expect_identity(seen(SQUASH_ROOT, RPC_AUTH_SYS, 1, 1), 1, 1, 3, 98);
    expect_identity(seen(SQUASH_NONE, RPC_AUTH_SYS, 0, 0), 0, 0, 3, 0);
    expect_identity(seen(SQUASH_ALL, RPC_AUTH_SYS, 5, 5), 99, 98, 0, 0);
    expect_identity(seen(SQUASH_NONE, RPC_AUTH_NONE, 0, 0), 99, 98, 0, 0);
    expect_identity(seen(SQUASH_NONE, 6, 0, 0), 99, 98, 0, 0);
    expect_identity(seen(SQUASH_NONE, RPC_AUTH_SYS, UINT32_MAX, UINT32_MAX), 99, 98, 3, 0);
    export_identity(&e, &cred, &who); /* 17 groups are more than RPC_GROUPS_MAX */
    assert_int_equal(who.groups, RPC_GROUPS_MAX);
}

/* --- identities ------------------------------------------------------------------------------------------------- */

static char top[64], path[96];

/* Make a file of user 1000 and group 2000 that other users cannot read. */
static int setup(void **state)
{
    int fd;

    (void)state;
    strcpy(top, "/tmp/rddp-identity.XXXXXX");
    if (!mkdtemp(top) || chmod(top, 0755))
        return -1;
    snprintf(path, sizeof(path), "%s/file", top);
    fd = open(path, O_CREAT | O_WRONLY, 0640);
    return fd < 0 || fchown(fd, 1000, 2000) || fchmod(fd, 0640) || close(fd);
}

static int teardown(void **state)
{
    (void)state;
    identity_drop();
    unlink(path);
    return rmdir(top);
}

static bool opens(int flags)
{
    int fd = open(path, flags);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static pthread_barrier_t barrier;

static void *waiting_thread(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the main thread has assumed another identity */
    return opens(O_RDWR) ? path : NULL;
}

static void test_assume(void **state)
{
    const struct identity owner = {.uid = 1000, .gid = 1}, member = {.uid = 1, .gid = 2000},
                          helper = {.uid = 1, .gid = 1, .groups = 2, .group = {3, 2000}}, alien = {.uid = 1, .gid = 1},
                          nobody_such = {.uid = (uid_t)-1, .gid = 1};
    struct identity was;
    pthread_t thread;
    void *result;

    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, waiting_thread, NULL), 0);
    pthread_barrier_wait(&barrier);
    assert_false(identity_pause(&was));
    assert_int_equal(identity_assume(&owner), 0);
    assert_true(opens(O_RDWR));
    assert_int_equal(identity_assume(&member), 0);
    assert_true(opens(O_RDONLY));
    assert_false(opens(O_RDWR));
    assert_int_equal(identity_assume(&helper), 0);
    assert_true(opens(O_RDONLY));
    assert_int_equal(identity_assume(&alien), 0);
    assert_int_equal(identity_assume(&alien), 0);
    assert_false(opens(O_RDONLY));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, &result);
    assert_non_null(result);
    assert_true(identity_pause(&was));
    assert_true(opens(O_RDWR));
    assert_int_equal(was.uid, 1);
    assert_int_equal(identity_assume(&was), 0);
    assert_false(opens(O_RDONLY));
    identity_drop();
    identity_drop();
    assert_true(opens(O_RDWR));
    assert_int_equal(identity_assume(&nobody_such), -EPERM);
    assert_false(opens(O_RDONLY));
    assert_int_equal(identity_assume(&nobody_such), -EPERM);
    identity_drop();
    pthread_barrier_destroy(&barrier);
}

/* Return the identity that the kernel has for this thread. */
static struct identity real_identity(void)
{
    struct identity who = {.uid = (uid_t)syscall(SYS_setfsuid, -1), .gid = (gid_t)syscall(SYS_setfsgid, -1)};
    int n = getgroups(RPC_GROUPS_MAX, who.group);

    assert_true(n >= 0);
    who.groups = (unsigned)n;
    return who;
}

/* Change from each identity to each identity. The kernel must then have exactly the new user, group and groups. */
static void test_one_to_another(void **state)
{
    static const struct identity who[] = {
        {.uid = 1000, .gid = 2000},
        {.uid = 1001, .gid = 2000},
        {.uid = 1000, .gid = 2001},
        {.uid = 1000, .gid = 2000, .groups = 1, .group = {2001}},
        {.uid = 1000, .gid = 2000, .groups = 1, .group = {2002}},
        {.uid = 1000, .gid = 2000, .groups = 2, .group = {2001, 2002}},
        {.uid = 1000, .gid = 2000, .groups = 2, .group = {2001, 2003}},
        {.uid = 1000, .gid = 2000, .groups = 2, .group = {2000, 2002}},
        {.uid = 0, .gid = 0},
    };
    enum { WHO = sizeof(who) / sizeof(*who) };

    (void)state;
    for (unsigned i = 0; i < WHO * WHO; i++) {
        const struct identity *to = &who[i % WHO];
        struct identity real;

        assert_int_equal(identity_assume(&who[i / WHO]), 0);
        assert_int_equal(identity_assume(to), 0);
        real = real_identity();
        if (real.uid != to->uid || real.gid != to->gid || real.groups != to->groups ||
            memcmp(real.group, to->group, to->groups * sizeof(gid_t)))
            fail_msg("from %u to %u: user %u, group %u, %u others", i / WHO, i % WHO, real.uid, real.gid, real.groups);
    }
    identity_drop();
}

static int in_child(int (*f)(void))
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(f());
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A server that has CAP_DAC_OVERRIDE and is not root does not lend this capability to its callers. */
static int capable_user(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {{0}};
    const struct identity alien = {.uid = 1, .gid = 1}, owner = {.uid = 1000, .gid = 1};

    caps[0].permitted = caps[0].effective = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_DAC_OVERRIDE;
    if (prctl(PR_SET_KEEPCAPS, 1) || setresgid(3000, 3000, 3000) || setresuid(3000, 3000, 3000) ||
        syscall(SYS_capset, &header, caps) || !opens(O_RDWR))
        return 1;
    if (identity_assume(&alien) || opens(O_RDONLY))
        return 2;
    if (identity_assume(&owner) || !opens(O_RDWR))
        return 3;
    identity_drop();
    return opens(O_RDWR) ? 0 : 4;
}

/* A server that may not change its identity keeps its own identity. */
static int plain_user(void)
{
    const struct identity owner = {.uid = 1000, .gid = 2000};

    if (setresgid(3000, 3000, 3000) || setresuid(3000, 3000, 3000) || opens(O_RDONLY))
        return 1;
    if (identity_assume(&owner) || opens(O_RDONLY))
        return 2;
    identity_drop();
    return 0;
}

/* A caller does not get the server's groups, and identity_drop() restores these groups. */
static int server_with_groups(void)
{
    const struct identity alien = {.uid = 1, .gid = 1};
    const gid_t own[] = {2000, 2001};
    gid_t group[4];

    if (setgroups(2, own) || identity_assume(&alien) || getgroups(4, group) || opens(O_RDONLY))
        return 1;
    identity_drop();
    return getgroups(4, group) == 2 && group[0] == own[0] && group[1] == own[1] ? 0 : 2;
}

static void test_other_servers(void **state)
{
    (void)state;
    assert_int_equal(in_child(server_with_groups), 0);
    assert_int_equal(in_child(capable_user), 0);
    assert_int_equal(in_child(plain_user), 0);
}

static bool write_line(const char *name, const char *line)
{
    int fd = open(name, O_WRONLY);
    bool good = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);

    if (fd >= 0)
        close(fd);
    return good;
}

/* The root of a namespace that its user has made has all capabilities there, but may not change its groups: it serves
 * as the one user that it is. */
static void test_own_namespace(void **state)
{
    const struct identity other = {.uid = 1000, .gid = 1000, .groups = 1, .group = {7}};
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        char map[32];

        snprintf(map, sizeof(map), "0 %u 1", geteuid());
        if (unshare(CLONE_NEWUSER) || !write_line("/proc/self/setgroups", "deny") ||
            !write_line("/proc/self/uid_map", map))
            _exit(77);
        status = identity_can_change() || !identity_is_alone() || identity_assume(&other);
        identity_drop();
        _exit(status);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nets), cmocka_unit_test(test_bad_nets), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_path), cmocka_unit_test(test_squash),   cmocka_unit_test(test_own_namespace),
    };
    const struct CMUnitTest identities[] = {
        cmocka_unit_test_setup_teardown(test_assume, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_to_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_servers, setup, teardown),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    if (identity_can_change()) /* only root can test other identities */
        failed += cmocka_run_group_tests(identities, NULL, NULL);
    return failed;
}
