// Reads one section of a .kith container from front to back through a small buffer, for sections that do not fit into
// memory. The hash is verified with the last byte: callers that use earlier bytes must discard what they made of them
// if CorruptFile is thrown.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "io/container/container_file.hpp"
#include "io/container/xxh3.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

class SectionStream {
 public:
  // The file and its section must outlive it.
  SectionStream(const ContainerFile& file, const Section& section, int64_t buffer_bytes, const Resources& resources);

  // The next bytes. CorruptFile where the section ends before.
  void read(void* out, int64_t bytes);
  template <typename T>
  T next() {
    T value{};
    read(&value, sizeof(value));
    return value;
  }

 private:
  void fill();

  const ContainerFile& file_;
  const Section& section_;
  HostArray<std::byte> buffer_;
  int64_t begin_ = 0;  // of what is left in the buffer
  int64_t end_ = 0;
  int64_t fetched_ = 0;  // bytes of the section
  Xxh3 hash_;
};

}  // namespace kith
