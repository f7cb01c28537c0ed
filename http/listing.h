/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listing.h - the names in a directory as lines of HTML. One thread has all listings. */
#ifndef RDDP_HTTP_LISTING_H
#define RDDP_HTTP_LISTING_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_LISTING_MAX = 1 << 20, /* octets of names that are sorted; with more they come as the file system has them */
    HTTP_LISTING_SORTS = 16,    /* listings at once that are sorted */
    HTTP_LISTING_STEP = 4096,   /* the least space for the next lines */
};

struct http_listing {
    DIR *names; /* NULL: nothing is open */
    char *text; /* the names, a 0 behind each; NULL: not sorted */
    uint32_t *at;
    size_t count, next;
};

/* Lists the directory `fd`, which becomes the listing's. 0 or a negative errno, and then nothing is open. */
int http_listing_open(struct http_listing *listing, int fd);
/* Writes lines; returns their octets. 0: there are no more. */
size_t http_listing_lines(struct http_listing *listing, char *to, size_t capacity);
/* Safe when nothing is open. */
void http_listing_close(struct http_listing *listing);

#endif
