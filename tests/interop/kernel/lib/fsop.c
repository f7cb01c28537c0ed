/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fsop.c - performs one file system operation that a shell cannot request, or cannot check closely enough. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>

#include "fsop.h"

static void say(const char *format, va_list arguments, const char *word)
{
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "%s%s\n", word ? ": " : "", word ? word : "");
}

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, NULL);
    va_end(arguments);
    exit(1);
}

void die_errno(const char *format, ...)
{
    const char *word = strerror(errno);
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, word);
    va_end(arguments);
    exit(1);
}

uint64_t number(const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 0);
    if (end == text || *end)
        die("not a number: %s", text);
    return n;
}

int open_or_die(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        die_errno("open %s", path);
    return fd;
}

void write_all(int fd, const void *data, size_t n, off_t offset)
{
    const uint8_t *p = data;
    while (n) {
        ssize_t done = pwrite(fd, p, n, offset);
        if (done <= 0)
            die_errno("write of %zu at %lld", n, (long long)offset);
        p += done;
        offset += done;
        n -= (size_t)done;
    }
}

size_t read_all(int fd, void *data, size_t n, off_t offset)
{
    size_t got = 0;
    while (got < n) {
        ssize_t done = pread(fd, (uint8_t *)data + got, n - got, offset + (off_t)got);
        if (done < 0)
            die_errno("read of %zu at %lld", n, (long long)offset);
        if (!done)
            break;
        got += (size_t)done;
    }
    return got;
}

void pattern(uint64_t seed, uint64_t offset, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t z = seed * 0xd1342543de82ef95 + (offset + i) / 8 * 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z ^= z >> 27;
        memcpy(to + i, &z, n - i < 8 ? n - i : 8);
    }
}

int in_processes(int n, int (*run)(int self, void *user), void *user)
{
    int good = 0, status;
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child < 0)
            die_errno("fork");
        if (!child)
            _exit(run(i, user));
    }
    while (wait(&status) > 0)
        good += WIFEXITED(status) && !WEXITSTATUS(status);
    return good;
}

/* --- one call and its errno -------------------------------------------------------------------------------------- */

static int use(int fd, bool write_too)
{
    char c = 'x';
    if (fd < 0)
        return -1;
    if ((write_too ? write(fd, &c, 1) : read(fd, &c, 1)) < 0 || (write_too && fsync(fd))) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return close(fd);
}

static int list(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    errno = 0;
    while (readdir(dir)) {
    }
    int error = errno;
    closedir(dir);
    errno = error;
    return error ? -1 : 0;
}

static int call(const char *name, const char *a, const char *b)
{
    struct stat st;
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    if (!strcmp(name, "create"))
        return use(open(a, O_WRONLY | O_CREAT | O_EXCL, 0644), false) < 0 && errno != EBADF ? -1 : 0;
    if (!strcmp(name, "read"))
        return use(open(a, O_RDONLY), false);
    if (!strcmp(name, "write"))
        return use(open(a, O_WRONLY), true);
    if (!strcmp(name, "list"))
        return list(a);
    if (!strcmp(name, "stat"))
        return lstat(a, &st);
    if (!strcmp(name, "mkdir"))
        return mkdir(a, 0755);
    if (!strcmp(name, "mkfifo"))
        return mkfifo(a, 0644);
    if (!strcmp(name, "unlink"))
        return unlink(a);
    if (!strcmp(name, "rmdir"))
        return rmdir(a);
    if (!strcmp(name, "chmod"))
        return chmod(a, (mode_t)number(b));
    if (!strcmp(name, "chown"))
        return lchown(a, (uid_t)number(b), (gid_t)-1);
    if (!strcmp(name, "truncate"))
        return truncate(a, (off_t)number(b));
    if (!strcmp(name, "utime"))
        return utimensat(AT_FDCWD, a, times, 0);
    if (!strcmp(name, "access"))
        return access(a, (int)number(b));
    if (!strcmp(name, "rename"))
        return rename(a, b);
    if (!strcmp(name, "link"))
        return link(a, b);
    if (!strcmp(name, "symlink"))
        return symlink(a, b);
    die("no call '%s'", name);
}

static const char *errno_word(int value)
{
    static const struct {
        int value;
        const char *word;
    } words[] = {
        {0, "0"},
        {EACCES, "EACCES"},
        {EPERM, "EPERM"},
        {EROFS, "EROFS"},
        {EEXIST, "EEXIST"},
        {ENOENT, "ENOENT"},
        {ENOTDIR, "ENOTDIR"},
        {EISDIR, "EISDIR"},
        {ENOTEMPTY, "ENOTEMPTY"},
        {ENAMETOOLONG, "ENAMETOOLONG"},
        {ELOOP, "ELOOP"},
        {EINVAL, "EINVAL"},
        {ESTALE, "ESTALE"},
        {EFBIG, "EFBIG"},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].value == value)
            return words[i].word;
    }
    return strerror(value);
}

/* WORD[,WORD] CALL ARGUMENT...: checks that the call fails with one of these errors. The word 0 stands for success. */
static int op_errno(int argc, char **argv)
{
    if (argc < 3)
        die("errno WORD[,WORD] CALL ARGUMENT...");
    errno = 0;
    const char *got = errno_word(call(argv[1], argv[2], argc > 3 ? argv[3] : "0") ? errno : 0);
    char *list = strdup(argv[0]), *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (!strcmp(word, got))
            return 0;
    }
    die("%s %s: %s, not %s", argv[1], argv[2], got, argv[0]);
}

/* UID GID COMMAND...: runs the command as this user and group, without supplementary groups. */
static int op_as(int argc, char **argv)
{
    if (argc < 3)
        die("as UID GID COMMAND...");
    gid_t gid = (gid_t)number(argv[1]);
    uid_t uid = (uid_t)number(argv[0]);
    if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
        die_errno("become %s", argv[0]);
    execvp(argv[2], argv + 2);
    die_errno("%s", argv[2]);
}

/* FILE: checks that times keep their nanoseconds, that UTIME_OMIT leaves a time alone and that UTIME_NOW sets it. */
static int op_times(int argc, char **argv)
{
    const struct timespec set[2] = {{1000000001, 123456789}, {1234567890, 987654321}};
    const struct timespec half[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    struct stat st;
    if (argc != 1)
        die("times FILE");
    if (utimensat(AT_FDCWD, argv[0], set, AT_SYMLINK_NOFOLLOW) || lstat(argv[0], &st))
        die_errno("utimensat");
    if (st.st_atim.tv_sec != set[0].tv_sec || st.st_atim.tv_nsec != set[0].tv_nsec)
        die("atime is %lld.%09ld", (long long)st.st_atim.tv_sec, st.st_atim.tv_nsec);
    if (st.st_mtim.tv_sec != set[1].tv_sec || st.st_mtim.tv_nsec != set[1].tv_nsec)
        die("mtime is %lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    if (utimensat(AT_FDCWD, argv[0], half, 0) || lstat(argv[0], &st))
        die_errno("utimensat now");
    if (st.st_atim.tv_nsec != set[0].tv_nsec)
        die("an atime to be left alone has changed");
    if (st.st_mtim.tv_sec < 1700000000)
        die("now is %lld", (long long)st.st_mtim.tv_sec);
    return 0;
}

/* DIR: checks that the figures of statfs are plausible. */
static int op_statfs(int argc, char **argv)
{
    struct statfs s;
    if (argc != 1)
        die("statfs DIR");
    if (statfs(argv[0], &s))
        die_errno("statfs");
    if (!s.f_blocks || s.f_bfree > s.f_blocks || s.f_bavail > s.f_bfree || s.f_bsize < 512)
        die("blocks %lld free %lld available %lld of %ld", (long long)s.f_blocks, (long long)s.f_bfree,
            (long long)s.f_bavail, (long)s.f_bsize);
    if (s.f_ffree > s.f_files || s.f_namelen != 255)
        die("files %lld free %lld, names of %ld", (long long)s.f_files, (long long)s.f_ffree, (long)s.f_namelen);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} ops[] = {
    {"errno", op_errno},   {"as", op_as},           {"times", op_times},   {"statfs", op_statfs}, {"fill", op_fill},
    {"check", op_check},   {"forget", op_forget},   {"sparse", op_sparse}, {"mmap", op_mmap},     {"ranges", op_ranges},
    {"append", op_append}, {"records", op_records}, {"names", op_names},   {"list", op_list},     {"busy", op_busy},
    {"excl", op_excl},     {"silly", op_silly},     {"odd", op_odd},       {"deep", op_deep},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (!strcmp(ops[i].name, argv[1]))
            return ops[i].run(argc - 2, argv + 2);
    }
    fprintf(stderr, "usage: fsop OPERATION ARGUMENT...\n");
    return 2;
}
