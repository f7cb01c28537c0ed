/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer_sink.h - for tests of the sink: the other end of its link, which tells it records. */
#ifndef TESTS_UNIT_XFER_SINK_H
#define TESTS_UNIT_XFER_SINK_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "tools/xfer/digest.c"
#include "tools/xfer/file.c"
#include "tools/xfer/hole.c"
#include "tools/xfer/offer.c"
#include "tools/xfer/entry_order.c"
#include "tools/xfer/path.c"
#include "tools/xfer/sink.c"
#include "tools/xfer/store.c"
#include "tools/xfer/temp.c"
#include "tools/xfer/text.c"

#include <cmocka.h> /* last: its fail() is another */

/* The link, of which the test is the other end. */
static struct xfer_record said; /* the last record that the sink put */
static const uint8_t *octets;   /* of the next DATA */
static struct xfer_link the_link;
static struct xfer_tally tally;
static struct xfer_sink sink;
static char top[] = "/tmp/rddp-sink-XXXXXX";
static int base;

bool xfer_link_can_put(struct xfer_link *l)
{
    return l->state == LINK_UP;
}

void xfer_link_put(struct xfer_link *l, const struct xfer_record *record)
{
    (void)l;
    said = *record;
}

bool xfer_link_blame(struct xfer_link *l, const char *what)
{
    l->state = LINK_BROKEN;
    snprintf(l->trouble, sizeof(l->trouble), "%s", what);
    return false;
}

bool xfer_link_take(struct xfer_link *l, uint32_t length, struct link_piece piece[2])
{
    (void)l;
    piece[0] = (struct link_piece){octets, length};
    piece[1] = (struct link_piece){0};
    return true;
}

static inline int remove_below(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);

    for (const struct dirent *entry; names && (entry = readdir(names));) {
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            remove_below(fd, entry->d_name);
    }
    if (names)
        closedir(names);
    return unlinkat(dir, name, names ? AT_REMOVEDIR : 0);
}

static inline int make_top(void **state)
{
    (void)state;
    strcpy(top + strlen(top) - 6, "XXXXXX");
    if (!mkdtemp(top))
        return -1;
    base = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return base < 0 || mkdirat(base, "copy", 0700) ? -1 : 0;
}

static inline int remove_top(void **state)
{
    (void)state;
    sink_close(&sink);
    close(base);
    return remove_below(AT_FDCWD, top);
}

/* Begins a copy whose contents go into the directory `copy`. */
static inline void begin(enum order_asked asked)
{
    const struct path_place place = {.base = openat(base, "copy", O_PATH | O_DIRECTORY | O_CLOEXEC)};

    sink_close(&sink);
    the_link = (struct xfer_link){.state = LINK_UP};
    tally = (struct xfer_tally){0};
    assert_true(place.base >= 0);
    sink_open(&sink, &the_link, &tally, &place);
    sink.order.asked = asked;
}

/* Gives the sink a record, and lets it finish its work. Returns the result of the entry, or XFER_PROTOCOL. */
static inline enum xfer_result tell(struct xfer_record record)
{
    said = (struct xfer_record){0};
    record.path = record.path ? record.path : "";
    record.name = record.name ? record.name : "";
    sink_take(&sink, &record);
    while (the_link.state == LINK_UP && sink_step(&sink))
        ;
    return the_link.state == LINK_UP ? (enum xfer_result)said.result : XFER_PROTOCOL;
}

static inline uint32_t next_id(void)
{
    return sink.last_id + 1;
}

static inline enum xfer_result tell_link(const char *path, const char *target)
{
    return tell((struct xfer_record){.type = XFER_LINK, .id = next_id(), .path = path, .name = target});
}

static inline enum xfer_result tell_directory(const char *path)
{
    return tell((struct xfer_record){.type = XFER_DIRECTORY, .id = next_id(), .path = path});
}

static inline void digest_of_file(const void *p, size_t n, uint64_t zeros, uint8_t value[XFER_DIGEST])
{
    struct file_digest digest;

    assert_true(digest_open(&digest));
    digest_octets(&digest, p, n);
    digest_zeros(&digest, zeros);
    digest_value(&digest, value);
    digest_close(&digest);
}

enum { TIME = 7 };

/* A file that begins with `n` octets, and is zeros from there on. */
static inline enum xfer_result tell_file(const char *path, const void *p, size_t n, uint64_t zeros)
{
    uint32_t id = next_id();
    struct xfer_record end = {.type = XFER_FILE_END, .id = id};
    enum xfer_result result = tell((struct xfer_record){
        .type = XFER_FILE, .id = id, .mode = 0644, .size = n + zeros, .seconds = TIME, .path = path});

    octets = p;
    if (n && !result)
        result = tell((struct xfer_record){.type = XFER_DATA_HERE, .length = (uint32_t)n});
    if (zeros && !result)
        result = tell((struct xfer_record){.type = XFER_HOLE_HERE, .size = zeros});
    digest_of_file(p, n, zeros, end.digest);
    enum xfer_result last = tell(end);
    return result ? result : last;
}

static inline enum xfer_result tell_end(void)
{
    return tell((struct xfer_record){.type = XFER_END});
}

static inline bool exists(const char *path)
{
    struct stat st;

    return !fstatat(base, path, &st, AT_SYMLINK_NOFOLLOW);
}

static inline enum xfer_result tell_offer(const char *path, uint64_t size)
{
    return tell((struct xfer_record){.type = XFER_OFFER, .id = next_id(), .size = size, .seconds = TIME, .path = path});
}

static inline enum xfer_result tell_same(const char *path, uint64_t size)
{
    return tell((struct xfer_record){.type = XFER_SKIP,
                                     .id = next_id(),
                                     .flags = XFER_SAME,
                                     .mode = 0644,
                                     .size = size,
                                     .seconds = TIME,
                                     .path = path});
}

static inline void init_sink(void)
{
    sink.place.base = sink.parent.fd = sink.ahead.fd = sink.file.fd = sink.file.parent = -1;
    offers_init(&sink.offers);
}

#endif
