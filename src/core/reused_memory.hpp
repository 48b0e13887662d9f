// A free list of blocks for each thread: a warm search of one query allocates nothing beyond its result.
//
// A thread keeps freed blocks, up to kMostReused bytes of them, for later allocations of the same size. Larger blocks,
// and further ones, go to the system, as do all when the thread ends. A block may be freed by another thread than
// allocated it. A forked child continues with the blocks of the thread that forked.
//
// Buffers under a limit that the user set do not come from here (host_buffer.cpp): freeing them returns the memory to
// the system at once. With AddressSanitizer every block is freed, so that it detects use after free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace kith {

inline constexpr size_t kMostReused = size_t{4} << 20;
inline constexpr size_t kLargestReused = size_t{1} << 20;  // block

// Aligned to 64 bytes. Null where the system has no more.
void* take_reused(size_t bytes) noexcept;
// `bytes`: as given to take_reused().
void give_reused(void* block, size_t bytes) noexcept;

// How many blocks this thread has had from the system; for tests.
int64_t system_blocks();

// For the containers of a search.
template <typename T>
struct ReusedAllocator {
  using value_type = T;

  ReusedAllocator() = default;
  template <typename Other>
  ReusedAllocator(const ReusedAllocator<Other>&) {}
  T* allocate(size_t count) {
    void* const block = take_reused(count * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  void deallocate(T* block, size_t count) noexcept { give_reused(block, count * sizeof(T)); }
  template <typename Other>
  bool operator==(const ReusedAllocator<Other>&) const {
    return true;
  }
};
template <typename T>
using ReusedVector = std::vector<T, ReusedAllocator<T>>;

// A base of classes whose objects are made for a search.
struct InReusedMemory {
  static void* operator new(size_t bytes) { return ReusedAllocator<std::byte>().allocate(bytes); }
  static void operator delete(void* object, size_t bytes) { give_reused(object, bytes); }
};

}  // namespace kith
