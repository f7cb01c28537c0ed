/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* volatile.c - sending from a mapped file that another process writes and truncates. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum { LENGTH = 1 << 20, HALF = LENGTH / 2, TURNS = 8, LONG_TURNS = 64 };

struct file {
    int fd;
    uint8_t *at;
    struct rddp_mr *mr;
};

static atomic_uint gone; /* pages */

/* Handles SIGBUS like an application that continues: maps a page of zeros where one is gone. */
static void on_sigbus(int sig, siginfo_t *info, void *ucontext)
{
    void *page = (void *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);

    (void)sig;
    (void)ucontext;
    if (mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        _exit(1);
    gone++;
}

static void map(struct file *file, struct side *side)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

    assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
    file->fd = memfd_create("volatile", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file->fd, LENGTH), 0);
    file->at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    assert_ptr_not_equal(file->at, MAP_FAILED);
    pair_pattern(file->at, LENGTH, 3);
    file->mr = rddp_reg_mr(side->pd, file->at, LENGTH, RDDP_ACCESS_VOLATILE);
    assert_non_null(file->mr);
    gone = 0;
}

static void unmap(struct file *file)
{
    assert_int_equal(rddp_dereg_mr(file->mr), 0);
    munmap(file->at, LENGTH);
    close(file->fd);
}

static void write_all(struct pair *pair, const struct file *file)
{
    struct rddp_sge sge = {(uintptr_t)file->at, LENGTH, rddp_mr_key(file->mr)};
    struct rddp_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE, .send_flags = RDDP_SEND_SIGNALED};

    wr.rkey = rddp_mr_key(pair->server.mr);
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
}

/* Waits for a Send: everything written before it is placed when it is delivered. */
static void await(struct pair *pair)
{
    pair_receive(&pair->server, 1, 0, 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 0, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
}

static void file_is_cut(void **state)
{
    struct pair *pair = *state;
    struct file file;

    map(&file, &pair->client);
    assert_int_equal(ftruncate(file.fd, HALF), 0);
    write_all(pair, &file);
    await(pair);
    assert_true(pair_is_pattern(pair->server.buffer, HALF, 3));
    for (size_t i = HALF; i < LENGTH; i++)
        assert_int_equal(pair->server.buffer[i], 0);
    assert_int_equal(gone, HALF / 4096);
    unmap(&file);
}

static atomic_bool writing;

/* The race is the application's, and what is tested: ThreadSanitizer is not told of it. */
__attribute__((no_sanitize_thread)) static void *write_on(void *arg)
{
    volatile uint64_t *at = arg;

    for (uint64_t i = 0; atomic_load(&writing); i++)
        for (size_t k = 0; k < LENGTH / sizeof(*at); k++)
            at[k] = i;
    return NULL;
}

/* The CRC is that of the octets sent, whatever was there before or after. */
static void file_is_written(void **state)
{
    struct pair *pair = *state;
    struct file file;
    pthread_t thread;

    map(&file, &pair->client);
    atomic_store(&writing, true);
    assert_int_equal(pthread_create(&thread, NULL, write_on, file.at), 0);
    for (int i = 0; i < (getenv("RDDP_LONG") ? LONG_TURNS : TURNS); i++)
        write_all(pair, &file);
    atomic_store(&writing, false);
    pthread_join(thread, NULL);
    await(pair);
    unmap(&file);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(file_is_cut), PAIR_TEST(file_is_written)};

    return pair_run("volatile", tests, sizeof(tests) / sizeof(*tests), true);
}
