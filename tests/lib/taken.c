/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* taken.c - see taken.h. Not with cmocka: a child of fork() may be the program. */
#include "tests/lib/taken.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 150 };

static const char content[] = "of the program";
static int file[FILES];
static ino_t inode[FILES];

void take_numbers(void)
{
    closefrom(STDERR_FILENO + 1);
    for (int i = 0; i < FILES; i++) {
        struct stat about;

        file[i] = memfd_create("taken", 0);
        if (file[i] < 0 || write(file[i], content, sizeof(content)) != sizeof(content) || fstat(file[i], &about))
            abort();
        inode[i] = about.st_ino;
    }
}

bool taken_are_whole(void)
{
    for (int i = 0; i < FILES; i++) {
        struct stat about;

        if (fstat(file[i], &about) || about.st_ino != inode[i] || about.st_size != sizeof(content) ||
            lseek(file[i], 0, SEEK_CUR) != sizeof(content)) {
            fprintf(stderr, "descriptor %d is not what it was\n", file[i]);
            return false;
        }
    }
    return true;
}

void close_taken(void)
{
    for (int i = 0; i < FILES; i++)
        close(file[i]);
}
