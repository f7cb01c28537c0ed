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

char *nfs_mode_text(char text[SMALL_TEXT], const struct nfs3_attr *attr)
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
static const char *nfs_ls_time_text(char text[SMALL_TEXT], const struct nfs3_time *when)
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
        printf("%s %3u %-8s %-8s %10s %s ", nfs_mode_text(mode, a), a->nlink, user_text(user, a->uid),
               group_text(group, a->gid), size, nfs_ls_time_text(when, &a->mtime));
    }
    fputs(xfer_printable(text, name), stdout);
    if (s->options->detail && a->type == NFS3_LNK)
        print_target(s, &item->fh);
    putchar('\n');
}

/* --- a directory --------------------------------------------------------------------------------------------- */

struct listing {
    struct nfs_item *item;
    size_t count, capacity;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct nfs_item *)a)->name, ((const struct nfs_item *)b)->name);
}

static int nfs_ls_add(struct listing *listing, const struct nfs_item *item)
{
    if (listing->count == listing->capacity) {
        size_t space = listing->capacity ? 2 * listing->capacity : 256;
        struct nfs_item *more = realloc(listing->item, space * sizeof(*more));
        if (!more)
            return fail(EXIT_FAILED, "out of memory");
        listing->item = more;
        listing->capacity = space;
    }
    listing->item[listing->count++] = *item;
    return 0;
}

static int collect(struct nfs_session *s, const struct nfs3_fh *dir, const char *path, struct listing *listing)
{
    struct nfs_list list;
    struct nfs_item item;
    int error, code = 0;
    nfs_list_open(&list, s->client, dir, s->options->all);
    while (!code && (error = nfs_list_next(&list, &item)) != 0) {
        if (error < 0)
            code = nfs_fail(s, nfs_exit_code(error), path, list.trouble);
        else if (s->options->all || item.name[0] != '.')
            code = nfs_ls_add(listing, &item);
    }
    nfs_list_close(&list);
    if (listing->count)
        qsort(listing->item, listing->count, sizeof(*listing->item), by_name);
    return code;
}

static bool nfs_ls_is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static int nfs_ls_worse(int a, int b)
{
    return a > b ? a : b;
}

/* `path` is relative to the path that the user gave, "" for that path itself. */
static int list_tree(struct nfs_session *s, const struct nfs3_fh *dir, const char *path, unsigned deep, bool heading)
{
    struct listing listing = {0};
    char text[XFER_TEXT], whole[XFER_PATH + 1];
    if (heading) {
        snprintf(whole, sizeof(whole), "%.1000s%s%.3000s", s->name, *path ? "/" : "", path);
        printf("%s:\n", xfer_printable(text, whole));
    }
    int code = collect(s, dir, path, &listing);
    for (size_t i = 0; i < listing.count; i++)
        print_item(s, &listing.item[i], listing.item[i].name);
    for (size_t i = 0; s->options->recursive && i < listing.count && !tool_stopped; i++) {
        const struct nfs_item *item = &listing.item[i];
        if (item->attr.type != NFS3_DIR || nfs_ls_is_dots(item->name))
            continue;
        if (deep == XFER_DEPTH || !nfs_join(whole, path, item->name)) {
            code = nfs_ls_worse(code, nfs_fail(s, EXIT_FAILED, path, xfer_result_text(XFER_TOO_DEEP)));
            continue;
        }
        putchar('\n');
        code = nfs_ls_worse(code, list_tree(s, &item->fh, whole, deep + 1, true));
    }
    free(listing.item);
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
        code = nfs_ls_worse(code, this);
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
           nfs_mode_text(mode, a), a->nlink, a->uid, user_text(user, a->uid), a->gid, group_text(group, a->gid));
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
        code = nfs_ls_worse(code, this);
    }
    return code;
}
