/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listing.c - a directory as HTML: names sorted, nothing in them taken for anything but a name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/codec.h"
#include "http/listing.h"
#include "tools/xfer/xfer.h"

/* ENTRY_MAX: a name, encoded and escaped, in its tags. RECORD_MIN: octets of the shortest name that is kept. */
enum { ENTRY_MAX = 8 * XFER_NAME + 64, RECORD_MIN = 3 };
_Static_assert((int)ENTRY_MAX <= (int)HTTP_LISTING_STEP, "a line has space");

static unsigned sorts; /* listings that are sorted now */

/* --- a line -------------------------------------------------------------------------------------------------- */

/* Characters that need escaping in HTML. */
static size_t put_escaped(char *to, const char *name)
{
    size_t n = 0;
    for (; *name; name++) {
        if (*name == '<' || *name == '>' || *name == '&')
            n += (size_t)sprintf(to + n, "&%s;", *name == '<' ? "lt" : *name == '>' ? "gt" : "amp");
        else
            to[n++] = *name;
    }
    return n;
}

static size_t put_entry(char *to, const char *name, bool is_directory)
{
    char encoded[3 * XFER_NAME + 4], shown[XFER_TEXT];
    const char *slash = is_directory ? "/" : "";
    http_encode_path(encoded, sizeof(encoded), name);
    /* "./" in front: a name may have a colon, which would make its first part a scheme. */
    size_t n = (size_t)sprintf(to, "<a href=\"./%s%s\">", encoded, slash);
    n += put_escaped(to + n, xfer_printable(shown, name));
    return n + (size_t)sprintf(to + n, "%s</a><br>\n", slash);
}

/* --- sorted names -------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + *(const uint32_t *)a + 1, (const char *)text + *(const uint32_t *)b + 1);
}

/* Reads all names: an octet that says what it is, the name, a 0. False: they are too many, or memory is short. Memory
 * that no name reaches stays untouched, and takes none. */
static bool read_names(struct http_listing *listing)
{
    size_t used = 0;
    const struct dirent *entry;
    listing->text = malloc(HTTP_LISTING_MAX);
    listing->at = malloc(HTTP_LISTING_MAX / RECORD_MIN * sizeof(*listing->at));
    while (listing->text && listing->at && (entry = readdir(listing->names))) {
        size_t n = strlen(entry->d_name) + RECORD_MIN - 1;
        if (entry->d_name[0] == '.')
            continue;
        if (n > HTTP_LISTING_MAX - used)
            return false;
        listing->text[used] = entry->d_type == DT_DIR ? '/' : ' ';
        memcpy(listing->text + used + 1, entry->d_name, n - 1);
        listing->at[listing->count++] = (uint32_t)used;
        used += n;
    }
    return listing->text && listing->at;
}

static void drop_names(struct http_listing *listing)
{
    free(listing->text);
    free(listing->at);
    listing->text = NULL;
    listing->at = NULL;
    listing->count = 0;
}

int http_listing_open(struct http_listing *listing, int fd)
{
    *listing = (struct http_listing){.names = fdopendir(fd)};
    if (!listing->names) {
        close(fd);
        return -ENOMEM;
    }
    if (sorts == HTTP_LISTING_SORTS)
        return 0;
    if (read_names(listing)) {
        sorts++;
        qsort_r(listing->at, listing->count, sizeof(*listing->at), compare_names, listing->text);
    } else {
        drop_names(listing);
        rewinddir(listing->names);
    }
    return 0;
}

/* --- all of them --------------------------------------------------------------------------------------------- */

/* The next name, or NULL. */
static const char *next_name(struct http_listing *listing, bool *is_directory)
{
    if (listing->text) {
        const char *at = listing->next < listing->count ? listing->text + listing->at[listing->next++] : NULL;
        *is_directory = at && *at == '/';
        return at ? at + 1 : NULL;
    }
    const struct dirent *entry;
    do
        entry = readdir(listing->names);
    while (entry && entry->d_name[0] == '.');
    *is_directory = entry && entry->d_type == DT_DIR;
    return entry ? entry->d_name : NULL;
}

size_t http_listing_lines(struct http_listing *listing, char *to, size_t capacity)
{
    size_t n = 0;
    bool is_directory;
    while (n + ENTRY_MAX <= capacity) {
        const char *name = next_name(listing, &is_directory);
        if (!name)
            break;
        n += put_entry(to + n, name, is_directory);
    }
    return n;
}

void http_listing_close(struct http_listing *listing)
{
    if (listing->names)
        closedir(listing->names);
    sorts -= listing->text != NULL;
    drop_names(listing);
    listing->names = NULL;
}
