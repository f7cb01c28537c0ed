/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* jobs.c - `rddp http get` and `put`: from the words of the command to files and targets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/http_client.h"

enum { AUTHORITY_MAX = 300 };

/* A URL taken apart; `target` begins with a slash. */
struct url {
    char authority[AUTHORITY_MAX];
    const char *target;
};

static void parse_url(struct url *url, const char *text)
{
    if (strncasecmp(text, "http://", 7))
        usage_error("%s: not a URL that begins with http://", text);
    const char *host = text + 7;
    size_t n = strcspn(host, "/?#");
    if (!n || n >= sizeof(url->authority) || memchr(host, '@', n))
        usage_error("%s: expected http://HOST[:PORT]/PATH", text);
    memcpy(url->authority, host, n);
    url->authority[n] = 0;
    url->target = host[n] ? host + n : "/";
    if (url->target[0] != '/')
        usage_error("%s: a path has to follow the host", text);
}

/* The last name in a target, as a file may be called. */
static bool target_name(char name[XFER_NAME + 1], const char *target)
{
    char path[HTTP_PATH_MAX + 1];
    bool is_directory;
    if (http_decode_target(path, &is_directory, target, strlen(target)))
        return false;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    if (is_directory)
        last = "index.html";
    if (strlen(last) > XFER_NAME)
        return false;
    strcpy(name, last);
    return true;
}

static void jobs_open_client(struct http_client *client, const struct http_options *options, const struct url *url,
                             size_t jobs)
{
    *client = (struct http_client){.options = options, .directory = -1};
    client->authority = strdup(url->authority);
    client->job = calloc(jobs, sizeof(*client->job));
    if (!client->authority || !client->job)
        exit(fail(EXIT_FAILED, "out of memory"));
    for (size_t i = 0; i < jobs; i++)
        client->job[i].fd = client->job[i].landing.fd = -1;
}

static void add_job(struct http_client *client, const char *target, bool put)
{
    struct http_job *job = &client->job[client->jobs++];
    job->put = put;
    job->size = UINT64_MAX;
    if (strlen(target) >= sizeof(job->target) || strcspn(target, " #") < strlen(target) ||
        !target_name(job->name, target))
        usage_error("%s: not the path of a file", target);
    strcpy(job->target, target);
}

static int close_client(struct http_client *client, int code)
{
    for (size_t i = 0; i < client->jobs; i++) {
        if (client->job[i].fd > STDERR_FILENO)
            close(client->job[i].fd);
        XXH3_freeState(client->job[i].sum);
    }
    if (client->directory >= 0)
        close(client->directory);
    free(client->job);
    free((char *)(uintptr_t)client->authority);
    return code;
}

static int jobs_run_client(struct http_client *client)
{
    int code = target_parse(&client->server, client->authority, HTTP_PORT, false);
    return close_client(client, code ? code : http_client_run(client));
}

static bool has_temps(const char *directory)
{
    DIR *names = opendir(directory);
    const struct dirent *entry;
    bool found = false;
    while (names && !found && (entry = readdir(names)))
        found = is_temp(entry->d_name);
    if (names)
        closedir(names);
    return found;
}

/* Where files go: the directory that --output names, or the one that its file will be in. */
static int open_output(struct http_client *client, const char *output)
{
    char parent[XFER_PATH + 1] = ".";
    struct stat st;
    const char *directory = output ? output : ".";
    if (output && (stat(output, &st) || !S_ISDIR(st.st_mode))) {
        const char *slash = strrchr(output, '/'), *name = slash ? slash + 1 : output;
        if (client->jobs != 1)
            usage_error("--output %s: not a directory, and there is more than one URL", output);
        if (!*name || strlen(name) > XFER_NAME || strlen(output) > XFER_PATH)
            return fail(EXIT_FAILED, "%s: no such directory", output);
        strcpy(client->job[0].name, name);
        if (slash) {
            memcpy(parent, output, (size_t)(slash - output) + 1);
            parent[slash - output + 1] = 0;
        }
        directory = parent;
    }
    client->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    client->has_parts = has_temps(directory);
    return client->directory < 0 ? fail(EXIT_FAILED, "%s: %s", directory, error_text(errno)) : 0;
}

int http_get(const struct http_options *options, int argc, char **argv)
{
    static struct http_client client;
    struct url url, other;
    parse_url(&url, argv[0]);
    jobs_open_client(&client, options, &url, (size_t)argc);
    for (int i = 0; i < argc; i++) {
        parse_url(&other, argv[i]);
        if (strcmp(other.authority, url.authority))
            usage_error("%s: not on %s; run the command once for each server", argv[i], url.authority);
        add_job(&client, other.target, false);
    }
    int code = open_output(&client, options->output);
    return code ? close_client(&client, code) : jobs_run_client(&client);
}

static int open_source_file(struct http_job *job, const char *name)
{
    struct stat st;
    job->fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (job->fd < 0 || fstat(job->fd, &st))
        return fail(EXIT_FAILED, "%s: %s", name, error_text(errno));
    if (S_ISDIR(st.st_mode))
        return fail(EXIT_FAILED, "%s: is a directory", name);
    job->chunked = !S_ISREG(st.st_mode);
    if (!job->chunked)
        job->size = (uint64_t)st.st_size;
    return 0;
}

int http_put(const struct http_options *options, int argc, char **argv)
{
    static struct http_client client;
    char target[HTTP_TARGET_MAX];
    struct url url;
    int code = 0;
    parse_url(&url, argv[argc - 1]);
    size_t n = strlen(url.target);
    bool into = url.target[n - 1] == '/';
    if (!into && argc > 2)
        usage_error("%s: with more than one FILE the URL has to end in a slash", argv[argc - 1]);
    if (n >= sizeof(target))
        usage_error("%s: too long", argv[argc - 1]);
    jobs_open_client(&client, options, &url, (size_t)argc - 1);
    for (int i = 0; i < argc - 1 && !code; i++) {
        const char *slash = strrchr(argv[i], '/');
        memcpy(target, url.target, n + 1);
        if (into &&
            (!strcmp(argv[i], "-") || !http_encode_path(target + n, sizeof(target) - n, slash ? slash + 1 : argv[i])))
            usage_error("%s: the URL has to name the file", argv[i]);
        add_job(&client, target, true);
        code = open_source_file(&client.job[i], argv[i]);
    }
    return code ? close_client(&client, code) : jobs_run_client(&client);
}
