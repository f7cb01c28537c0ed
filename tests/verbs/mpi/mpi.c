/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpi.c - a ring and an all-to-all of messages of many sizes, each octet checked. Built by matrix.sh with mpicc. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 1 << 20, ROUNDS = 5 };

static unsigned char octet(int rank, int round, int i)
{
    return (unsigned char)(rank * 31 + round * 7 + i * 13 + (i >> 8));
}

static int wrong; /* octets */

static void fill(unsigned char *to, int n, int rank, int round)
{
    for (int i = 0; i < n; i++)
        to[i] = octet(rank, round, i);
}

static void check(const unsigned char *from, int n, int rank, int round)
{
    for (int i = 0; i < n; i++)
        wrong += from[i] != octet(rank, round, i);
}

static void ring(int rank, int ranks, unsigned char *out, unsigned char *in)
{
    int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;

    for (int size = 1; size <= LARGEST; size *= 4) {
        for (int round = 0; round < ROUNDS; round++) {
            fill(out, size, rank, round);
            MPI_Sendrecv(out, size, MPI_BYTE, after, round, in, size, MPI_BYTE, before, round, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            check(in, size, before, round);
        }
    }
}

static void all_to_all(int rank, int ranks, unsigned char *out, unsigned char *in)
{
    for (int size = 1; size * ranks <= LARGEST; size *= 8) {
        for (int to = 0; to < ranks; to++)
            fill(out + to * size, size, rank * ranks + to, size);
        MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++)
            check(in + from * size, size, from * ranks + rank, size);
    }
}

int main(int argc, char **argv)
{
    unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST);
    int rank, ranks, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ring(rank, ranks, out, in);
    all_to_all(rank, ranks, out, in);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!rank)
        printf(all ? "%d ranks: %d octets wrong\n" : "%d ranks: ring and all-to-all right\n", ranks, all);
    MPI_Finalize();
    free(out);
    free(in);
    return all != 0;
}
