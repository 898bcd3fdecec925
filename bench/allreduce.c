/* The times of an all-reduce in microseconds, as JSON: mpirun -n 2 allreduce ELEMENTS CALLS ROUNDS ELEMENTS CALLS ROUNDS. Reduces as
 * bench/distributed.mjs does: float32, max, in place, and the best of the rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* As ours waits: a call that returns at once, and MPI_Test until it is over. */
static void start_and_test(float *x, int elements) {
  MPI_Request request;
  int done = 0;
  MPI_Iallreduce(MPI_IN_PLACE, x, elements, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, &request);
  while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static double measure(int elements, int calls, int rounds, int waits) {
  float *x = malloc(sizeof(float) * elements);
  double best = 1e30;
  for (int i = 0; i < elements; i++) x[i] = 1;
  MPI_Allreduce(MPI_IN_PLACE, x, elements, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  for (int round = 0; round < rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
      if (waits)
        MPI_Allreduce(MPI_IN_PLACE, x, elements, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
      else
        start_and_test(x, elements);
    double time = (MPI_Wtime() - start) * 1e6 / calls;
    if (time < best) best = time;
  }
  free(x);
  return best;
}

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 7) return 1;
  int n[6];
  for (int i = 0; i < 6; i++) n[i] = atoi(argv[i + 1]);
  double small = measure(n[0], n[1], n[2], 1), small_tested = measure(n[0], n[1], n[2], 0);
  double large = measure(n[3], n[4], n[5], 1), large_tested = measure(n[3], n[4], n[5], 0);
  if (rank == 0)
    printf("{\"small\": %f, \"smallTested\": %f, \"large\": %f, \"largeTested\": %f}\n", small, small_tested, large, large_tested);
  MPI_Finalize();
  return 0;
}
