/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ls.c - `rddp nfs ls` and `stat`: list names and attributes. */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nfs/command/nfs.h"

/* --- words --------------------------------------------------------------------------------------------------- */

/* "drwxr-xr-x" */
static char *ls_mode_text(char text[SMALL_TEXT], const struct nfs3_attr *attr)
{
    static const char types[] = "?-dbclsp", bits[] = "rwxrwxrwx";
    text[0] = types[attr->type];
    for (int i = 0; i < 9; i++)
        text[1 + i] = attr->mode & (0400U >> i) ? bits[i] : '-';
    if (attr->mode & 04000)
        text[3] = attr->mode & 0100 ? 's' : 'S';
    if (attr->mode & 02000)
        text[6] = attr->mode & 010 ? 's' : 'S';
    if (attr->mode & 01000)
        text[9] = attr->mode & 01 ? 't' : 'T';
    text[10] = 0;
    return text;
}

char *nfs_size_text(char text[SMALL_TEXT], uint64_t size, bool human)
{
    static const char units[] = "\0KMGTPE";
    double value = (double)size;
    int unit = 0;
    if (!human || size < 1024) {
        snprintf(text, SMALL_TEXT, "%" PRIu64, size);
        return text;
    }
    for (; value >= 1024 && unit < 6; unit++)
        value /= 1024;
    snprintf(text, SMALL_TEXT, "%.*f%c", value < 9.95 ? 1 : 0, value, units[unit]);
    return text;
}

/* Like ls, shows the year instead of the time of day for dates more than half a year away. */
static const char *ls_time_text(char text[SMALL_TEXT], const struct nfs3_time *when)
{
    time_t at = when->s, now = time(NULL);
    struct tm tm;
    double away = difftime(now, at);
    if (!localtime_r(&at, &tm) ||
        !strftime(text, SMALL_TEXT, away > 182 * 86400 || away < -3600 ? "%b %e  %Y" : "%b %e %H:%M", &tm))
        strcpy(text, "?");
    return text;
}

static const char *user_text(char text[SMALL_TEXT], uint32_t uid)
{
    /* cppcheck-suppress getpwuidCalled ; there is one thread */
    const struct passwd *user = getpwuid(uid);
    snprintf(text, SMALL_TEXT, "%u", uid);
    return user && strlen(user->pw_name) < SMALL_TEXT ? strcpy(text, user->pw_name) : text;
}

static const char *group_text(char text[SMALL_TEXT], uint32_t gid)
{
    /* cppcheck-suppress getgrgidCalled ; there is one thread */
    const struct group *group = getgrgid(gid);
    snprintf(text, SMALL_TEXT, "%u", gid);
    return group && strlen(group->gr_name) < SMALL_TEXT ? strcpy(text, group->gr_name) : text;
}

/* --- a line -------------------------------------------------------------------------------------------------- */

static void print_target(struct nfs_session *s, const struct nfs3_fh *fh)
{
    char target[NFS3_PATH_MAX + 1], text[XFER_TEXT];
    struct nfs_op op = {.proc = NFS3_READLINK, .args.fh = *fh, .buffer = target};
    if (nfs_call(s->client, &op) == 0) {
        target[op.result.target.length] = 0;
        printf(" -> %s", xfer_printable(text, target));
    }
    nfs_forget(&op);
}

static void print_item(struct nfs_session *s, const struct nfs_item *item, const char *name)
{
    char mode[SMALL_TEXT], user[SMALL_TEXT], group[SMALL_TEXT], size[SMALL_TEXT], when[SMALL_TEXT], text[XFER_TEXT];
    const struct nfs3_attr *a = &item->attr;
    if (s->options->detail) {
        if (a->type == NFS3_BLK || a->type == NFS3_CHR)
            snprintf(size, sizeof(size), "%u, %u", a->major, a->minor);
        else
            nfs_size_text(size, a->size, s->options->human);
        printf("%s %3u %-8s %-8s %10s %s ", ls_mode_text(mode, a), a->nlink, user_text(user, a->uid),
               group_text(group, a->gid), size, ls_time_text(when, &a->mtime));
    }
    fputs(xfer_printable(text, name), stdout);
    if (s->options->detail && a->type == NFS3_LNK)
        print_target(s, &item->fh);
    putchar('\n');
}

/* --- a directory --------------------------------------------------------------------------------------------- */

enum {
    LS_PART = 16384,    /* names that are sorted together */
    LS_KEPT = 64 << 20, /* octets for the directories that -R has yet to list, at all depths */
};

/* A part of a directory, and with -R the directories in it that have yet to be listed: of each the length of its
 * handle, the handle, and the name with its NUL. */
struct listing {
    struct nfs_item *item;
    size_t count;
    uint8_t *dirs;
    size_t used, capacity;
    bool full; /* there were more directories than may be kept */
};

static size_t kept; /* octets in all `dirs` */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct nfs_item *)a)->name, ((const struct nfs_item *)b)->name);
}

static bool ls_is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Keeps a directory for later. Returns false if there is no memory for it. */
static bool keep_dir(struct listing *l, const struct nfs_item *item)
{
    size_t name = strlen(item->name) + 1, n = 1 + item->fh.length + name;

    if (n > LS_KEPT - kept)
        return false;
    if (l->capacity - l->used < n) {
        size_t capacity = 2 * l->capacity + 4096;
        uint8_t *more = realloc(l->dirs, capacity);

        if (!more)
            return false;
        l->dirs = more;
        l->capacity = capacity;
    }
    l->dirs[l->used] = (uint8_t)item->fh.length;
    memcpy(l->dirs + l->used + 1, item->fh.data, item->fh.length);
    memcpy(l->dirs + l->used + 1 + item->fh.length, item->name, name);
    l->used += n;
    kept += n;
    return true;
}

/* Sorts and prints the part. */
static void print_part(struct nfs_session *s, struct listing *l)
{
    if (l->count)
        qsort(l->item, l->count, sizeof(*l->item), by_name);
    for (size_t i = 0; i < l->count; i++) {
        const struct nfs_item *item = &l->item[i];

        print_item(s, item, item->name);
        if (s->options->recursive && item->attr.type == NFS3_DIR && !ls_is_dots(item->name))
            l->full = !keep_dir(l, item) || l->full;
    }
    l->count = 0;
}

static int print_all(struct nfs_session *s, const struct nfs3_fh *dir, const char *path, struct listing *l)
{
    struct nfs_list list;
    struct nfs_item item;
    int error, code = 0;

    l->item = malloc(LS_PART * sizeof(*l->item));
    if (!l->item)
        return fail(EXIT_FAILED, "out of memory");
    nfs_list_open(&list, s->client, dir, s->options->all);
    while (!code && (error = nfs_list_next(&list, &item)) != 0) {
        if (error < 0) {
            code = nfs_fail(s, nfs_exit_code(error), path, list.trouble);
        } else if (s->options->all || item.name[0] != '.') {
            l->item[l->count++] = item;
            if (l->count == LS_PART)
                print_part(s, l);
        }
    }
    nfs_list_close(&list);
    print_part(s, l);
    free(l->item);
    return code;
}

static int ls_worse(int a, int b)
{
    return a > b ? a : b;
}

static int list_tree(struct nfs_session *s, const struct nfs3_fh *dir, const char *path, unsigned deep, bool heading);

static int list_dirs(struct nfs_session *s, const struct listing *l, const char *path, unsigned deep)
{
    char whole[XFER_PATH + 1];
    int code = 0;

    for (size_t at = 0; at < l->used && !tool_stopped;) {
        struct nfs3_fh fh = {.length = l->dirs[at]};
        const char *name = (const char *)l->dirs + at + 1 + fh.length;

        memcpy(fh.data, l->dirs + at + 1, fh.length);
        at += 1 + fh.length + strlen(name) + 1;
        if (deep == XFER_DEPTH || !nfs_join(whole, path, name)) {
            code = ls_worse(code, nfs_fail(s, EXIT_FAILED, path, xfer_result_text(XFER_TOO_DEEP)));
            continue;
        }
        putchar('\n');
        code = ls_worse(code, list_tree(s, &fh, whole, deep + 1, true));
    }
    return code;
}

/* `path` is relative to the path that the user gave, "" for that path itself. */
static int list_tree(struct nfs_session *s, const struct nfs3_fh *dir, const char *path, unsigned deep, bool heading)
{
    struct listing listing = {0};
    char text[XFER_TEXT], whole[XFER_PATH + 1];
    int code;

    if (heading) {
        snprintf(whole, sizeof(whole), "%.1000s%s%.3000s", s->name, *path ? "/" : "", path);
        printf("%s:\n", xfer_printable(text, whole));
    }
    code = print_all(s, dir, path, &listing);
    if (listing.full)
        code = ls_worse(code, nfs_fail(s, EXIT_FAILED, path, "too many directories: some are not listed"));
    code = ls_worse(code, list_dirs(s, &listing, path, deep));
    kept -= listing.used;
    free(listing.dirs);
    return code;
}

static int list_one(struct nfs_session *s, bool heading)
{
    struct nfs_item item;
    /* Like ls, follows a symbolic link that was given as an argument, except with -l. */
    int error = nfs_lookup(s->client, s->inside, !s->options->detail || s->remote.into, &item.fh, &item.attr);
    if (error)
        return nfs_fail(s, nfs_exit_code(error), "", nfs_errno_text(error));
    if (item.attr.type == NFS3_DIR)
        return list_tree(s, &item.fh, "", 0, heading);
    print_item(s, &item, s->remote.path);
    return 0;
}

int nfs_ls(const struct nfs_options *options, int argc, char **argv)
{
    int code = 0;
    for (int i = 0; i < argc && !tool_stopped; i++) {
        struct nfs_session s;
        int this = nfs_session_open(&s, options, argv[i]);
        if (i)
            putchar('\n');
        if (!this)
            this = list_one(&s, argc > 1 || options->recursive);
        nfs_session_close(&s);
        code = ls_worse(code, this);
    }
    return code;
}

/* --- stat ---------------------------------------------------------------------------------------------------- */

static void print_stat(struct nfs_session *s, const struct nfs_item *item)
{
    static const char *const types[] = {
        "?", "regular file", "directory", "block device", "character device", "symbolic link", "socket", "pipe"};
    char text[XFER_TEXT], mode[SMALL_TEXT], user[SMALL_TEXT], group[SMALL_TEXT];
    const struct nfs3_attr *a = &item->attr;
    printf("  file: %s", xfer_printable(text, s->name));
    if (a->type == NFS3_LNK)
        print_target(s, &item->fh);
    printf("\n  type: %s\n  mode: %04o %s\n links: %u\n owner: %u %s\n group: %u %s\n", types[a->type], a->mode & 07777,
           ls_mode_text(mode, a), a->nlink, a->uid, user_text(user, a->uid), a->gid, group_text(group, a->gid));
    printf("  size: %" PRIu64 "\n  used: %" PRIu64 "\n  fsid: %" PRIx64 "\nfileid: %" PRIu64 "\n", a->size, a->used,
           a->fsid, a->fileid);
    printf(" atime: %u.%09u\n mtime: %u.%09u\n ctime: %u.%09u\nhandle: ", a->atime.s, a->atime.ns, a->mtime.s,
           a->mtime.ns, a->ctime.s, a->ctime.ns);
    for (uint32_t i = 0; i < item->fh.length; i++)
        printf("%02x", item->fh.data[i]);
    putchar('\n');
}

int nfs_stat(const struct nfs_options *options, int argc, char **argv)
{
    int code = 0;
    for (int i = 0; i < argc && !tool_stopped; i++) {
        struct nfs_session s;
        struct nfs_item item;
        int this = nfs_session_open(&s, options, argv[i]);
        int error = this ? 0 : nfs_lookup(s.client, s.inside, s.remote.into, &item.fh, &item.attr);
        if (error)
            this = nfs_fail(&s, nfs_exit_code(error), "", nfs_errno_text(error));
        else if (!this)
            print_stat(&s, &item);
        nfs_session_close(&s);
        code = ls_worse(code, this);
    }
    return code;
}
