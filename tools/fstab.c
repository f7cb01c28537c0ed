/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fstab.c - `mount.rddp`: translates what mount(8) passes, for example from fstab, into arguments of `rddp mount`. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
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
};

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
    words.word[words.count++] = argv[optind];
    words.word[words.count++] = argv[optind + 1];
    return fake ? EXIT_OK : run_mount(&words);
}
