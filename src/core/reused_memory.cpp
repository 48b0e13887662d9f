#include "core/reused_memory.hpp"

#include <bit>
#include <cstdlib>
#include <utility>

namespace kith {
namespace {

constexpr size_t kBlockAlignment = 64;

// Block sizes: four up to 256 bytes, then four for each power of two, so that a block is at most a quarter larger than
// requested.
constexpr size_t kSteps = 4;
constexpr size_t kFirstBits = 8;
constexpr size_t kSizes = kSteps + (std::bit_width(kLargestReused) - 1 - kFirstBits) * kSteps;
static_assert(kSteps * kBlockAlignment == 1 << kFirstBits);

struct BlockSize {
  size_t bytes = 0;
  size_t number = 0;
};

BlockSize size_for(size_t bytes) {
  if (bytes <= kSteps * kBlockAlignment) {
    const size_t steps = bytes == 0 ? 1 : (bytes - 1) / kBlockAlignment + 1;
    return {steps * kBlockAlignment, steps - 1};
  }
  const size_t bits = std::bit_width(bytes - 1) - 1;  // 2^bits < bytes <= 2^(bits + 1)
  const size_t power = size_t{1} << bits;
  const size_t steps = (bytes - 1 - power) / (power / kSteps) + 1;
  return {power + steps * (power / kSteps), (bits - kFirstBits + 1) * kSteps + steps - 1};
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReuses = false;
#else
constexpr bool kReuses = true;
#endif

struct FreeBlock {
  FreeBlock* next;
};

// A thread's blocks. It has no destructor, so that others' destructors may use it when the thread ends.
struct ThreadBlocks {
  FreeBlock* first[kSizes];
  size_t bytes;
  bool watched;  // something will give them to the system when the thread ends,
  bool ended;    // or has done so: nothing is kept any more
  int64_t allocated;
};
thread_local constinit ThreadBlocks blocks{};

struct ThreadEnd {
  void watch() const { blocks.watched = true; }
  ~ThreadEnd() {
    blocks.ended = true;
    for (FreeBlock*& first : blocks.first) {
      while (first != nullptr) std::free(std::exchange(first, first->next));
    }
  }
};
thread_local ThreadEnd thread_end;

void* allocate(size_t bytes) {
  ++blocks.allocated;
  return std::aligned_alloc(kBlockAlignment, (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
}

bool is_reused(size_t bytes) { return kReuses && bytes <= kLargestReused; }

}  // namespace

int64_t system_blocks() { return blocks.allocated; }

void* take_reused(size_t bytes) noexcept {
  if (!is_reused(bytes)) return allocate(bytes);
  const BlockSize size = size_for(bytes);
  FreeBlock*& first = blocks.first[size.number];
  if (first == nullptr) return allocate(size.bytes);
  blocks.bytes -= size.bytes;
  return std::exchange(first, first->next);
}

void give_reused(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  if (!is_reused(bytes) || blocks.ended) return std::free(block);
  const BlockSize size = size_for(bytes);
  if (blocks.bytes + size.bytes > kMostReused) return std::free(block);
  if (!blocks.watched) thread_end.watch();
  FreeBlock*& first = blocks.first[size.number];
  first = new (block) FreeBlock{first};
  blocks.bytes += size.bytes;
}

}  // namespace kith
