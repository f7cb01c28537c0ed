/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file.h - one file on its way in: a temporary, hashed while it is written, renamed when it is right. */
#ifndef TOOLS_XFER_FILE_H
#define TOOLS_XFER_FILE_H

#include <xxhash.h>

#include "tools/xfer/path.h"

/* What was found of a file: its first `length` octets, of which `hashed` are in the digest so far. */
struct file_part {
    int fd;     /* -1: nothing was found */
    bool whole; /* it is the file itself, under its own name; else its temporary, locked */
    uint64_t length, hashed;
    uint64_t data_end; /* there is no hole from `hashed` up to here */
    XXH3_state_t *digest;
};

/* Is the file `name` in `parent` a regular one of that stamp? */
bool file_is(int parent, const char *name, const struct path_stamp *stamp);

/* Looks in `parent` for the file of that stamp or its temporary. False if there is nothing to go on with. */
bool part_find(struct file_part *part, int parent, const char *name, const struct path_stamp *stamp);
/* Hashes a little more, with the help of `buffer`. 1: there is more, 0: all is hashed, or a negative errno. */
enum { PART_ROOM = 1 << 18 };
int part_hash(struct file_part *part, uint8_t buffer[PART_ROOM]);
void part_digest(const struct file_part *part, uint8_t digest[XFER_DIGEST]);
void part_drop(struct file_part *part);

struct file_in {
    int parent, fd; /* parent is its own descriptor; fd -1: none is open */
    char name[XFER_NAME + 1], temp[XFER_NAME + 1];
    bool whole; /* it is there already and open to read: only its mode is to be set */
    bool sync;  /* to disk before it gets its name; set it after file_open() */
    struct path_stamp stamp;
    uint32_t mode;
    uint64_t offset; /* octets that are written, or holes */
    XXH3_state_t *digest;
};

struct file_new {
    const char *name;
    struct path_stamp stamp;
    uint32_t mode;
    uint64_t data; /* octets to come that are not in holes */
};

/* `part` may be NULL; else its file is gone on with from its end, and it is dropped. `parent` is duplicated. On an
 * error nothing is open. */
enum xfer_result file_open(struct file_in *file, int parent, const struct file_new *new, struct file_part *part);
enum xfer_result file_write(struct file_in *file, const uint8_t *p, size_t n);
/* The next `n` octets are zero; nothing is written. */
enum xfer_result file_hole(struct file_in *file, uint64_t n);
/* Compares, and gives the file its mode, its time and its name. Nothing is open afterwards; unless XFER_OK is returned
 * nothing is left of it either. */
enum xfer_result file_finish(struct file_in *file, const uint8_t digest[XFER_DIGEST]);
/* Closes it; `keep`: its temporary stays, to be resumed. */
void file_drop(struct file_in *file, bool keep);

#endif
