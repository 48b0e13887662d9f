// MPI's ranks by themselves, started by mpirun: messages in pieces, gathers, steps. Exits with the number of faults.
#include "mpi/mpi_communicator.hpp"

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  kith::MpiCommunicator ranks(&argc, &argv, 3);  // pieces of three bytes
  const int rank = ranks.rank();
  const int size = ranks.size();
  int faults = 0;
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    ++faults;
    std::fprintf(stderr, "rank %d on %s: %s\n", rank, ranks.host().c_str(), what);
  };

  std::vector<int64_t> values(7, rank);
  if (rank > 0) ranks.receive(rank - 1, values.data(), 56);
  expect(values == std::vector<int64_t>(7, rank > 0 ? rank - 1 : 0), "a message of the rank before");
  values.assign(7, rank);
  if (rank + 1 < size) ranks.send(rank + 1, values.data(), 56);
  ranks.broadcast(size - 1, values.data(), 56);
  expect(values == std::vector<int64_t>(7, size - 1), "the last rank's broadcast");

  for (const int64_t steps : {0, 1, 50}) {
    ranks.begin_steps(steps);
    std::vector<int64_t> mine(static_cast<size_t>(steps));
    for (int64_t step = ranks.next_step(); step >= 0; step = ranks.next_step()) ++mine[static_cast<size_t>(step)];
    std::vector<int64_t> all(mine.size() * static_cast<size_t>(size));
    ranks.all_gather(mine.data(), std::vector<int64_t>(static_cast<size_t>(size), 8 * steps), all.data());
    for (int64_t step = 0; step < steps; ++step) {
      int64_t done = 0;
      for (int64_t r = 0; r < size; ++r) done += all[static_cast<size_t>(r * steps + step)];
      expect(done == 1, "each step is dealt out once");
    }
  }
  ranks.barrier();
  return faults;
}
