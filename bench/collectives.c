/* The times of blocking collectives in microseconds, as JSON: mpirun -n 2 collectives (KIND BYTES CALLS ROUNDS)... As bench/collectives.mjs: float32, reductions
 * with max, BYTES of the whole tensor, and of the rounds the least time and the median. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) printf("[");
  for (int at = 1; at + 3 < argc; at += 4) {
    const char *kind = argv[at];
    int elements = atoi(argv[at + 1]) / 4, calls = atoi(argv[at + 2]), rounds = atoi(argv[at + 3]), part = elements / size;
    float *whole = malloc(sizeof(float) * elements), *own = malloc(sizeof(float) * (part + 1));
    double *times = malloc(sizeof(double) * rounds);
    for (int i = 0; i < elements; i++) whole[i] = 1;
    for (int i = 0; i < part; i++) own[i] = 1;
    /* The first round is not counted. */
    for (int round = -1; round < rounds; round++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double start = MPI_Wtime();
      for (int i = 0; i < calls; i++) {
        if (!strcmp(kind, "allReduce")) MPI_Allreduce(MPI_IN_PLACE, whole, elements, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
        else if (!strcmp(kind, "reduceScatter")) MPI_Reduce_scatter_block(whole, own, part, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
        else if (!strcmp(kind, "allGather")) MPI_Allgather(own, part, MPI_FLOAT, whole, part, MPI_FLOAT, MPI_COMM_WORLD);
        else MPI_Bcast(whole, elements, MPI_FLOAT, 0, MPI_COMM_WORLD);
      }
      if (round >= 0) times[round] = (MPI_Wtime() - start) * 1e6 / calls;
    }
    qsort(times, rounds, sizeof(double), by_size);
    if (rank == 0) printf("%s{\"least\": %f, \"median\": %f}", at > 1 ? ", " : "", times[0], times[rounds / 2]);
    free(whole);
    free(own);
    free(times);
  }
  if (rank == 0) printf("]\n");
  MPI_Finalize();
  return 0;
}
