/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fsop_names.c - tests directories: many names, strange names, and names that are removed while in use. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsop.h"

enum { NAME = 256 };

static void make_names(const char *dir, const char *prefix, int from, int to)
{
    char path[PATH_MAX];
    for (int i = from; i < to; i++) {
        snprintf(path, sizeof(path), "%s/%s%05d", dir, prefix, i);
        close(open_or_die(path, O_WRONLY | O_CREAT | O_EXCL));
    }
}

/* DIR PREFIX COUNT: creates COUNT files, PREFIX00000 and up. */
int op_names(int argc, char **argv)
{
    if (argc != 3)
        die("names DIR PREFIX COUNT");
    make_names(argv[0], argv[1], 0, (int)number(argv[2]));
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Checks that every name of `prefix` is listed once and any other name at most once. Returns the number of others. */
static int list_once(const char *path, const char *prefix, int count)
{
    size_t n = 0, space = 0;
    char **names = NULL;
    DIR *dir = opendir(path);
    if (!dir)
        die_errno("opendir %s", path);
    for (;;) {
        errno = 0;
        struct dirent *d = readdir(dir);
        if (!d)
            break;
        if (n == space)
            names = realloc(names, (space = space * 2 + 64) * sizeof(*names));
        if (!names || !(names[n++] = strdup(d->d_name)))
            die("no memory");
    }
    if (errno)
        die_errno("readdir %s", path);
    closedir(dir);
    qsort(names, n, sizeof(*names), by_text);
    int seen = 0, dots = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && !strcmp(names[i], names[i - 1]))
            die("%s comes twice", names[i]);
        if (!strcmp(names[i], ".") || !strcmp(names[i], ".."))
            dots++;
        else
            seen += !strncmp(names[i], prefix, strlen(prefix));
    }
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    if (seen != count || dots != 2)
        die("%d names of %d, and %d dots", seen, count, dots);
    return (int)n - seen - dots;
}

/* DIR PREFIX COUNT [OTHERS]: checks that the directory lists each name of PREFIX once, and OTHERS other names. */
int op_list(int argc, char **argv)
{
    if (argc < 3)
        die("list DIR PREFIX COUNT [OTHERS]");
    int others = list_once(argv[0], argv[1], (int)number(argv[2]));
    if (argc > 3 && others != (int)number(argv[3]))
        die("%d other names", others);
    return 0;
}

/* DIR PREFIX COUNT ROUNDS: lists each existing name once while another process creates and removes other names. */
int op_busy(int argc, char **argv)
{
    if (argc != 4)
        die("busy DIR PREFIX COUNT ROUNDS");
    pid_t child = fork();
    if (child < 0)
        die_errno("fork");
    if (!child) {
        char path[PATH_MAX];
        for (int i = 0;; i++) {
            make_names(argv[0], "zz", i, i + 1);
            snprintf(path, sizeof(path), "%s/zz%05d", argv[0], i - 20);
            if (i >= 20 && unlink(path))
                die_errno("unlink %s", path);
        }
    }
    for (uint64_t i = number(argv[3]); i; i--)
        list_once(argv[0], argv[1], (int)number(argv[2]));
    if (waitpid(child, NULL, WNOHANG))
        die("the other process ended");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}

static int create_exclusively(int self, void *user)
{
    (void)self;
    int fd = open(user, O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (fd < 0 && errno != EEXIST)
        die_errno("create %s", (const char *)user);
    return fd < 0 ? 1 : 0;
}

/* DIR RACERS ROUNDS: several processes create the same name exclusively, and exactly one succeeds. */
int op_excl(int argc, char **argv)
{
    char path[PATH_MAX];
    struct stat st;
    if (argc != 3)
        die("excl DIR RACERS ROUNDS");
    for (int i = 0; i < (int)number(argv[2]); i++) {
        snprintf(path, sizeof(path), "%s/race%d", argv[0], i);
        int winners = in_processes((int)number(argv[1]), create_exclusively, path);
        if (winners != 1)
            die("%d winners", winners);
        /* An exclusive CREATE stores its verifier in the file's times. The client must have set them afterwards. */
        if (stat(path, &st) || (st.st_mode & 07777) != 0640 || st.st_size)
            die("mode %o, size %lld", st.st_mode, (long long)st.st_size);
        if (st.st_mtim.tv_sec < 1700000000 || st.st_atim.tv_sec < 1700000000)
            die("times %lld %lld", (long long)st.st_atim.tv_sec, (long long)st.st_mtim.tv_sec);
        if (unlink(path))
            die_errno("unlink");
    }
    return 0;
}

/* DIR: an open file still works after unlink or a rename over it, and leaves no name behind when it is closed. */
int op_silly(int argc, char **argv)
{
    char path[PATH_MAX], other[PATH_MAX], text[8] = "";
    if (argc != 1)
        die("silly DIR");
    snprintf(path, sizeof(path), "%s/open", argv[0]);
    snprintf(other, sizeof(other), "%s/other", argv[0]);
    int first = open_or_die(path, O_RDWR | O_CREAT | O_EXCL);
    write_all(first, "before", 6, 0);
    if (unlink(path))
        die_errno("unlink");
    int second = open_or_die(path, O_RDWR | O_CREAT | O_EXCL);
    write_all(second, "second", 6, 0);
    int third = open_or_die(other, O_RDWR | O_CREAT | O_EXCL);
    if (rename(other, path))
        die_errno("rename over an open file");
    write_all(first, "-after", 6, 6);
    if (fsync(first) || read_all(first, text, 6, 3) != 6 || memcmp(text, "ore-af", 6))
        die("the unlinked file lost its octets");
    if (read_all(second, text, 6, 0) != 6 || memcmp(text, "second", 6))
        die("the replaced file lost its octets");
    if (close(first) || close(second) || close(third) || unlink(path))
        die_errno("close");
    return list_once(argv[0], "", 0);
}

/* DIR: creates names with every permitted octet, alone and combined, of up to 255 octets; 256 octets must fail. */
int op_odd(int argc, char **argv)
{
    char name[NAME + 1];
    struct stat st;
    if (argc != 1 || chdir(argv[0]))
        die_errno("odd DIR");
    for (int c = 1; c < 256; c++) {
        snprintf(name, sizeof(name), "%c", c);
        if (c != '/' && c != '.')
            close(open_or_die(name, O_WRONLY | O_CREAT | O_EXCL));
        snprintf(name, sizeof(name), "n%c%c", c, 256 - c);
        if (c != '/' && 256 - c != '/')
            close(open_or_die(name, O_WRONLY | O_CREAT | O_EXCL));
    }
    for (size_t n = 2; n < NAME; n++) { /* the lengths cover every XDR padding */
        memset(name, 0xe4, n);
        name[n] = 0;
        close(open_or_die(name, O_WRONLY | O_CREAT | O_EXCL));
    }
    memset(name, 'x', NAME);
    name[NAME] = 0;
    if (open(name, O_WRONLY | O_CREAT, 0644) >= 0 || errno != ENAMETOOLONG || mkdir(name, 0755) == 0 ||
        errno != ENAMETOOLONG || stat(name, &st) == 0 || errno != ENAMETOOLONG)
        die_errno("a name of 256");
    int others = list_once(".", "n", 1 + 253);
    if (others != 252 + 254)
        die("%d other names", others);
    for (int c = 1; c < 256; c++) {
        snprintf(name, sizeof(name), "%c", c);
        if (c != '/' && c != '.' && (stat(name, &st) || unlink(name)))
            die_errno("the name %02x", c);
        snprintf(name, sizeof(name), "n%c%c", c, 256 - c);
        if (c != '/' && 256 - c != '/' && unlink(name))
            die_errno("the name %02x %02x", c, 256 - c);
    }
    for (size_t n = 2; n < NAME; n++) {
        memset(name, 0xe4, n);
        name[n] = 0;
        if (unlink(name))
            die_errno("a name of %zu", n);
    }
    return list_once(".", "", 0);
}

/* DIR LEVELS: nests directories until the path is longer than a system call takes, then goes back up. */
int op_deep(int argc, char **argv)
{
    char name[101];
    if (argc != 2 || chdir(argv[0]))
        die_errno("deep DIR LEVELS");
    memset(name, 'd', 100);
    name[100] = 0;
    for (uint64_t i = number(argv[1]); i; i--) {
        if (mkdir(name, 0755) || chdir(name))
            die_errno("level %llu", (unsigned long long)i);
    }
    close(open_or_die("leaf", O_WRONLY | O_CREAT | O_EXCL));
    if (rmdir("../") == 0 || unlink("leaf"))
        die_errno("at the bottom");
    for (uint64_t i = number(argv[1]); i; i--) {
        if (chdir("..") || rmdir(name))
            die_errno("back to level %llu", (unsigned long long)i);
    }
    return list_once(".", "", 0);
}
