/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote.c - parses HOST:PATH, and normalizes paths for cp. */
#include <string.h>

#include "tools/cp/cp.h"

/* Returns the colon between host and path, or NULL. */
static const char *host_end(const char *text)
{
    if (text[0] == '[') {
        const char *bracket = strchr(text, ']');
        return bracket && bracket[1] == ':' ? bracket + 1 : NULL;
    }
    size_t n = strcspn(text, ":/");
    return text[n] == ':' && n ? text + n : NULL;
}

bool is_remote(const char *text)
{
    return host_end(text) != NULL;
}

/* Copies the path without empty names and ".". The server checks the rest of it. */
static bool normalise(struct cp_remote *remote, const char *path)
{
    size_t at = 0;
    if (*path == '/')
        remote->path[at++] = '/';
    remote->contents = !*path;
    for (const char *name = path; *name;) {
        size_t n = strcspn(name, "/");
        bool real = n && !(n == 1 && name[0] == '.');
        bool slash = real && at && remote->path[at - 1] != '/';
        if (real && at + slash + n > XFER_PATH)
            return false;
        if (slash)
            remote->path[at++] = '/';
        if (real)
            memcpy(remote->path + at, name, n);
        at += real ? n : 0;
        if (n)
            remote->contents = !real;
        remote->into = name[n] == '/';
        name += n + (name[n] == '/');
    }
    remote->path[at] = 0;
    return true;
}

int remote_parse(struct cp_remote *remote, const char *text)
{
    const char *colon = host_end(text);
    *remote = (struct cp_remote){0};
    bool bracket = text[0] == '[';
    size_t n = (size_t)(colon - text) - 2 * bracket;
    if (n >= sizeof(remote->host))
        usage_error("'%.40s...': the host name is too long", text);
    memcpy(remote->host, text + bracket, n);
    if (normalise(remote, colon + 1))
        return EXIT_OK;
    return fail(EXIT_FAILED, "%.40s...: %s", text, xfer_result_text(XFER_TOO_LONG));
}

void last_name(char name[XFER_NAME + 1], const char *path)
{
    size_t end = strlen(path), start;
    while (end && path[end - 1] == '/')
        end--;
    for (start = end; start && path[start - 1] != '/'; start--)
        ;
    size_t n = end - start;
    name[0] = 0;
    if (n > XFER_NAME)
        return;
    memcpy(name, path + start, n);
    name[n] = 0;
    if (!xfer_name_ok(name))
        name[0] = 0;
}
