/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* source.c - turns the entries of a walk into records, and files into octets of the ring. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xfer/hole.h"
#include "tools/xfer/source.h"

enum { PIECE = 1 << 17 }; /* octets read at once: still in the cache when they are hashed */

int source_open(struct xfer_source *source, struct xfer_link *link, struct xfer_tally *tally,
                const struct source_attr *attr)
{
    *source = (struct xfer_source){
        .link = link,
        .tally = tally,
        .counting = attr->count,
        .put_total = attr->put_total,
        .resume = attr->resume,
        .checksum = attr->checksum,
        .dry = attr->dry,
        .list = attr->list,
        .top = attr->top,
    };
    /* The target of a symbolic link can be opened only during the walk. */
    int64_t open_from = attr->list ? WALK_OPEN_NONE : attr->links == LINKS_FOLLOW ? 0 : XFER_RESUMABLE;
    walk_init(&source->walk, attr->top, open_from);
    walk_init(&source->count, attr->count ? attr->top : -1, WALK_OPEN_NONE);
    source->walk.links = source->count.links = attr->links;
    source->walk.flat = source->count.flat = attr->flat;
    source->ahead = calloc(SOURCE_AHEAD, sizeof(*source->ahead));
    source->walks = calloc(SOURCE_AHEAD, sizeof(*source->walks));
    if (!digest_open(&source->digest) || !source->ahead || !source->walks)
        return fail(EXIT_FAILED, "out of memory");
    for (unsigned i = 0; i < SOURCE_AHEAD; i++)
        source->ahead[i].walk = &source->walks[i];
    return 0;
}

void source_close(struct xfer_source *source)
{
    for (; source->tail != source->head; source->tail++) {
        int fd = source->walks[source->tail % SOURCE_AHEAD].fd;
        if (fd >= 0)
            close(fd);
    }
    walk_fini(&source->walk);
    walk_fini(&source->count);
    free(source->ahead);
    free(source->walks);
    digest_close(&source->digest);
    *source = (struct xfer_source){0};
}

/* --- ahead of the data --------------------------------------------------------------------------------------- */

static void count_some(struct xfer_source *source)
{
    enum { AT_ONCE = 256 };
    struct xfer_tally *tally = source->tally;
    struct walk_entry *entry = &source->walks[0]; /* not used before counting has ended */
    for (int i = 0; i < AT_ONCE; i++) {
        walk_next(&source->count, entry);
        if (entry->fd >= 0)
            close(entry->fd);
        entry->fd = -1;
        if (entry->kind == WALK_FILE) {
            tally->total_files++;
            tally->total_octets += entry->size;
        } else if (entry->kind == WALK_OVER) {
            tally->total_known = true;
            source->counting = false;
            if (source->put_total)
                xfer_link_put(source->link, &(struct xfer_record){.type = XFER_TOTAL,
                                                                  .size = tally->total_octets,
                                                                  .count = tally->total_files});
            return;
        }
    }
}

static struct xfer_record record_of(const struct source_entry *entry, enum xfer_type type)
{
    return (struct xfer_record){
        .type = type,
        .id = entry->id,
        .mode = entry->walk->mode,
        .size = entry->walk->size,
        .seconds = entry->walk->seconds,
        .nanoseconds = entry->walk->nanoseconds,
        .path = entry->walk->path,
        .name = entry->walk->target,
    };
}

/* Offers the next entry of the queue to the sink, if necessary. Returns false if it has to wait. */
static bool offer_next(struct xfer_source *source)
{
    struct source_entry *entry = &source->ahead[source->asked % SOURCE_AHEAD];
    bool large = entry->walk->size >= XFER_RESUMABLE, named = !*entry->walk->path;
    bool offered =
        source->resume && entry->walk->kind == WALK_FILE && (!named || large || source->checksum || source->dry);
    bool hashed = offered && (source->checksum || large || named);
    if (hashed && source->offers == XFER_OFFERS)
        return false;
    if (offered) {
        struct xfer_record offer = record_of(entry, XFER_OFFER);
        xfer_link_put(source->link, &offer);
    }
    entry->offered = offered;
    entry->hashed = hashed;
    source->offers += hashed;
    source->asked++;
    return true;
}

/* Takes the next entry of the walk into the queue. */
static void look_ahead(struct xfer_source *source)
{
    struct source_entry *entry = &source->ahead[source->head % SOURCE_AHEAD];
    walk_next(&source->walk, entry->walk);
    source->tally->left_out = source->walk.skipped;
    if (entry->walk->kind == WALK_OVER) {
        source->walked = true;
        return;
    }
    source->head++;
    entry->offered = entry->hashed = entry->answered = entry->same = false;
    entry->id = ++source->last_id;
    entry->have = 0;
}

/* --- one file ------------------------------------------------------------------------------------------------ */

static void drop_oldest(struct xfer_source *source)
{
    struct source_entry *entry = &source->ahead[source->tail % SOURCE_AHEAD];
    if (entry->walk->fd >= 0)
        close(entry->walk->fd);
    entry->walk->fd = -1;
    source->offers -= entry->hashed;
    source->put_id = entry->id;
    source->tail++;
    source->phase = SOURCE_NEXT;
}

/* Starts a file from its beginning, with an empty digest. */
static void rewind_file(struct xfer_source *source, const struct source_entry *entry)
{
    digest_reset(&source->digest);
    source->offset = 0;
    source->data_end = entry->walk->stored < entry->walk->size ? 0 : entry->walk->size;
}

/* Starts to send a file. Its first `source->offset` octets are hashed and need not be sent. */
static void start_data(struct xfer_source *source, const struct source_entry *entry)
{
    struct xfer_record record = record_of(entry, XFER_FILE);
    uint64_t left = entry->walk->size - source->offset;
    record.offset = source->offset;
    record.count = left < entry->walk->stored ? left : entry->walk->stored;
    xfer_link_put(source->link, &record);
    source->tally->resumed += source->offset;
    source->refused = false;
    source->phase = SOURCE_DATA;
    if (source->offset)
        tally_report(source->tally, TALLY_RESUMED, entry->walk->path, XFER_OK, source->offset);
}

/* Sends no data of a file, because the sink has it, or because of a dry run. */
static void skip_file(struct xfer_source *source, const struct source_entry *entry, bool same)
{
    struct xfer_record record = record_of(entry, XFER_SKIP);
    record.flags = same ? XFER_SAME : 0;
    xfer_link_put(source->link, &record);
    if (same) {
        source->tally->unchanged_octets += record.size;
    } else {
        source->tally->octets += record.size;
        tally_report(source->tally, TALLY_WOULD, record.path, XFER_OK, record.size);
    }
    drop_oldest(source);
}

static void put_trouble(struct xfer_source *source, const struct source_entry *entry, enum xfer_result result)
{
    struct xfer_record record = record_of(entry, XFER_TROUBLE);
    record.result = (uint16_t)result;
    xfer_link_put(source->link, &record);
    drop_oldest(source);
}

static void source_end_file(struct xfer_source *source, const struct source_entry *entry, enum xfer_result result)
{
    struct xfer_record record = {.type = XFER_FILE_END, .id = entry->id, .result = (uint16_t)result};
    digest_value(&source->digest, record.digest);
    xfer_link_put(source->link, &record);
    drop_oldest(source);
}

/* Hashes the hole at source->offset. Returns its length; 0: there is no hole. */
static uint64_t pass_hole(struct xfer_source *source, const struct source_entry *entry, uint64_t until)
{
    uint64_t n = 0;
    if (source->offset >= source->data_end && source->offset < until)
        n = hole_at(entry->walk->fd, source->offset, until, &source->data_end);
    digest_zeros(&source->digest, n);
    source->offset += n;
    return n;
}

/* Reads the next piece into the ring and hashes it. Returns its length, 0 if there is no room now, or a negative enum
 * xfer_result. */
static int64_t read_piece(struct xfer_source *source, const struct source_entry *entry, uint64_t until)
{
    until = until < source->data_end ? until : source->data_end;
    size_t n = until - source->offset < PIECE ? (size_t)(until - source->offset) : PIECE;
    uint8_t *at = xfer_link_space(source->link, &n);
    if (!at)
        return 0;
    ssize_t got;
    do
        got = pread(entry->walk->fd, at, n, (off_t)source->offset);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return -(int64_t)(got ? xfer_result_of(errno) : XFER_CHANGED);
    digest_octets(&source->digest, at, (size_t)got);
    source->offset += (uint64_t)got;
    return got;
}

/* What the sink has differs: sends the file from its beginning. */
static void start_again(struct xfer_source *source, const struct source_entry *entry)
{
    if (source->dry) {
        skip_file(source, entry, false);
        return;
    }
    if (!entry->same)
        tally_report(source->tally, TALLY_RESTART, entry->walk->path, XFER_MISMATCH, entry->have);
    rewind_file(source, entry);
    start_data(source, entry);
}

/* Reads and hashes what the sink has. The ring only serves as a buffer: nothing of this part is sent. */
static bool read_prefix(struct xfer_source *source, const struct source_entry *entry)
{
    uint8_t digest[XFER_DIGEST];
    int64_t got = (int64_t)pass_hole(source, entry, entry->have);
    if (!got)
        got = read_piece(source, entry, entry->have);
    if (!got)
        return false;
    if (got > 0 && source->offset < entry->have)
        return true;
    digest_value(&source->digest, digest);
    if (got < 0 || memcmp(digest, entry->have_digest, XFER_DIGEST))
        start_again(source, entry);
    else if (entry->same)
        skip_file(source, entry, true);
    else
        start_data(source, entry);
    return true;
}

/* Whether the file is unchanged since it was opened; otherwise its copy would be undefined. */
static enum xfer_result still_same(const struct source_entry *entry)
{
    struct stat st;
    if (fstat(entry->walk->fd, &st))
        return xfer_result_of(errno);
    bool same = (uint64_t)st.st_size == entry->walk->size && st.st_mtim.tv_sec == entry->walk->seconds &&
                (uint32_t)st.st_mtim.tv_nsec == entry->walk->nanoseconds;
    return same ? XFER_OK : XFER_CHANGED;
}

/* Puts a DATA record about what was read, if there is enough of it, or with `all` if there is anything. */
static void put_read(struct xfer_source *source, bool all)
{
    struct xfer_link *link = source->link;
    if (link->filled != link->put && (all || link->filled - link->put > XFER_DATA - PIECE))
        xfer_link_put_data(link);
}

static void put_hole(struct xfer_source *source, uint64_t octets)
{
    xfer_link_put(source->link, &(struct xfer_record){.type = XFER_HOLE_HERE, .size = octets});
    source->tally->hole_octets += octets;
}

static bool read_data(struct xfer_source *source, const struct source_entry *entry)
{
    struct xfer_link *link = source->link;
    uint64_t size = entry->walk->size, hole = 0;
    int64_t got = 0;
    if (source->offset < size && !source->refused) {
        /* A hole may be put only when DATA records describe everything before it. */
        if (link->filled == link->put && (hole = pass_hole(source, entry, size)) != 0) {
            put_hole(source, hole);
            return true;
        }
        if (source->offset < source->data_end)
            got = read_piece(source, entry, size);
        if (!got && source->offset < source->data_end)
            return false;
    }
    if (got < 0 || source->refused) {
        xfer_link_unfill(link);
        source_end_file(source, entry, source->refused ? XFER_ABORTED : (enum xfer_result) - got);
        return true;
    }
    xfer_link_fill(link, (size_t)got);
    source->tally->octets += (uint64_t)got;
    bool last = source->offset == size;
    put_read(source, last || source->offset == source->data_end);
    if (last && xfer_link_can_put(link))
        source_end_file(source, entry, still_same(entry));
    return true;
}

/* --- entries ------------------------------------------------------------------------------------------------- */

static bool begin_file(struct xfer_source *source, struct source_entry *entry)
{
    if (entry->offered && !entry->answered)
        return false;
    if ((entry->same && !entry->have) || (source->dry && !entry->same)) {
        skip_file(source, entry, entry->same);
        return true;
    }
    enum xfer_result result = walk_open(source->top, entry->walk);
    if (result) {
        put_trouble(source, entry, result);
        return true;
    }
    rewind_file(source, entry);
    if (entry->have)
        source->phase = SOURCE_PREFIX;
    else
        start_data(source, entry);
    return true;
}

static void put_other(struct xfer_source *source, const struct source_entry *entry)
{
    static const enum xfer_type types[] = {
        [WALK_DIRECTORY] = XFER_DIRECTORY,
        [WALK_DIRECTORY_END] = XFER_DIRECTORY_END,
        [WALK_LINK] = XFER_LINK,
    };
    if (entry->walk->kind == WALK_TROUBLE) {
        put_trouble(source, entry, entry->walk->result);
        return;
    }
    struct xfer_record record = record_of(entry, types[entry->walk->kind]);
    xfer_link_put(source->link, &record);
    drop_oldest(source);
}

static bool send_oldest(struct xfer_source *source)
{
    struct source_entry *entry = &source->ahead[source->tail % SOURCE_AHEAD];
    if (source->phase == SOURCE_PREFIX)
        return read_prefix(source, entry);
    if (source->phase == SOURCE_DATA)
        return read_data(source, entry);
    if (entry->walk->kind == WALK_FILE)
        return begin_file(source, entry);
    put_other(source, entry);
    return true;
}

/* Puts a line of a list, which is not answered. */
static void put_line(struct xfer_source *source)
{
    static const enum xfer_type types[] = {
        [WALK_FILE] = XFER_FILE,
        [WALK_DIRECTORY] = XFER_DIRECTORY,
        [WALK_LINK] = XFER_LINK,
        [WALK_TROUBLE] = XFER_TROUBLE,
    };
    struct source_entry *entry = &source->ahead[0];
    walk_next(&source->walk, entry->walk);
    if (entry->walk->fd >= 0)
        close(entry->walk->fd);
    entry->walk->fd = -1;
    source->walked = entry->walk->kind == WALK_OVER;
    bool top = entry->walk->kind == WALK_DIRECTORY && !*entry->walk->path;
    if (source->walked || top || entry->walk->kind == WALK_DIRECTORY_END)
        return;
    struct xfer_record record = record_of(entry, XFER_ENTRY);
    record.flags = (uint16_t)types[entry->walk->kind];
    if (entry->walk->kind == WALK_TROUBLE)
        record = (struct xfer_record){
            .type = XFER_TROUBLE, .result = (uint16_t)entry->walk->result, .path = entry->walk->path};
    xfer_link_put(source->link, &record);
}

bool source_step(struct xfer_source *source)
{
    if (source->ended || !xfer_link_can_put(source->link))
        return false;
    if (source->counting) {
        count_some(source);
        return true;
    }
    if (source->list && !source->walked) {
        put_line(source);
        return true;
    }
    if (source->asked != source->head && offer_next(source))
        return true;
    if (source->asked == source->head && !source->walked && source->head - source->tail < SOURCE_AHEAD) {
        look_ahead(source);
        return true;
    }
    if (source->tail != source->head)
        return send_oldest(source);
    xfer_link_put(source->link, &(struct xfer_record){.type = XFER_END});
    source->ended = true;
    return true;
}

bool source_over(const struct xfer_source *source)
{
    return source->ended && source->done_id == source->last_id;
}

/* --- what the sink says -------------------------------------------------------------------------------------- */

/* The sink may say that it has the file only if it compared all octets, or if size and time are enough. */
static bool source_believes(const struct xfer_source *source, const struct source_entry *entry,
                            const struct xfer_record *have)
{
    bool octets = entry->walk->size && (source->checksum || !*entry->walk->path);
    return !(have->flags & XFER_SAME) || have->offset == entry->walk->size || (!have->offset && !octets);
}

static void take_have(struct xfer_source *source, const struct xfer_record *record)
{
    for (unsigned i = source->tail; i != source->head; i++) {
        struct source_entry *entry = &source->ahead[i % SOURCE_AHEAD];
        if (entry->id != record->id || !entry->offered || entry->answered)
            continue;
        if (record->offset > (entry->hashed ? entry->walk->size : 0) || !source_believes(source, entry, record))
            break;
        entry->answered = true;
        entry->same = record->flags & XFER_SAME;
        entry->have = record->offset;
        memcpy(entry->have_digest, record->digest, XFER_DIGEST);
        return;
    }
    xfer_link_blame(source->link, "an unexpected HAVE");
}

/* Entries are acknowledged in order. Before all of a file is sent, only a failure may be acknowledged. */
static void take_done(struct xfer_source *source, const struct xfer_record *record)
{
    bool under_way = source->phase == SOURCE_DATA && source->ahead[source->tail % SOURCE_AHEAD].id == record->id;
    if (record->id != source->done_id + 1 || (under_way ? !record->result : record->id > source->put_id)) {
        xfer_link_blame(source->link, "DONE out of turn");
        return;
    }
    source->done_id++;
    tally_entry(source->tally, record->flags, record->path,
                record->result < XFER_RESULTS ? (enum xfer_result)record->result : XFER_IO);
    source->refused = under_way;
}

void source_take(struct xfer_source *source, const struct xfer_record *record)
{
    if (record->type == XFER_HAVE)
        take_have(source, record);
    else if (record->type == XFER_DONE)
        take_done(source, record);
    else
        xfer_link_blame(source->link, "a record that a sink does not send");
}
