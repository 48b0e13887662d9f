#include "mpi_communicator.hpp"

#include <mpi.h>

#include <string>

namespace kith {
namespace {

constexpr int kTag = 0;  // messages of two ranks have one order

}  // namespace

struct MpiCommunicator::Counter {
  MPI_Win window = MPI_WIN_NULL;
  int64_t* next = nullptr;  // of rank 0

  explicit Counter(int rank) {
    const MPI_Aint bytes = rank == 0 ? sizeof(int64_t) : 0;
    MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&next), &window);
  }
  ~Counter() { MPI_Win_free(&window); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
};

MpiCommunicator::MpiCommunicator(int* argc, char*** argv, int64_t piece_bytes) : Communicator(piece_bytes) {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiCommunicator::~MpiCommunicator() {
  counter_.reset();
  MPI_Finalize();
}

std::string MpiCommunicator::host() const {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  return {name, static_cast<size_t>(length)};
}

void MpiCommunicator::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void MpiCommunicator::begin_steps(int64_t count) {
  steps_ = count;
  if (counter_ == nullptr) counter_ = std::make_unique<Counter>(rank_);
  barrier();  // nobody counts any more
  if (rank_ == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, counter_->window);
    *counter_->next = 0;
    MPI_Win_unlock(0, counter_->window);
  }
  barrier();
}

int64_t MpiCommunicator::next_step() {
  const int64_t one = 1;
  int64_t step = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, counter_->window);
  MPI_Fetch_and_op(&one, &step, MPI_INT64_T, 0, 0, MPI_SUM, counter_->window);
  MPI_Win_unlock(0, counter_->window);
  return step < steps_ ? step : -1;
}

void MpiCommunicator::send_piece(int to, const void* data, int64_t bytes) {
  MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, kTag, MPI_COMM_WORLD);
}

void MpiCommunicator::receive_piece(int from, void* data, int64_t bytes) {
  MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void MpiCommunicator::broadcast_piece(int root, void* data, int64_t bytes) {
  MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD);
}

}  // namespace kith
