#include <kith/communicator.hpp>

#include <kith/error.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kSmallBytes = 1 << 16;  // of all ranks, which pass by rank 0 in two steps

// Calls use(offset, bytes) for the pieces of a message.
template <typename Use>
void for_pieces(int64_t bytes, int64_t most, const Use& use) {
  for (int64_t at = 0; at < bytes; at += most) use(at, std::min(most, bytes - at));
}

std::byte* bytes_at(void* data, int64_t offset) { return static_cast<std::byte*>(data) + offset; }
const std::byte* bytes_at(const void* data, int64_t offset) { return static_cast<const std::byte*>(data) + offset; }

int64_t offset_of(std::span<const int64_t> bytes, int rank) {
  return std::accumulate(bytes.begin(), bytes.begin() + rank, int64_t{0});
}

void copy_own(const void* own, int64_t bytes, void* to) {
  if (bytes > 0 && own != to) std::memmove(to, own, static_cast<size_t>(bytes));
}

}  // namespace

Communicator::Communicator(int64_t piece_bytes) : piece_bytes_(piece_bytes) {
  if (piece_bytes < 1) throw InvalidArgument(fmt::format("pieces of {} bytes; they need at least one", piece_bytes));
}
Communicator::~Communicator() = default;

std::string Communicator::host() const {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "a host without a name";
}

std::string Communicator::name() const { return fmt::format("rank {} on {}", rank(), host()); }

void Communicator::send(int to, const void* data, int64_t bytes) {
  for_pieces(bytes, piece_bytes_, [&](int64_t at, int64_t some) { send_piece(to, bytes_at(data, at), some); });
}

void Communicator::receive(int from, void* data, int64_t bytes) {
  for_pieces(bytes, piece_bytes_, [&](int64_t at, int64_t some) { receive_piece(from, bytes_at(data, at), some); });
}

void Communicator::broadcast(int root, void* data, int64_t bytes) {
  if (size() == 1) return;
  for_pieces(bytes, piece_bytes_, [&](int64_t at, int64_t some) { broadcast_piece(root, bytes_at(data, at), some); });
}

void Communicator::gather(int root, const void* own, std::span<const int64_t> bytes, void* all) {
  const int64_t mine = bytes[static_cast<size_t>(rank())];
  if (rank() != root) return send(root, own, mine);
  int64_t at = 0;
  for (int from = 0; from < size(); ++from) {
    const int64_t part = bytes[static_cast<size_t>(from)];
    from == root ? copy_own(own, part, bytes_at(all, at)) : receive(from, bytes_at(all, at), part);
    at += part;
  }
}

void Communicator::all_gather(const void* own, std::span<const int64_t> bytes, void* all) {
  const int64_t total = offset_of(bytes, size());
  if (total <= kSmallBytes) {
    gather(0, own, bytes, all);
    return broadcast(0, all, total);
  }
  copy_own(own, bytes[static_cast<size_t>(rank())], bytes_at(all, offset_of(bytes, rank())));
  int64_t at = 0;
  for (int from = 0; from < size(); ++from) {
    broadcast(from, bytes_at(all, at), bytes[static_cast<size_t>(from)]);
    at += bytes[static_cast<size_t>(from)];
  }
}

void Communicator::begin_steps(int64_t count) {
  steps_ = count;
  next_ = rank();
}

int64_t Communicator::next_step() {
  if (next_ >= steps_) return -1;
  const int64_t step = next_;
  next_ += size();
  return step;
}

}  // namespace kith
