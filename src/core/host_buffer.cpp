#include <kith/host_buffer.hpp>

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/machine_memory.hpp"
#include "core/memory_budget.hpp"
#include "core/reused_memory.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace kith {
namespace {

// Large buffers are mapped, so that freeing them returns the memory to the system and the process stays within its
// limit; huge pages avoid TLB misses when packed panels are scanned. Without a limit, buffers of a few megabytes come
// from the C library, which may reuse them, and small ones from the thread's own blocks (reused_memory.hpp): faulting
// in fresh pages takes longer than searching so few rows.
int64_t map_from(const MemoryBudget& budget) { return budget.promised() ? 1 << 20 : 32 << 20; }
constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kAlignment = 64;
// Smaller blocks are aligned here; the byte before a block holds its distance from malloc's pointer. The system's
// aligned allocation takes several times as long.
constexpr int64_t kAlignFrom = 4096;

void* map(int64_t bytes) {
  return mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Maps memory that begins on a huge page's boundary; the excess before and after it is unmapped.
void* map_aligned(int64_t bytes) {
  const int64_t size = round_up(bytes, int64_t{sysconf(_SC_PAGESIZE)});
  void* const memory = map(size + kHugePage);
  if (memory == MAP_FAILED) return map(bytes);
  auto* const first = static_cast<std::byte*>(memory);
  const int64_t before = -reinterpret_cast<intptr_t>(memory) & (kHugePage - 1);
  if (before > 0) munmap(first, static_cast<size_t>(before));
  if (before < kHugePage) munmap(first + before + size, static_cast<size_t>(kHugePage - before));
  return first + before;
}

// Asks for huge pages inside the block. A hint: if refused, only speed is lost.
void ask_for_huge_pages(std::byte* memory, int64_t bytes) {
  const int64_t before = -reinterpret_cast<intptr_t>(memory) & (kHugePage - 1);
  madvise(memory + before, static_cast<size_t>((bytes - before) / kHugePage * kHugePage), MADV_HUGEPAGE);
}

bool is_of_thread(int64_t bytes, const MemoryBudget& budget) {
  return !budget.promised() && bytes <= static_cast<int64_t>(kLargestReused);
}

std::byte* take(int64_t bytes, const MemoryBudget& budget) {
  if (is_of_thread(bytes, budget)) return static_cast<std::byte*>(take_reused(static_cast<size_t>(bytes)));
  if (bytes >= map_from(budget)) {
    void* const memory = bytes >= kHugePage ? map_aligned(bytes) : map(bytes);
    if (memory == MAP_FAILED) return nullptr;
    madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint: refusal costs speed alone
    return static_cast<std::byte*>(memory);
  }
  if (bytes < kAlignFrom) {
    auto* const block = static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes + kAlignment)));
    if (block == nullptr) return nullptr;
    const int64_t before = kAlignment - reinterpret_cast<intptr_t>(block) % kAlignment;  // one at least
    block[before - 1] = static_cast<std::byte>(before);
    return block + before;
  }
  auto* const block =
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(round_up(bytes, kAlignment))));
  if (block != nullptr && bytes >= 2 * kHugePage) ask_for_huge_pages(block, bytes);
  return block;
}

void give_back(std::byte* data, int64_t bytes, const MemoryBudget& budget) {
  if (is_of_thread(bytes, budget)) {
    give_reused(data, static_cast<size_t>(bytes));
  } else if (bytes >= map_from(budget)) {
    munmap(data, static_cast<size_t>(bytes));
  } else {
    std::free(bytes < kAlignFrom ? data - static_cast<int64_t>(data[-1]) : data);
  }
}

}  // namespace

HostBuffer::HostBuffer(int64_t bytes, std::string_view purpose, const Resources& resources)
    : bytes_(bytes), budget_(resources.host_memory()) {
  if (bytes < 0) throw InvalidArgument(fmt::format("{} would have {} bytes", purpose, bytes));
  budget_->reserve(bytes, purpose);
  if (budget_->counts_only()) {
    data_ = counted_only_memory();
    return;
  }
  try {
    check_machine_has(bytes, budget_->used(), purpose);
  } catch (...) {
    budget_->release(bytes);
    throw;
  }
  data_ = take(bytes, *budget_);
  if (data_ == nullptr) {
    budget_->release(bytes);
    throw OutOfMemory(fmt::format("not enough host memory for {}: {} needed, {}", purpose, format_bytes_up(bytes),
                                  refused_memory(bytes, free_host_memory())),
                      bytes);
  }
}

bool HostBuffer::only_counted() const { return budget_ != nullptr && budget_->counts_only(); }

void HostBuffer::release() noexcept {
  if (data_ == nullptr) return;
  if (!budget_->counts_only()) give_back(data_, bytes_, *budget_);
  budget_->release(bytes_);
  data_ = nullptr;
}

}  // namespace kith
