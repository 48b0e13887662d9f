// A FAISS file being written sequentially; it appears complete or not at all.
#pragma once

#include <kith/resources.hpp>

#include "io/atomic_file_writer.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace kith {

class FaissSink {
 public:
  FaissSink(const std::string& path, const Resources& resources) : file_(path), resources_(resources) {}

  void tag(std::string_view four_letters) { file_.write(four_letters.data(), 4); }
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    file_.write(&value, sizeof(value));
  }
  void flag(bool value) { number(static_cast<uint8_t>(value)); }
  void bytes(const void* data, int64_t bytes) {
    constexpr int64_t kStep = int64_t{16} << 20;
    const auto* from = static_cast<const std::byte*>(data);
    for (int64_t done = 0; done < bytes; done += kStep) {
      resources_.check_cancelled();
      file_.write(from + done, std::min(kStep, bytes - done));
    }
  }
  // The number of values, then the values.
  template <typename T>
  void values(std::span<const T> values) {
    number(static_cast<uint64_t>(values.size()));
    bytes(values.data(), static_cast<int64_t>(values.size_bytes()));
  }
  void commit() { file_.commit(); }

 private:
  AtomicFileWriter file_;
  const Resources& resources_;
};

}  // namespace kith
