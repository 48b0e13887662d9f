// Memory that a thread gives back and takes again: a warm search of one query allocates nothing beyond its result.
//
// A thread keeps the blocks that it gives back, up to kMostReused bytes of them, for the next who asks for as much;
// what is larger, or more, goes to the system, and so does all when the thread ends. Whoever gives a block back may be
// another thread than took it. A forked child goes on with the blocks of the thread that forked.
//
// Buffers that count against a limit somebody has set do not come from here (host_buffer.cpp): what they give back goes
// to the system at once. AddressSanitizer is given every block, so that it sees who uses one too long.
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
// `bytes`: as many as were asked for.
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
