/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* session.c - one client of `rddp serve`: reads its request, checks it, and runs the copy. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/serve/serve_inner.h"

/* --- the request --------------------------------------------------------------------------------------------- */

/* Checks what `path` is. Only files and directories are opened, since opening others may have side effects. */
static enum xfer_result session_look_at(int root, const char *path, struct stat *st)
{
    int fd = path_open(root, path, O_PATH, 0);
    if (fd < 0)
        return xfer_result_of(-fd);
    enum xfer_result result = fstat(fd, st) ? xfer_result_of(errno) : XFER_OK;
    close(fd);
    if (!result && S_ISLNK(st->st_mode)) /* path_open() without openat2() opens the link itself */
        result = XFER_LOOP;
    return result || S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? result : XFER_NOT_FILE;
}

static enum xfer_result session_open_source(struct session *session, const struct xfer_record *start, int *top,
                                            unsigned *flags)
{
    struct stat st;
    enum xfer_result result = session_look_at(session->serve->root, start->path, &st);
    if (result)
        return result;
    if (S_ISDIR(st.st_mode) && !(start->flags & (XFER_RECURSIVE | XFER_LIST)))
        return XFER_NOT_RECURSIVE;
    if (!S_ISDIR(st.st_mode) && (start->flags & XFER_INTO))
        return XFER_NOT_DIRECTORY;
    *flags = S_ISDIR(st.st_mode) ? XFER_IS_DIR : 0;
    *top = path_open(session->serve->root, start->path, O_RDONLY | O_NONBLOCK, 0);
    return *top < 0 ? xfer_result_of(-*top) : XFER_OK;
}

static enum xfer_result session_give(struct session *session, const struct xfer_record *start, int *top,
                                     unsigned *flags)
{
    struct xfer_copy *copy = &session->copy;
    enum xfer_result result = session_open_source(session, start, top, flags);
    if (result)
        return result;
    bool list = start->flags & XFER_LIST, count = start->flags & XFER_WANT_TOTAL && !list;
    const struct source_attr attr = {
        .top = *top,
        .resume = !(*flags & XFER_IS_DIR && start->flags & XFER_FRESH),
        .checksum = start->flags & XFER_CHECKSUM,
        .dry = start->flags & XFER_DRY_RUN,
        .list = list,
        .flat = list && !(start->flags & XFER_RECURSIVE),
        .count = count,
        .put_total = count,
    };
    copy->role = COPY_SOURCE;
    if (source_open(&copy->source, &copy->link, &copy->tally, &attr) ||
        xfer_link_ring(&copy->link, list ? XFER_RING_MIN : session->serve->ring, LINK_IS_READ))
        return XFER_NO_MEMORY;
    return XFER_OK;
}

/* Whether a directory is to be received that does not exist yet, so that there is nothing to compare. */
static bool session_is_fresh(const struct path_place *place, const struct xfer_record *start)
{
    struct stat st;
    return start->flags & XFER_IS_DIR && *place->top && fstatat(place->base, place->top, &st, AT_SYMLINK_NOFOLLOW) &&
           errno == ENOENT;
}

static enum xfer_result session_receive_file(struct session *session, const struct xfer_record *start, unsigned *flags)
{
    struct xfer_copy *copy = &session->copy;
    struct path_place place;
    if (session->serve->read_only)
        return XFER_READ_ONLY;
    if (*start->name && !xfer_name_ok(start->name))
        return XFER_BAD_NAME;
    enum xfer_result result = path_place(session->serve->root, start->path, start->name, start->flags, &place);
    if (result)
        return result;
    *flags = session_is_fresh(&place, start) ? XFER_FRESH : 0;
    sink_open(&copy->sink, &copy->link, &copy->tally, &place);
    copy->sink.sync = session->serve->sync;
    copy->sink.checksum = start->flags & XFER_CHECKSUM;
    copy->sink.dry = start->flags & XFER_DRY_RUN;
    copy->role = COPY_SINK;
    return xfer_link_ring(&copy->link, session->serve->ring, LINK_WRITTEN) ? XFER_NO_MEMORY : XFER_OK;
}

/* Answers START with READY, or with ERROR and a reason. */
static bool answer_start(struct session *session, const struct xfer_record *start, int *top)
{
    struct xfer_link *link = &session->copy.link;
    unsigned flags = 0;
    char name[XFER_TEXT];
    snprintf(session->what, sizeof(session->what), "%s%s '%s'", start->flags & XFER_DRY_RUN ? "dry run, " : "",
             start->flags & XFER_LIST ? "list" : copy_verb(start->flags & XFER_PULL),
             xfer_printable(name, start->path));
    enum xfer_result result = xfer_path_check(start->path);
    if (start->key != XFER_MAGIC)
        result = XFER_OTHER_VERSION;
    if (!result)
        result = start->flags & XFER_PULL ? session_give(session, start, top, &flags)
                                          : session_receive_file(session, start, &flags);
    if (result) {
        warn("%s: %s: %s", session->peer, session->what, xfer_result_text(result));
        xfer_link_put(link, &(struct xfer_record){.type = XFER_ERROR, .result = (uint16_t)result});
    } else {
        xfer_link_put(link, &(struct xfer_record){.type = XFER_READY,
                                                  .flags = (uint16_t)flags,
                                                  .key = rddp_mr_key(link->ring.mr),
                                                  .address = rddp_mr_offset(link->ring.mr, link->ring.at),
                                                  .size = link->ring.size});
    }
    xfer_link_flush(link);
    return !result;
}

/* --- the copy ------------------------------------------------------------------------------------------------ */

static void session_log_end(const struct session *session, double seconds)
{
    const struct xfer_copy *copy = &session->copy;
    const struct xfer_tally *tally = &copy->tally;
    char rate[SMALL_TEXT];
    if (!copy->finished)
        warn("%s: %s: %s", session->peer, session->what, copy->link.state == LINK_UP ? "stopped" : copy->link.trouble);
    if (session->serve->quiet)
        return;
    printf("%s: %s: %" PRIu64 " file%s", session->peer, session->what, tally->files, plural_s(tally->files));
    if (tally->unchanged)
        printf(", %" PRIu64 " unchanged", tally->unchanged);
    printf(", %" PRIu64 " failed, %" PRIu64 " octets", tally->failed, tally->octets);
    if (tally_has_rate(tally, seconds))
        printf(", %s", rate_text(rate, (double)tally->octets / seconds));
    putchar('\n');
    fflush(stdout);
}

/* The CPU time of a copy is known only if the process does nothing else meanwhile. */
static void begin_cost(struct session *session)
{
    session->alone = atomic_fetch_add(&session->serve->running, 1) == 0;
    session->begun = atomic_fetch_add(&session->serve->begun, 1) + 1;
    session->cpu_s = cpu_seconds();
}

static uint64_t end_cost(struct session *session)
{
    atomic_fetch_sub(&session->serve->running, 1);
    if (!session->alone || atomic_load(&session->serve->begun) != session->begun)
        return COPY_CPU_UNKNOWN;
    return (uint64_t)((cpu_seconds() - session->cpu_s) * 1e6);
}

/* Waits until the client disconnects after it has read our FINISH. */
static void await_end(struct xfer_link *link)
{
    uint64_t deadline_ns = clock_ns() + (uint64_t)XFER_BYE_MS * 1000000;
    struct xfer_record record;
    while (link->state == LINK_UP && clock_ns() < deadline_ns && !tool_stopped) {
        if (!xfer_link_poll(link))
            xfer_link_wait(link, 100);
        while (xfer_link_next(link, &record))
            ;
    }
}

/* Runs the copy until all entries are acknowledged, or the connection is lost. */
static void run_copy(struct session *session)
{
    struct xfer_copy *copy = &session->copy;
    uint64_t start_ns = clock_ns();
    begin_cost(session);
    while (copy_runs(copy)) {
        if (!copy_step(copy))
            xfer_link_wait(&copy->link, 1000);
    }
    uint64_t cost_us = end_cost(session);
    if (copy->finished)
        copy_put_finish(copy, cost_us);
    session_log_end(session, (double)(clock_ns() - start_ns) / 1e9);
}

static void session_run(struct session *session)
{
    struct xfer_copy *copy = &session->copy;
    struct xfer_record start;
    int top = -1;
    if (!copy_await(copy, XFER_START, &start, XFER_START_MS)) {
        if (!tool_stopped)
            warn_seldom("%s: %s", session->peer, copy->link.state == LINK_UP ? "no START in time" : copy->link.trouble);
        return;
    }
    if (answer_start(session, &start, &top))
        run_copy(session);
    copy_close(copy);
    await_end(&copy->link);
    if (top >= 0)
        close(top);
}

static void *run_session(void *argument)
{
    struct session *session = argument;
    const uint64_t one = 1;
    session_run(session);
    rddp_disconnect(session->qp);
    atomic_store(&session->over, true);
    if (write(session->serve->wake, &one, sizeof(one)) < 0)
        warn("%s: %s", session->peer, error_text(errno));
    return NULL;
}

/* --- beginning and end --------------------------------------------------------------------------------------- */

static bool open_ends(struct session *session)
{
    struct tool_endpoint *end = &session->endpoint;
    struct rddp_qp_attr attr;
    end->context = session->serve->endpoint.context;
    end->pd = session->serve->endpoint.pd;
    end->access = session->serve->endpoint.access;
    if (!(end->channel = rddp_create_comp_channel(end->context)) ||
        !(end->cq = rddp_create_cq(end->context, 4 * (XFER_RECEIVES + LINK_SENDS), NULL, end->channel)) ||
        !(end->events = rddp_create_event_channel(end->context)))
        return false;
    int fds[2] = {rddp_comp_channel_fd(end->channel), rddp_event_channel_fd(end->events)};
    for (int i = 0; i < 2; i++) {
        if (fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK))
            return false;
    }
    xfer_link_qp_attr(&attr);
    return !rddp_req_notify_cq(end->cq, false) && !xfer_link_open(&session->copy.link, end) &&
           !endpoint_qp(end, &attr, &session->qp) && !xfer_link_prepare(session->qp, &session->copy.link);
}

static void free_session(struct session *session)
{
    if (session->qp)
        rddp_destroy_qp(session->qp);
    xfer_link_close(&session->copy.link);
    /* Context and PD belong to the server. */
    session->endpoint.context = NULL;
    session->endpoint.pd = NULL;
    endpoint_close(&session->endpoint);
    free(session);
}

/* The new thread blocks all signals: the main thread handles them and wakes the others. */
static int start_thread(struct session *session)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&session->thread, NULL, run_session, session);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static bool accept_request(struct session *session, struct rddp_request *request)
{
    struct rddp_conn_attr attr;
    uint8_t hello[XFER_HELLO];
    rddp_conn_attr_init(&attr);
    xfer_hello_encode(hello, XFER_VERSION, XFER_OK);
    attr.private_data = hello;
    attr.private_data_length = session->serve->wire.immediate ? 0 : XFER_HELLO;
    int error = rddp_accept(request, session->qp, &attr);
    if (error)
        warn("%s: %s", session->peer, error_text(error));
    return !error;
}

struct session *session_start(struct serve *serve, struct rddp_request *request)
{
    struct session *session = calloc(1, sizeof(*session));
    if (!session) {
        rddp_reject(request, NULL, 0);
        return NULL;
    }
    session->serve = serve;
    rddp_request_addr(request, &session->address);
    address_text(session->peer, &session->address);
    atomic_init(&session->copy.moved_ns, clock_ns());
    if (!open_ends(session)) {
        warn("%s: no resources for another client: %s", session->peer, error_text(errno));
        rddp_reject(request, NULL, 0);
        free_session(session);
        return NULL;
    }
    if (!accept_request(session, request)) {
        free_session(session);
        return NULL;
    }
    int error = start_thread(session);
    if (error) {
        warn("%s: cannot start a thread: %s", session->peer, error_text(error));
        free_session(session);
        return NULL;
    }
    return session;
}

void session_end(struct session *session)
{
    pthread_join(session->thread, NULL);
    free_session(session);
}
