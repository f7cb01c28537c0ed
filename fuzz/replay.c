/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - runs a fuzz target on its seeds and on mutations of them, without a fuzzer: the same inputs each time.
 *
 * replay_NAME CORPUS [MUTATIONS [SEED]]      every file of CORPUS, then MUTATIONS changed copies of each
 * replay_NAME FILE...                        only these inputs, to debug a failure
 *
 * An input on which the target aborts is written to crash-SEED-N in the working directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 17, FILES_MAX = 4096, MUTATIONS = 2000 };

struct input {
    char *name;
    uint8_t *data;
    size_t length;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int __attribute__((weak)) LLVMFuzzerInitialize(int *argc, char ***argv);
void __attribute__((weak)) __sanitizer_set_death_callback(void (*callback)(void));

static struct input files[FILES_MAX];
static size_t file_count;

/* The input that runs now, for the report of a crash. */
static uint8_t *running;
static size_t running_length;
static char running_name[64];

static _Noreturn void die(const char *what, const char *name)
{
    fprintf(stderr, "replay: %s: %s\n", name, what);
    exit(EXIT_FAILURE);
}

static void save_running(void)
{
    static const char said[] = "replay: the input is in ";
    int fd = open(running_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool saved = fd >= 0 && write(fd, running, running_length) == (ssize_t)running_length;

    if (saved && write(STDERR_FILENO, said, sizeof(said) - 1) > 0 &&
        write(STDERR_FILENO, running_name, strlen(running_name)) > 0)
        (void)!write(STDERR_FILENO, "\n", 1);
}

static void on_signal(int number)
{
    save_running();
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_crashes(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(save_running);
        signal(SIGABRT, on_signal);
        return;
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], on_signal);
}

/* Targets allocate the same large regions for each input: keep them, instead of asking the kernel for clear pages. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

/* xorshift64*: gives the same mutations of a seed on every machine. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1d;
}

static size_t below(uint64_t *state, size_t limit)
{
    return limit ? next(state) % limit : 0;
}

/* Makes one change: a bit, an octet, an edge value, a cut, a gap, new octets, or a piece of another seed. */
static size_t mutate(uint8_t *data, size_t n, uint64_t *state)
{
    static const uint8_t edges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    const struct input *other = &files[below(state, file_count)];
    size_t at = below(state, n);
    size_t length = 1 + below(state, 16);

    if (n == 0 || next(state) % 16 == 0) {
        length = length < INPUT_MAX - n ? length : INPUT_MAX - n;
        memmove(data + at + length, data + at, n - at);
        for (size_t i = 0; i < length; i++)
            data[at + i] = (uint8_t)next(state);
        return n + length;
    }
    length = length < n - at ? length : n - at;
    switch (next(state) % 7) {
    case 0:
        data[at] ^= (uint8_t)(1U << next(state) % 8);
        break;
    case 1:
        data[at] = (uint8_t)next(state);
        break;
    case 2:
        memset(data + at, edges[next(state) % sizeof(edges)], length);
        break;
    case 3:
        data[at] = (uint8_t)(data[at] + (next(state) % 2 ? 1 : -1));
        break;
    case 4:
        return at;
    case 5:
        memmove(data + at, data + at + length, n - at - length);
        return n - length;
    case 6:
        length = length < other->length ? length : other->length;
        memcpy(data + at, other->data + below(state, other->length - length + 1), length);
        break;
    }
    return n;
}

/* Each input is in memory of its own size, so that sanitizers detect reads beyond it. */
static void run(const uint8_t *data, size_t n, const char *name)
{
    running = malloc(n ? n : 1);
    if (!running)
        die("out of memory", name);
    memcpy(running, data, n);
    running_length = n;
    snprintf(running_name, sizeof(running_name), "crash-%s", name);
    LLVMFuzzerTestOneInput(running, n);
    free(running);
}

static void load(const char *path, const char *name)
{
    struct input *input = &files[file_count];
    FILE *file = fopen(path, "rb");

    if (!file)
        die(strerror(errno), path);
    if (file_count == FILES_MAX)
        die("too many seeds", path);
    input->data = malloc(INPUT_MAX);
    input->name = strdup(name);
    if (!input->data || !input->name)
        die("out of memory", path);
    input->length = fread(input->data, 1, INPUT_MAX, file);
    if (fgetc(file) != EOF)
        die("the input is too long", path);
    fclose(file);
    input->data = realloc(input->data, input->length + 1);
    file_count++;
}

/* For scandir(), which sorts, so that the order does not depend on the file system. */
static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void load_folder(const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, visible, alphasort);
    char path[4096];

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        load(path, entries[i]->d_name);
        free(entries[i]);
    }
    /* Without a seed there is nothing to mutate, and a pass would prove nothing. */
    if (n <= 0)
        die(n < 0 ? strerror(errno) : "no seeds", folder);
    free(entries);
}

static void replay(const struct input *seed, unsigned long mutations, uint64_t state)
{
    static uint8_t data[2 * INPUT_MAX];
    char name[48];

    run(seed->data, seed->length, seed->name);
    for (unsigned long i = 0; i < mutations; i++) {
        size_t n = seed->length;

        memcpy(data, seed->data, n);
        for (size_t changes = 1 + below(&state, 8); changes; changes--)
            n = mutate(data, n, &state);
        snprintf(name, sizeof(name), "%.24s-%lu", seed->name, i);
        run(data, n, name);
    }
}

int main(int argc, char **argv)
{
    unsigned long mutations = argc > 2 ? strtoul(argv[2], NULL, 0) : MUTATIONS;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    struct stat status;

    if (argc < 2 || stat(argv[1], &status)) {
        fprintf(stderr, "usage: %s CORPUS [MUTATIONS [SEED]] | FILE...\n", argv[0]);
        return 2;
    }
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    catch_crashes();
    keep_memory();
    if (S_ISDIR(status.st_mode)) {
        load_folder(argv[1]);
    } else {
        mutations = 0;
        for (int i = 1; i < argc; i++)
            load(argv[i], argv[i]);
    }
    for (size_t i = 0; i < file_count; i++)
        replay(&files[i], mutations, seed * 0x9e3779b97f4a7c15 + i + 1);
    printf("%zu seeds, %lu mutations of each, seed %llu\n", file_count, mutations, (unsigned long long)seed);
    for (size_t i = 0; i < file_count; i++) {
        free(files[i].data);
        free(files[i].name);
    }
    return 0;
}
