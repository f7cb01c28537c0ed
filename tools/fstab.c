/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fstab.c - `mount.rddp`: translates what mount(8) passes, for example from fstab, into arguments of `rddp mount`, and
 * changes the flags of a mount (remount). */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/lib/tool.h"

/* Exit codes of mount(8). */
enum { MOUNT_USAGE = 1, MOUNT_FAILED = 32 };

enum { WORDS = 64 };

struct words {
    char *word[WORDS + 4]; /* the program name and the options, then "-o", the list, source, directory and NULL */
    int count;
    char *list; /* options for the kernel and libfuse */
    bool remount;
    unsigned long flags; /* of mount(2), for a remount */
};

/* The words that a remount can change; for all others a mount keeps what it was made with. */
static const struct {
    const char *word;
    unsigned long set, clear;
} flags[] = {
    {"ro", MS_RDONLY, 0},
    {"rw", 0, MS_RDONLY},
    {"nosuid", MS_NOSUID, 0},
    {"suid", 0, MS_NOSUID},
    {"nodev", MS_NODEV, 0},
    {"dev", 0, MS_NODEV},
    {"noexec", MS_NOEXEC, 0},
    {"exec", 0, MS_NOEXEC},
    {"sync", MS_SYNCHRONOUS, 0},
    {"async", 0, MS_SYNCHRONOUS},
    {"dirsync", MS_DIRSYNC, 0},
    {"noatime", MS_NOATIME, MS_RELATIME},
    {"atime", 0, MS_NOATIME},
    {"nodiratime", MS_NODIRATIME, 0},
    {"relatime", MS_RELATIME, MS_NOATIME},
};

static void take_flag(struct words *words, const char *word)
{
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (!strcmp(flags[i].word, word))
            words->flags = (words->flags & ~flags[i].clear) | flags[i].set;
    words->remount = words->remount || !strcmp(word, "remount");
}

/* Options for mount(8) and systemd. `hard` is the default of `rddp mount`. */
static bool is_for_others(const char *word)
{
    static const char *const names[] = {"defaults", "auto",  "noauto",  "user",   "nouser",  "users",
                                        "group",    "owner", "_netdev", "nofail", "comment", "hard"};
    size_t n = strcspn(word, "=");
    if (!strncmp(word, "x-", 2) || !strncmp(word, "X-", 2))
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == n && !strncmp(names[i], word, n))
            return true;
    }
    return false;
}

/* Turns "port=20050" into --port=20050. Words that are not options of `rddp mount` go to the list. */
static void take_word(struct words *words, const char *word)
{
    size_t n = strcspn(word, "=");
    char *text;
    take_flag(words, word);
    if (!*word || is_for_others(word))
        return;
    if (!opt_is_known(&mount_command, word, n)) {
        if (*words->list)
            strcat(words->list, ",");
        strcat(words->list, word);
        return;
    }
    text = malloc(strlen(word) + 3);
    if (!text || words->count == WORDS)
        exit(fail(MOUNT_FAILED, "%s: too many options", word));
    memcpy(text, "--", 2);
    strcpy(text + 2, word);
    words->word[words->count++] = text;
}

static void take_list(struct words *words, const char *list)
{
    char *copy = strdup(list);
    words->list = realloc(words->list, strlen(words->list) + strlen(list) + 2);
    if (!copy || !words->list)
        exit(fail(MOUNT_FAILED, "out of memory"));
    for (char *save, *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
        take_word(words, word);
    free(copy);
}

/* Parses the arguments. Returns true for -f: only check, do not mount. */
static bool parse(struct words *words, int argc, char **argv)
{
    bool fake = false;
    for (int letter; (letter = getopt(argc, argv, "sfnvrwo:t:N:")) != -1;) {
        switch (letter) {
        case 'o':
            take_list(words, optarg);
            break;
        case 'r':
            take_list(words, "ro");
            break;
        case 'f':
            fake = true;
            break;
        case '?':
            exit(MOUNT_USAGE);
        default: /* sloppy, no mtab, verbose, rw, type: nothing to do */
            break;
        }
    }
    return fake;
}

/* Runs the command in a child, since it may exit, and maps its exit code to that of mount(8). */
static int run_mount(struct words *words)
{
    int status = 0;
    pid_t pid = fork();
    if (!pid)
        exit(mount_command.run(&mount_command, words->count, words->word));
    if (pid < 0)
        return fail(MOUNT_FAILED, "%s", error_text(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE)
        return MOUNT_USAGE;
    return status ? MOUNT_FAILED : EXIT_OK;
}

/* The server and the process stay: only the kernel has to know. */
static int run_remount(const struct words *words, const char *dir)
{
    if (mount(NULL, dir, NULL, MS_REMOUNT | words->flags, NULL))
        return fail(MOUNT_FAILED, "%s: %s", dir, error_text(errno));
    return EXIT_OK;
}

int run_mount_helper(int argc, char **argv)
{
    static char name[] = "mount", option[] = "-o";
    static struct words words = {.word = {name}, .count = 1}; /* the child uses the words as its argv */

    words.list = calloc(1, 1);
    if (!words.list)
        return fail(MOUNT_FAILED, "out of memory");
    bool fake = parse(&words, argc, argv);
    if (argc - optind != 2) {
        fail(MOUNT_USAGE, "usage: mount.rddp HOST:/PATH DIR [-o OPTION,...]");
        return MOUNT_USAGE;
    }
    if (*words.list) {
        words.word[words.count++] = option;
        words.word[words.count++] = words.list;
    }
    if (words.remount && !fake)
        return run_remount(&words, argv[optind + 1]);
    words.word[words.count++] = argv[optind];
    words.word[words.count++] = argv[optind + 1];
    return fake ? EXIT_OK : run_mount(&words);
}
