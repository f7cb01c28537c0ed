/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* list.c - `rddp cp --list`: prints a directory of the server, sorted, as lines or as one JSON object. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cp/cp.h"

/* Longer lists are sorted in batches of this size, since the server decides how long a list is. */
enum { BATCH_OCTETS = 64 << 20 };

struct cp_line {
    unsigned type; /* enum xfer_type */
    uint32_t mode, nanoseconds;
    uint64_t size;
    int64_t seconds;
    const char *target; /* in `path`, after its NUL */
    char path[];
};

static int by_path(const void *a, const void *b)
{
    return strcmp((*(struct cp_line *const *)a)->path, (*(struct cp_line *const *)b)->path);
}

static const char *mode_text(char text[SMALL_TEXT], const struct cp_line *line)
{
    static const char bits[] = "rwxrwxrwx";
    text[0] = line->type == XFER_DIRECTORY ? 'd' : line->type == XFER_LINK ? 'l' : '-';
    for (int i = 0; i < 9; i++)
        text[1 + i] = line->mode & (0400U >> i) ? bits[i] : '-';
    text[10] = 0;
    return text;
}

static const char *list_time_text(char text[SMALL_TEXT], int64_t seconds)
{
    time_t at = (time_t)seconds;
    struct tm tm;
    if (!localtime_r(&at, &tm) || !strftime(text, SMALL_TEXT, "%Y-%m-%d %H:%M", &tm))
        strcpy(text, "?");
    return text;
}

static void print_line(const struct cp_line *line)
{
    char mode[SMALL_TEXT], size[SMALL_TEXT] = "-", when[SMALL_TEXT], text[XFER_TEXT];
    if (line->type != XFER_DIRECTORY)
        snprintf(size, sizeof(size), "%" PRIu64, line->size);
    printf("%s %14s %s %s%s", mode_text(mode, line), size, list_time_text(when, line->seconds),
           xfer_printable(text, line->path), line->type == XFER_DIRECTORY ? "/" : "");
    if (line->type == XFER_LINK)
        printf(" -> %s", xfer_printable(text, line->target));
    putchar('\n');
}

static void list_print_json(struct json *json, const struct cp_line *line)
{
    static const char *const types[] = {
        [XFER_DIRECTORY] = "directory",
        [XFER_LINK] = "link",
        [XFER_FILE] = "file",
    };
    char text[XFER_TEXT];
    json_open(json, NULL, '{');
    json_text(json, "path", xfer_printable(text, line->path));
    json_text(json, "type", types[line->type]);
    json_u64(json, "mode", line->mode);
    json_u64(json, "size", line->size);
    json_real(json, "mtime", (double)line->seconds + line->nanoseconds / 1e9);
    json_text(json, "target", line->type == XFER_LINK ? xfer_printable(text, line->target) : NULL);
    json_close(json, '}');
}

static void list_flush(struct cp_list *list)
{
    if (list->count)
        qsort(list->line, list->count, sizeof(struct cp_line *), by_path);
    for (size_t i = 0; i < list->count; i++) {
        if (list->options->json)
            list_print_json(&list->json, list->line[i]);
        else
            print_line(list->line[i]);
        free(list->line[i]);
    }
    list->count = list->octets = 0;
}

static bool list_make_space(struct cp_list *list)
{
    size_t space = list->capacity ? 2 * list->capacity : 256;
    if (list->count < list->capacity)
        return true;
    struct cp_line **more = realloc(list->line, space * sizeof(struct cp_line *));
    if (!more)
        return false;
    list->line = more;
    list->capacity = space;
    return true;
}

static void list_take_line(void *user, const struct xfer_record *record)
{
    struct cp_list *list = user;
    char name[XFER_NAME + 1];
    last_name(name, list->remote->path);
    const char *path = *record->path ? record->path : name; /* the file that was asked for itself */
    size_t n = strlen(path) + 1, target = strlen(record->name) + 1;
    if (list->octets + n + target > BATCH_OCTETS || !list_make_space(list))
        list_flush(list);
    struct cp_line *line = list->count < list->capacity ? malloc(sizeof(*line) + n + target) : NULL;
    bool known = record->flags == XFER_FILE || record->flags == XFER_DIRECTORY || record->flags == XFER_LINK;
    if (!line) {
        warn("out of memory: %s left out of the list", path);
        return;
    }
    *line = (struct cp_line){.type = known ? record->flags : XFER_FILE,
                             .mode = record->mode,
                             .size = record->size,
                             .seconds = record->seconds,
                             .nanoseconds = record->nanoseconds,
                             .target = line->path + n};
    memcpy(line->path, path, n);
    memcpy(line->path + n, record->name, target);
    list->line[list->count++] = line;
    list->octets += sizeof(*line) + n + target;
}

void list_start(struct cp_list *list, struct xfer_tally *tally)
{
    tally->line = list_take_line;
    tally->line_user = list;
    list->json = (struct json){.out = stdout};
    if (list->options->json) {
        json_open(&list->json, NULL, '{');
        json_open(&list->json, "entries", '[');
    }
}

void list_end(struct cp_list *list, int code)
{
    list_flush(list);
    free(list->line);
    list->line = NULL;
    list->capacity = 0;
    if (list->options->json) {
        json_close(&list->json, ']');
        json_u64(&list->json, "exit_code", (uint64_t)code);
        json_close(&list->json, '}');
    }
    fflush(stdout);
}
