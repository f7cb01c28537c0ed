/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sink.c - creates directories, links and files from records, and answers each entry with its result. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xfer/sink.h"

enum { DIRECTORY_BITS = 01777, FILE_BITS = 0777 };

void sink_open(struct xfer_sink *sink, struct xfer_link *link, struct xfer_tally *tally, const struct path_place *place)
{
    *sink = (struct xfer_sink){.link = link, .tally = tally, .place = *place, .resume = true};
    sink->parent.fd = sink->ahead.fd = -1;
    sink->file.fd = sink->file.parent = -1;
    offers_init(&sink->offers);
}

void sink_close(struct xfer_sink *sink)
{
    offers_drop(&sink->offers, UINT32_MAX);
    file_drop(&sink->file, sink->resume && !sink->file_result && sink->file.stamp.size >= XFER_RESUMABLE);
    const int fds[] = {sink->parent.fd, sink->ahead.fd, sink->place.base};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    sink->parent.fd = sink->ahead.fd = sink->place.base = -1;
}

/* --- names --------------------------------------------------------------------------------------------------- */

/* Sets sink->path from the source's path. Returns false if the peer may not send such a path. */
static bool compose(struct xfer_sink *sink, const char *path)
{
    if (xfer_path_check(path))
        return xfer_link_blame(sink->link, "an invalid path");
    const char *top = sink->place.top;
    snprintf(sink->path, sizeof(sink->path), "%s%s%s", top, *top && *path ? "/" : "", path);
    char *slash = strrchr(sink->path, '/');
    sink->name = slash ? slash + 1 : sink->path;
    return true;
}

/* Opens the directory of sink->name. Nothing that is copied goes through a symbolic link: otherwise the
 * path of a link would not show what it leads to. */
static enum xfer_result sink_open_parent(struct xfer_sink *sink, struct sink_directory *parent)
{
    size_t n = (size_t)(sink->name - sink->path);
    n -= n > 0; /* the slash */
    if (n > XFER_PATH)
        return XFER_TOO_LONG;
    if (is_temp(sink->name)) /* it could be another client's */
        return XFER_BAD_NAME;
    if (parent->fd >= 0 && strlen(parent->path) == n && !memcmp(parent->path, sink->path, n))
        return XFER_OK;
    if (parent->fd >= 0)
        close(parent->fd);
    memcpy(parent->path, sink->path, n);
    parent->path[n] = 0;
    parent->fd = path_open_plain(sink->place.base, parent->path, O_PATH | O_DIRECTORY);
    return parent->fd < 0 ? xfer_result_of(-parent->fd) : XFER_OK;
}

static void sink_answer(struct xfer_sink *sink, enum xfer_type type, uint32_t id, const char *path,
                        enum xfer_result result)
{
    tally_entry(sink->tally, type, path, result);
    xfer_link_put(sink->link, &(struct xfer_record){.type = XFER_DONE,
                                                    .id = id,
                                                    .flags = (uint16_t)type,
                                                    .result = (uint16_t)result,
                                                    .path = result ? path : ""});
}

/* Begins an entry. IDs count up by one, and a file must have ended before. */
static bool begin_entry(struct xfer_sink *sink, const struct xfer_record *record)
{
    if (record->id != sink->last_id + 1 || sink->file_id || sink->ended || sink->list)
        return xfer_link_blame(sink->link, "an entry out of turn");
    sink->last_id = record->id;
    if (!compose(sink, record->path))
        return false;
    if (!order_admits(&sink->order, record->type, record->path))
        return xfer_link_blame(sink->link, "something else than what was asked for");
    return true;
}

/* --- directories and links ----------------------------------------------------------------------------------- */

/* The directory must be writable while its contents are received; DIRECTORY_END sets its mode. */
static enum xfer_result sink_make_directory(struct xfer_sink *sink)
{
    if (!*sink->path || sink->dry)
        return XFER_OK;
    enum xfer_result result = sink_open_parent(sink, &sink->parent);
    if (result || !mkdirat(sink->parent.fd, sink->name, 0700))
        return result;
    if (errno != EEXIST)
        return xfer_result_of(errno);
    int fd = path_open_plain(sink->place.base, sink->path, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return xfer_result_of(-fd);
    close(fd);
    return XFER_OK;
}

/* The directory into which the contents are copied is not part of the copy: its mode and time stay. */
static enum xfer_result finish_directory(struct xfer_sink *sink, const struct xfer_record *record)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)record->seconds, .tv_nsec = (long)record->nanoseconds},
    };
    if (!*sink->path || sink->dry)
        return XFER_OK;
    int fd = path_open_plain(sink->place.base, sink->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0)
        return xfer_result_of(-fd);
    bool failed = fchmod(fd, record->mode & DIRECTORY_BITS) || futimens(fd, times);
    enum xfer_result result = failed ? xfer_result_of(errno) : XFER_OK;
    close(fd);
    return result;
}

/* Makes the symbolic link under a name of its own, which then replaces what was there. */
static enum xfer_result replace_by_link(int dir, const char *name, const char *target, const struct timespec times[2])
{
    char temp[XFER_NAME + 1];
    if (!temp_unique(temp, name))
        return XFER_IO;
    if (symlinkat(target, dir, temp))
        return xfer_result_of(errno);
    if (!utimensat(dir, temp, times, AT_SYMLINK_NOFOLLOW) && !renameat(dir, temp, dir, name))
        return XFER_OK;
    enum xfer_result result = xfer_result_of(errno);
    unlinkat(dir, temp, 0);
    return result;
}

static enum xfer_result sink_make_link(struct xfer_sink *sink, const struct xfer_record *record)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)record->seconds, .tv_nsec = (long)record->nanoseconds},
    };
    if (!*record->path || !xfer_link_ok(record->path, record->name)) {
        sink->tally->left_out += sink->skip_links;
        sink->tally->links -= sink->skip_links; /* it will be counted as a link */
        return sink->skip_links ? XFER_OK : XFER_LINK_OUT;
    }
    if (sink->dry)
        return XFER_OK;
    enum xfer_result result = sink_open_parent(sink, &sink->parent);
    if (result)
        return result;
    if (symlinkat(record->name, sink->parent.fd, sink->name))
        return errno == EEXIST ? replace_by_link(sink->parent.fd, sink->name, record->name, times)
                               : xfer_result_of(errno);
    return utimensat(sink->parent.fd, sink->name, times, AT_SYMLINK_NOFOLLOW) ? xfer_result_of(errno) : XFER_OK;
}

static void take_entry(struct xfer_sink *sink, const struct xfer_record *record)
{
    if (!begin_entry(sink, record))
        return;
    enum xfer_result result;
    if (record->type == XFER_DIRECTORY)
        result = sink_make_directory(sink);
    else if (record->type == XFER_DIRECTORY_END)
        result = finish_directory(sink, record);
    else
        result = sink_make_link(sink, record);
    sink_answer(sink, record->type, record->id, record->path, result);
}

/* --- files --------------------------------------------------------------------------------------------------- */

static struct path_stamp stamp_of(const struct xfer_record *record)
{
    return (struct path_stamp){.size = record->size, .seconds = record->seconds, .nanoseconds = record->nanoseconds};
}

static void put_have(struct xfer_sink *sink, const struct sink_offer *offer, uint32_t id)
{
    struct xfer_record have = {.type = XFER_HAVE, .id = id};
    if (offer) {
        have.flags = offer->part.whole ? XFER_SAME : 0;
        have.offset = offer->part.length;
        digest_value(&offer->part.digest, have.digest);
    }
    xfer_link_put(sink->link, &have);
}

/* A file whose octets must be read occupies an offer until its entry comes. */
static void compare_octets(struct xfer_sink *sink, const struct xfer_record *record, const struct path_stamp *stamp)
{
    struct sink_offer *offer = offers_unused(&sink->offers);
    if (!offer) {
        xfer_link_blame(sink->link, "an offer too many");
    } else if (part_find(&offer->part, sink->ahead.fd, sink->name, stamp)) {
        offer->id = record->id;
        memcpy(offer->path, record->path, strlen(record->path) + 1);
        offer->stamp = *stamp;
        sink->hashing = offer;
    } else {
        put_have(sink, NULL, record->id);
    }
}

/* Whether size and time do not show that a file is the same. Two files may have the same time within the kernel's
 * resolution, so a file that the user named himself, and that may have another name here, is compared. */
static bool sink_compares(const struct xfer_sink *sink, const struct xfer_record *record)
{
    return record->size && (sink->checksum || !*record->path);
}

/* An offer comes before its entry, so the directory of the file may not exist yet. */
static void sink_take_offer(struct xfer_sink *sink, const struct xfer_record *record)
{
    const struct path_stamp stamp = stamp_of(record);
    if (record->id <= sink->last_id || record->id <= sink->last_offer || sink->list) {
        xfer_link_blame(sink->link, "an offer out of turn");
        return;
    }
    sink->last_offer = record->id;
    if (!compose(sink, record->path))
        return;
    bool look = sink->resume && !sink_open_parent(sink, &sink->ahead) && *sink->name;
    bool octets = sink_compares(sink, record);
    if (look && !octets && file_is(sink->ahead.fd, sink->name, &stamp))
        xfer_link_put(sink->link, &(struct xfer_record){.type = XFER_HAVE, .flags = XFER_SAME, .id = record->id});
    else if (look && (octets || record->size >= XFER_RESUMABLE))
        compare_octets(sink, record, &stamp);
    else
        put_have(sink, NULL, record->id);
}

bool sink_step(struct xfer_sink *sink)
{
    struct sink_offer *offer = sink->hashing;
    if (!offer || !xfer_link_can_put(sink->link))
        return false;
    int more = part_hash(&offer->part, sink->buffer);
    if (more > 0)
        return true;
    put_have(sink, more < 0 ? NULL : offer, offer->id);
    if (more < 0) {
        part_drop(&offer->part);
        offer->id = 0;
    }
    sink->hashing = NULL;
    return true;
}

/* `type` is XFER_TROUBLE if the source failed. */
static void sink_end_file(struct xfer_sink *sink, enum xfer_type type, enum xfer_result result)
{
    sink->file_result = result;
    sink_answer(sink, type, sink->file_id, sink->file_path, result);
}

static void sink_begin_file(struct xfer_sink *sink, const struct xfer_record *record, struct file_part *part)
{
    const struct file_new new = {
        .name = sink->name, .stamp = stamp_of(record), .mode = record->mode, .data = record->count};
    memcpy(sink->file_path, record->path, strlen(record->path) + 1);
    sink->file_id = record->id;
    sink->file_result = *sink->name ? sink_open_parent(sink, &sink->parent) : XFER_IS_DIRECTORY;
    if (!sink->file_result)
        sink->file_result = file_open(&sink->file, sink->parent.fd, &new, part);
    sink->file.sync = sink->sync;
    offers_drop(&sink->offers, record->id);
    sink->tally->resumed += record->offset;
    if (record->offset)
        tally_report(sink->tally, TALLY_RESUMED, record->path, XFER_OK, record->offset);
    if (sink->file_result)
        sink_end_file(sink, XFER_FILE, sink->file_result);
}

/* Finds the offer of this entry. Returns false if another file was offered. */
static bool find_offer(struct xfer_sink *sink, const struct xfer_record *record, struct sink_offer **offer)
{
    const struct path_stamp stamp = stamp_of(record);
    *offer = offers_find(&sink->offers, record->id);
    if (*offer && !offer_is_of(*offer, record->path, &stamp))
        return xfer_link_blame(sink->link, "another file than it offered");
    return true;
}

static void take_file(struct xfer_sink *sink, const struct xfer_record *record)
{
    struct sink_offer *offer;
    if (!begin_entry(sink, record) || !find_offer(sink, record, &offer))
        return;
    struct file_part *part = offer && record->offset ? &offer->part : NULL;
    if (sink->dry || (part ? part->length : 0) != record->offset) {
        xfer_link_blame(sink->link, "a file resumed at an unknown offset, or in a dry run");
        return;
    }
    sink_begin_file(sink, record, part);
}

/* Checks again that the file is the same as when it was offered. */
static enum xfer_result keep_file(struct xfer_sink *sink, const struct xfer_record *record,
                                  const struct sink_offer *offer)
{
    const struct path_stamp stamp = stamp_of(record);
    struct stat st;
    enum xfer_result result = sink_open_parent(sink, &sink->parent);
    if (result)
        return result;
    if (!file_is(sink->parent.fd, sink->name, &stamp) ||
        (offer && !path_is(sink->parent.fd, sink->name, offer->part.fd)))
        return XFER_CHANGED;
    bool failed = fstatat(sink->parent.fd, sink->name, &st, AT_SYMLINK_NOFOLLOW) ||
                  ((st.st_mode & 07777) != (record->mode & FILE_BITS) &&
                   fchmodat(sink->parent.fd, sink->name, record->mode & FILE_BITS, AT_SYMLINK_NOFOLLOW));
    return failed ? xfer_result_of(errno) : XFER_OK;
}

static void take_skip(struct xfer_sink *sink, const struct xfer_record *record)
{
    struct sink_offer *offer;
    bool same = record->flags & XFER_SAME;
    if (!begin_entry(sink, record) || !find_offer(sink, record, &offer))
        return;
    bool compared = offer && offer->part.whole;
    if (same ? sink_compares(sink, record) && !compared : !sink->dry) {
        xfer_link_blame(sink->link, "a file without its data");
        return;
    }
    enum xfer_result result = sink->dry ? XFER_OK : keep_file(sink, record, compared ? offer : NULL);
    offers_drop(&sink->offers, record->id);
    if (same) {
        sink->tally->unchanged_octets += record->size;
    } else {
        sink->tally->octets += record->size;
        tally_report(sink->tally, TALLY_WOULD, record->path, XFER_OK, record->size);
    }
    sink_answer(sink, same ? XFER_SKIP : XFER_FILE, record->id, record->path, result);
}

/* After a failure the source sends data until it learns of it: these are not written. */
static void take_data(struct xfer_sink *sink, const struct xfer_record *record)
{
    struct link_piece piece[2];
    if (!sink->file_id) {
        xfer_link_blame(sink->link, "DATA outside of a file");
        return;
    }
    if (!xfer_link_take(sink->link, record->length, piece))
        return;
    sink->tally->octets += record->length;
    enum xfer_result result = XFER_OK;
    for (int i = 0; i < 2 && !sink->file_result && !result; i++) {
        if (piece[i].at)
            result = file_write(&sink->file, piece[i].at, piece[i].length);
    }
    if (result == XFER_PROTOCOL) {
        xfer_link_blame(sink->link, "DATA beyond the end of its file");
    } else if (result) {
        file_drop(&sink->file, false);
        sink_end_file(sink, XFER_FILE, result);
    }
}

static void take_hole(struct xfer_sink *sink, const struct xfer_record *record)
{
    if (!sink->file_id) {
        xfer_link_blame(sink->link, "HOLE outside of a file");
        return;
    }
    if (!sink->file_result && file_hole(&sink->file, record->size))
        xfer_link_blame(sink->link, "HOLE of a length that is not allowed");
    sink->tally->hole_octets += record->size;
}

static void take_file_end(struct xfer_sink *sink, const struct xfer_record *record)
{
    if (!sink->file_id || record->id != sink->file_id) {
        xfer_link_blame(sink->link, "FILE_END outside of its file");
        return;
    }
    enum xfer_result result = record->result < XFER_RESULTS ? (enum xfer_result)record->result : XFER_IO;
    if (!sink->file_result && result) {
        file_drop(&sink->file, false);
        sink_end_file(sink, XFER_TROUBLE, result);
    } else if (!sink->file_result) {
        sink_end_file(sink, XFER_FILE, file_finish(&sink->file, record->digest));
    }
    sink->file_id = 0;
    sink->file_result = XFER_OK;
}

static void take_trouble(struct xfer_sink *sink, const struct xfer_record *record)
{
    enum xfer_result result = record->result < XFER_RESULTS ? (enum xfer_result)record->result : XFER_IO;
    if (!result) {
        xfer_link_blame(sink->link, "a TROUBLE without a reason");
    } else if (sink->list) {
        tally_entry(sink->tally, XFER_TROUBLE, record->path, result);
    } else if (begin_entry(sink, record)) {
        offers_drop(&sink->offers, record->id);
        sink_answer(sink, XFER_TROUBLE, record->id, record->path, result);
    }
}

static void sink_take_line(struct xfer_sink *sink, const struct xfer_record *record)
{
    if (!sink->list || !sink->tally->line || xfer_path_check(record->path))
        xfer_link_blame(sink->link, "an unexpected line of a list");
    else
        sink->tally->line(sink->tally->line_user, record);
}

static void take_end(struct xfer_sink *sink)
{
    if (sink->file_id || sink->ended)
        xfer_link_blame(sink->link, "END out of turn");
    else if (!sink->list && !order_may_end(&sink->order))
        xfer_link_blame(sink->link, "END before everything that was asked for has come");
    sink->ended = true;
}

void sink_take(struct xfer_sink *sink, const struct xfer_record *record)
{
    switch (record->type) {
    case XFER_TOTAL:
        sink->tally->total_files = record->count;
        sink->tally->total_octets = record->size;
        sink->tally->total_known = true;
        break;
    case XFER_OFFER:
        sink_take_offer(sink, record);
        break;
    case XFER_DIRECTORY:
    case XFER_DIRECTORY_END:
    case XFER_LINK:
        take_entry(sink, record);
        break;
    case XFER_FILE:
        take_file(sink, record);
        break;
    case XFER_SKIP:
        take_skip(sink, record);
        break;
    case XFER_DATA_HERE:
        take_data(sink, record);
        break;
    case XFER_HOLE_HERE:
        take_hole(sink, record);
        break;
    case XFER_ENTRY:
        sink_take_line(sink, record);
        break;
    case XFER_FILE_END:
        take_file_end(sink, record);
        break;
    case XFER_TROUBLE:
        take_trouble(sink, record);
        break;
    case XFER_END:
        take_end(sink);
        break;
    default:
        xfer_link_blame(sink->link, "a record that a source does not send");
    }
}
