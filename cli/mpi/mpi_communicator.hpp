// Ranks of MPI: all processes that mpirun or srun has started. The one folder that includes mpi.h.
//
// An error of MPI, or the death of a process, ends the job, as MPI does by default, naming the rank and the host. Only
// the thread that constructed this calls MPI.
#pragma once

#include <kith/communicator.hpp>

#include <memory>

namespace kith {

class MpiCommunicator final : public Communicator {
 public:
  // Starts MPI, and ends it with the object: one for each process.
  MpiCommunicator(int* argc, char*** argv, int64_t piece_bytes = kPieceBytes);
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override;
  void barrier() override;
  // A counter in the memory of rank 0, which others increment remotely if the network supports it; otherwise rank 0
  // answers when it calls MPI itself.
  void begin_steps(int64_t count) override;
  int64_t next_step() override;

 protected:
  void send_piece(int to, const void* data, int64_t bytes) override;
  void receive_piece(int from, void* data, int64_t bytes) override;
  void broadcast_piece(int root, void* data, int64_t bytes) override;

 private:
  struct Counter;
  int rank_ = 0;
  int size_ = 1;
  int64_t steps_ = 0;
  std::unique_ptr<Counter> counter_;
};

}  // namespace kith
