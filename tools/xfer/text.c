/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.c - texts of results, checks of names, and printable names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/xfer/xfer.h"

/* The text of each result, and the errno that maps to it. */
static const struct {
    const char *text;
    int error;
} results[XFER_RESULTS] = {
    [XFER_OK] = {"ok", 0},
    [XFER_IO] = {"input/output error", EIO},
    [XFER_ABSOLUTE] = {"absolute paths are refused: give a path relative to the shared directory", 0},
    [XFER_DOTDOT] = {"'..' is refused", 0},
    [XFER_OUTSIDE] = {"leads out of the shared directory", EXDEV},
    [XFER_BAD_NAME] = {"not a valid name or value", EINVAL},
    [XFER_TOO_LONG] = {"name too long", ENAMETOOLONG},
    [XFER_TOO_DEEP] = {"more than 128 directories deep", 0},
    [XFER_NOT_FOUND] = {"no such file or directory", ENOENT},
    [XFER_NO_ACCESS] = {"permission denied", EACCES},
    [XFER_READ_ONLY] = {"read-only", EROFS},
    [XFER_FULL] = {"no space left on the device", ENOSPC},
    [XFER_TOO_BIG] = {"too large a file for the file system", EFBIG},
    [XFER_LOOP] = {"a symbolic link where none may be", ELOOP},
    [XFER_IS_DIRECTORY] = {"is a directory", EISDIR},
    [XFER_NOT_DIRECTORY] = {"not a directory", ENOTDIR},
    [XFER_NOT_RECURSIVE] = {"is a directory (-r copies it)", 0},
    [XFER_NOT_FILE] = {"neither a file, a directory nor a symbolic link", ENXIO},
    [XFER_LINK_OUT] = {"a symbolic link that leads out of what is copied", 0},
    [XFER_CHANGED] = {"changed while it was read", 0},
    [XFER_MISMATCH] = {"the checksum does not match", 0},
    [XFER_NO_MEMORY] = {"out of memory or file descriptors", ENOMEM},
    [XFER_BUSY] = {"all places are taken; try again later", EBUSY},
    [XFER_ABORTED] = {"given up", ECANCELED},
    [XFER_OTHER_VERSION] = {"not an `rddp serve` of this version", 0},
    [XFER_PROTOCOL] = {"the peer violates the protocol", EPROTO},
};

const char *xfer_result_text(enum xfer_result result)
{
    return (unsigned)result < XFER_RESULTS ? results[result].text : "an unknown error";
}

enum xfer_result xfer_result_of(int error)
{
    switch (error) {
    case EPERM:
        return XFER_NO_ACCESS;
    case EDQUOT:
        return XFER_FULL;
    case EMFILE:
    case ENFILE:
        return XFER_NO_MEMORY;
    case EEXIST:
    case ENOTEMPTY:
        return XFER_IS_DIRECTORY;
    }
    for (int i = 1; i < XFER_RESULTS; i++) {
        if (error && results[i].error == error)
            return (enum xfer_result)i;
    }
    return XFER_IO;
}

static enum xfer_result check_name(const char *name, size_t n)
{
    if (n > XFER_NAME)
        return XFER_TOO_LONG;
    if (n == 2 && name[0] == '.' && name[1] == '.')
        return XFER_DOTDOT;
    return !n || (n == 1 && name[0] == '.') ? XFER_BAD_NAME : XFER_OK;
}

enum xfer_result xfer_path_check(const char *path)
{
    unsigned depth = 0;
    if (path[0] == '/')
        return XFER_ABSOLUTE;
    if (strnlen(path, XFER_PATH + 1) > XFER_PATH)
        return XFER_TOO_LONG;
    for (bool more = path[0]; more;) {
        size_t n = strcspn(path, "/");
        enum xfer_result result = check_name(path, n);
        if (result)
            return result;
        if (++depth > XFER_DEPTH)
            return XFER_TOO_DEEP;
        more = path[n];
        path += n + more;
    }
    return XFER_OK;
}

bool xfer_name_ok(const char *name)
{
    return !strchr(name, '/') && !check_name(name, strnlen(name, XFER_NAME + 1));
}

bool xfer_link_ok(const char *path, const char *target)
{
    long depth = 0;
    bool down = false;
    for (; (path = strchr(path, '/')); path++)
        depth++;
    if (!*target || *target == '/')
        return false;
    while (*target) {
        size_t n = strcspn(target, "/");
        bool up = n == 2 && target[0] == '.' && target[1] == '.';
        if (up && (down || !depth--))
            return false;
        down = down || (!up && (n > 1 || (n == 1 && target[0] != '.')));
        target += n + (target[n] == '/');
    }
    return true;
}

/* The length of the well-formed UTF-8 character at `p` that terminals only draw; 0 if it is not one. */
static size_t drawable(const unsigned char *p)
{
    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f && p[0] != '\\';
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
    }
    /* No overlong encodings, surrogates, values above U+10FFFF, or C1 controls. */
    bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
               (p[0] == 0xf4 && p[1] > 0x8f) || (p[0] == 0xc2 && p[1] < 0xa0);
    return bad ? 0 : n;
}

/* Writes one character, or an escaped octet, to `out` (which has 4 octets), and its length to `written`. Returns the
 * octets of `p` that it stands for. */
static size_t print_one(char *out, const unsigned char *p, size_t *written)
{
    size_t n = drawable(p);
    if (n) {
        memcpy(out, p, n);
        *written = n;
        return n;
    }
    char escape[5];
    if (*p == '\n' || *p == '\\')
        snprintf(escape, sizeof(escape), "\\%c", *p == '\n' ? 'n' : '\\');
    else
        snprintf(escape, sizeof(escape), "\\x%02x", *p);
    *written = strlen(escape);
    memcpy(out, escape, *written);
    return 1;
}

char *xfer_printable(char out[XFER_TEXT], const char *text)
{
    enum { HEAD = 600, TAIL = 300 }; /* octets of a long text that are kept, before escaping */
    size_t length = strlen(text), at = 0;
    const unsigned char *p = (const unsigned char *)text, *cut = p + length;
    while (*p) {
        size_t written;
        if (at + 4 > HEAD && p < cut - TAIL / 4) {
            memcpy(out + at, "...", 3);
            at += 3;
            p = cut - TAIL / 4;
        }
        if (at + 5 > XFER_TEXT)
            break;
        p += print_one(out + at, p, &written);
        at += written;
    }
    out[at] = 0;
    return out;
}
