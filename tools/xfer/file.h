/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file.h - one received file: written to a temporary, hashed on the way, and renamed when it is verified. */
#ifndef TOOLS_XFER_FILE_H
#define TOOLS_XFER_FILE_H

#include "tools/xfer/digest.h"
#include "tools/xfer/path.h"

/* An existing part of a file: its first `length` octets, of which the first `hashed` are in the digest. */
struct file_part {
    int parent, fd; /* fd -1: there is none; `parent` is a descriptor of its own */
    bool whole;     /* it is the file itself; else its locked temporary */
    uint64_t length, hashed;
    uint64_t data_end; /* there is no hole from `hashed` up to this offset */
    struct file_digest digest;
};

/* Whether `name` in `parent` is a regular file with this stamp. */
bool file_is(int parent, const char *name, const struct path_stamp *stamp);

/* Finds the file with this stamp, or its temporary, in `parent`. Returns false if there is nothing to resume. */
bool part_find(struct file_part *part, int parent, const char *name, const struct path_stamp *stamp);
/* Hashes some more octets, using `buffer`. Returns 1 if there are more, 0 if all are hashed, or a negative errno. */
enum { PART_BUFFER = 1 << 18 };
int part_hash(struct file_part *part, uint8_t buffer[PART_BUFFER]);
void part_drop(struct file_part *part);

struct file_in {
    int parent, fd; /* `parent` is a descriptor of its own; fd -1: no file is open */
    char name[XFER_NAME + 1], temp[XFER_NAME + 1];
    bool whole; /* the file exists and is open for reading: only its mode is to be set */
    bool sync;  /* fsync it before renaming; set this after file_open() */
    struct path_stamp stamp;
    uint32_t mode;
    uint64_t offset; /* octets written or left as holes */
    struct file_digest digest;
};

struct file_new {
    const char *name;
    struct path_stamp stamp;
    uint32_t mode;
    uint64_t data; /* octets to come that are not in holes */
};

/* Opens a file to receive in `parent`, which is duplicated. If `part` is not NULL, continues at its end, in its
 * directory, and takes it over. Nothing is open after an error. */
enum xfer_result file_open(struct file_in *file, int parent, const struct file_new *new, struct file_part *part);
enum xfer_result file_write(struct file_in *file, const uint8_t *p, size_t n);
/* The next `n` octets are a hole: nothing is written. */
enum xfer_result file_hole(struct file_in *file, uint64_t n);
/* Compares the digest; if it matches and the file system has stored everything, gives the file its mode, time and name.
 * Nothing is open afterwards, and on failure the temporary is removed. */
enum xfer_result file_finish(struct file_in *file, const uint8_t digest[XFER_DIGEST]);
/* Closes the file. `keep`: leave its temporary, to be resumed, if the next transfer can find it and needs it. */
void file_drop(struct file_in *file, bool keep);

#endif
