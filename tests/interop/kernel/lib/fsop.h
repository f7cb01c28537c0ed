/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fsop.h - declares what the source files of fsop share. An operation exits with 0 if every check passed, else it
 * prints the check that failed. */
#ifndef RDDP_TESTS_KERNEL_FSOP_H
#define RDDP_TESTS_KERNEL_FSOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Prints one line on standard error and exits with code 1. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Works as die() and appends the text of `errno`. */
_Noreturn void die_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t number(const char *text);
int open_or_die(const char *path, int flags);
void write_all(int fd, const void *data, size_t n, off_t offset);
/* Returns fewer than n octets only at the end of the file. */
size_t read_all(int fd, void *data, size_t n, off_t offset);

/* Writes the pattern of `seed` for file octets [offset, offset + n) to `to`; `offset` must be a multiple of 8. */
void pattern(uint64_t seed, uint64_t offset, uint8_t *to, size_t n);

/* Starts `n` processes, passes each its number, waits for them and returns how many exited with code 0. */
int in_processes(int n, int (*run)(int self, void *user), void *user);

int op_fill(int argc, char **argv);
int op_check(int argc, char **argv);
int op_forget(int argc, char **argv);
int op_sparse(int argc, char **argv);
int op_mmap(int argc, char **argv);
int op_ranges(int argc, char **argv);
int op_append(int argc, char **argv);
int op_records(int argc, char **argv);

int op_names(int argc, char **argv);
int op_list(int argc, char **argv);
int op_busy(int argc, char **argv);
int op_excl(int argc, char **argv);
int op_silly(int argc, char **argv);
int op_odd(int argc, char **argv);
int op_deep(int argc, char **argv);

#endif
