/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handle_key.c - reads the key of file handles from the state directory, or creates it there. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs/server/export.h"
#include "nfs/server/handle.h"

#define NAME "handle-key"

static int handle_key_fail(char *message, int error, const char *state, const char *what)
{
    snprintf(message, EXPORT_TEXT, "%.150s/" NAME ": %s", state, what);
    return error;
}

static int fail_errno(char *message, const char *state)
{
    int error = errno;

    return handle_key_fail(message, -error, state, strerror(error));
}

/* Returns -ENOENT without a message if there is no key. */
static int handle_key_load(int dir, uint8_t *key, const char *state, char *message)
{
    uint8_t more[HANDLE_KEY + 1];
    struct stat st;
    ssize_t n;
    int fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? -ENOENT : fail_errno(message, state);
    n = fstat(fd, &st) ? -1 : read(fd, more, sizeof(more));
    close(fd);
    if (n < 0)
        return fail_errno(message, state);
    if (!S_ISREG(st.st_mode) || n != HANDLE_KEY)
        return handle_key_fail(message, -EINVAL, state, "is not a file of 16 octets");
    if (st.st_mode & 077)
        return handle_key_fail(message, -EPERM, state, "only its owner may have access to it");
    memcpy(key, more, HANDLE_KEY);
    sodium_memzero(more, sizeof(more));
    return 0;
}

/* Writes the key to a file with another name and links it, so that a reader finds a whole key or none, and a second
 * creator does not replace it. */
static int handle_key_make(int dir, const char *state, char *message)
{
    uint8_t key[HANDLE_KEY];
    char name[sizeof(NAME) + 16];
    int fd, error = 0;

    randombytes_buf(key, sizeof(key));
    snprintf(name, sizeof(name), NAME ".%08x", randombytes_random());
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(message, state);
    if (write(fd, key, sizeof(key)) != (ssize_t)sizeof(key) || fsync(fd) ||
        (linkat(dir, name, dir, NAME, 0) && errno != EEXIST))
        error = fail_errno(message, state);
    unlinkat(dir, name, 0);
    close(fd);
    if (!error && fsync(dir))
        error = fail_errno(message, state);
    return error;
}

int handle_key_open(uint8_t key[HANDLE_KEY], const char *state, char *message)
{
    int dir, error;

    if (sodium_init() < 0)
        return handle_key_fail(message, -ENOSYS, "libsodium", "cannot be initialized");
    if (!state) {
        randombytes_buf(key, HANDLE_KEY);
        return 0;
    }
    dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail_errno(message, state);
    error = handle_key_load(dir, key, state, message);
    if (error == -ENOENT) {
        error = handle_key_make(dir, state, message);
        if (!error)
            error = handle_key_load(dir, key, state, message);
    }
    close(dir);
    return error;
}
