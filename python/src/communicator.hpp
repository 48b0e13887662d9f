// A communicator of Python's: any object with the buffer methods of mpi4py's Comm (Get_rank, Get_size, Send, Recv,
// Bcast, Barrier), which are called back. Nothing here links MPI.
#pragma once

#include "call.hpp"

#include <kith/communicator.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

namespace kith::python {

namespace nb = nanobind;

class PythonCommunicator final : public Communicator {
 public:
  // With the GIL, as raise_kept_error().
  explicit PythonCommunicator(nb::object comm);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  // What a method has raised, if one has.
  void raise_kept_error();

 protected:
  void send_piece(int to, const void* data, int64_t bytes) override;
  void receive_piece(int from, void* data, int64_t bytes) override;
  void broadcast_piece(int root, void* data, int64_t bytes) override;

 private:
  template <typename Work>
  void call_back(const Work& work);

  nb::object comm_;
  int rank_ = 0;
  int size_ = 1;
  std::optional<nb::python_error> error_;
};

// Runs work(ranks) as a call of which all ranks do a part; or work(null) where there is no communicator.
template <typename Work>
void run_on_ranks(Call& call, const nb::object& comm, const Work& work) {
  if (comm.is_none()) return call.run([&] { work(nullptr); });
  PythonCommunicator ranks(comm);
  try {
    call.run([&] { in_lockstep(ranks, [&] { work(&ranks); }); });
  } catch (...) {
    ranks.raise_kept_error();
    throw;
  }
}

}  // namespace kith::python
