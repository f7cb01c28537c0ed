/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* walk.c - walks a tree entry by entry. A symbolic link is an entry itself, unless links that lead out of the tree are
 * followed or skipped. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xfer/path.h"
#include "tools/xfer/walk.h"

void walk_init(struct walk *walk, int top, int64_t open_from)
{
    walk->top = top;
    walk->open_from = (uint64_t)open_from;
    walk->flat = false;
    walk->links = LINKS_KEEP;
    walk->skipped = 0;
    walk->depth = 0;
    walk->path[0] = 0;
}

void walk_fini(struct walk *walk)
{
    while (walk->depth)
        closedir(walk->level[--walk->depth].dir);
    walk->top = -1;
}

static void set_trouble(struct walk_entry *entry, enum xfer_result result)
{
    entry->kind = WALK_TROUBLE;
    entry->result = result;
}

static void set_stat(struct walk_entry *entry, const struct stat *st)
{
    entry->mode = st->st_mode & 07777;
    entry->size = (uint64_t)st->st_size;
    entry->stored = (uint64_t)st->st_blocks * 512;
    entry->seconds = st->st_mtim.tv_sec;
    entry->nanoseconds = (uint32_t)st->st_mtim.tv_nsec;
}

/* Enters the directory `fd`, which the walk takes over. */
static void walk_enter(struct walk *walk, int fd, struct walk_entry *entry)
{
    DIR *dir = walk->depth < XFER_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        set_trouble(entry, walk->depth < XFER_DEPTH ? xfer_result_of(errno) : XFER_TOO_DEEP);
        close(fd);
        return;
    }
    entry->kind = WALK_DIRECTORY;
    walk->level[walk->depth++] = (struct walk_level){
        .dir = dir,
        .length = strlen(walk->path),
        .mode = entry->mode,
        .seconds = entry->seconds,
        .nanoseconds = entry->nanoseconds,
    };
}

static void walk_leave(struct walk *walk, struct walk_entry *entry)
{
    const struct walk_level *level = &walk->level[--walk->depth];
    walk->path[level->length] = 0;
    entry->kind = WALK_DIRECTORY_END;
    entry->mode = level->mode;
    entry->seconds = level->seconds;
    entry->nanoseconds = level->nanoseconds;
    closedir(level->dir);
}

/* Examines `fd`, which the walk or the entry takes over, or which is closed. */
static void walk_look_at(struct walk *walk, int fd, struct walk_entry *entry)
{
    struct stat st;
    if (fstat(fd, &st)) {
        set_trouble(entry, xfer_result_of(errno));
        close(fd);
        return;
    }
    set_stat(entry, &st);
    if (S_ISDIR(st.st_mode)) {
        walk_enter(walk, fd, entry);
    } else if (S_ISREG(st.st_mode)) {
        entry->kind = WALK_FILE;
        entry->fd = fd;
    } else {
        set_trouble(entry, XFER_NOT_FILE);
        close(fd);
    }
}

static void walk_read_link(int dir, const char *name, struct walk_entry *entry)
{
    struct stat st;
    ssize_t n = readlinkat(dir, name, entry->target, sizeof(entry->target));
    if (n < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
        set_trouble(entry, xfer_result_of(errno));
        return;
    }
    if ((size_t)n == sizeof(entry->target)) {
        set_trouble(entry, XFER_TOO_LONG);
        return;
    }
    entry->target[n] = 0;
    set_stat(entry, &st);
    entry->kind = WALK_LINK;
}

/* Whether an entry is a symbolic link that leads out, and such links are followed or skipped. When they are followed, a
 * loop of directories ends at the longest path. */
static bool leads_out(const struct walk *walk, int dir, const char *name, struct walk_entry *entry)
{
    walk_read_link(dir, name, entry);
    return entry->kind == WALK_LINK && walk->links != LINKS_KEEP && !xfer_link_ok(walk->path, entry->target);
}

/* Devices and pipes are not opened, since that may have side effects. */
static void walk_visit(struct walk *walk, int dir, const struct dirent *at, struct walk_entry *entry)
{
    int follow = AT_SYMLINK_NOFOLLOW;
    struct stat st;
    if (fstatat(dir, at->d_name, &st, follow)) {
        set_trouble(entry, xfer_result_of(errno));
        return;
    }
    if (S_ISLNK(st.st_mode)) {
        if (!leads_out(walk, dir, at->d_name, entry))
            return;
        follow = 0;
        entry->kind = WALK_SKIPPED;
        entry->target[0] = 0;
        walk->skipped += walk->links == LINKS_SKIP;
        if (walk->links == LINKS_SKIP)
            return;
    }
    if (!follow && fstatat(dir, at->d_name, &st, 0)) {
        set_trouble(entry, xfer_result_of(errno));
    } else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        set_trouble(entry, XFER_NOT_FILE);
    } else if ((S_ISREG(st.st_mode) && (uint64_t)st.st_size < walk->open_from) || (S_ISDIR(st.st_mode) && walk->flat)) {
        set_stat(entry, &st);
        entry->kind = S_ISDIR(st.st_mode) ? WALK_DIRECTORY : WALK_FILE;
    } else {
        int fd = openat(dir, at->d_name, O_RDONLY | (follow ? O_NOFOLLOW : 0) | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            set_trouble(entry, xfer_result_of(errno));
        else
            walk_look_at(walk, fd, entry);
    }
}

/* Whether the name is an entry: not ".", "..", or a temporary of a broken transfer. */
static bool is_entry(const char *name)
{
    return strcmp(name, ".") && strcmp(name, "..") && !is_temp(name);
}

/* Appends a name to the path. Returns false if it does not fit. */
static bool walk_append(struct walk *walk, size_t length, const char *name)
{
    size_t n = strlen(name), slash = length > 0;
    bool fits = n <= XFER_NAME && length + slash + n <= XFER_PATH;
    if (!fits)
        return false;
    walk->path[length] = slash ? '/' : 0;
    memcpy(walk->path + length + slash, name, n + 1);
    return true;
}

static void next_in_directory(struct walk *walk, struct walk_entry *entry)
{
    struct walk_level *level = &walk->level[walk->depth - 1];
    const struct dirent *at = NULL;
    errno = 0;
    /* cppcheck-suppress readdirCalled ; no other thread reads from this directory */
    while (!level->unreadable && (at = readdir(level->dir)) && !is_entry(at->d_name))
        errno = 0;
    walk->path[level->length] = 0;
    if (!at && errno) {
        /* Report the error once, and leave the directory afterwards. */
        level->unreadable = true;
        set_trouble(entry, xfer_result_of(errno));
    } else if (!at) {
        walk_leave(walk, entry);
    } else if (!walk_append(walk, level->length, at->d_name)) {
        set_trouble(entry, XFER_TOO_LONG);
    } else {
        walk_visit(walk, dirfd(level->dir), at, entry);
    }
}

/* Duplicated descriptors of a directory share the read position, so it is opened again. */
static int open_again(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0 && errno == ENOTDIR)
        again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return again;
}

void walk_next(struct walk *walk, struct walk_entry *entry)
{
    entry->kind = WALK_OVER;
    entry->result = XFER_OK;
    entry->fd = -1;
    entry->target[0] = 0;
    if (walk->top >= 0) {
        int fd = open_again(walk->top);
        walk->top = -1;
        if (fd < 0)
            set_trouble(entry, xfer_result_of(errno));
        else
            walk_look_at(walk, fd, entry);
    } else if (walk->depth) {
        do
            next_in_directory(walk, entry);
        while (entry->kind == WALK_SKIPPED);
    }
    memcpy(entry->path, walk->path, strlen(walk->path) + 1);
}

enum xfer_result walk_open(int top, struct walk_entry *entry)
{
    struct stat st;
    if (entry->fd >= 0)
        return XFER_OK;
    int fd = path_open_plain(top, entry->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return xfer_result_of(-fd);
    enum xfer_result result = fstat(fd, &st) ? xfer_result_of(errno) : S_ISREG(st.st_mode) ? XFER_OK : XFER_NOT_FILE;
    if (result) {
        close(fd);
        return result;
    }
    set_stat(entry, &st);
    entry->fd = fd;
    return XFER_OK;
}
