// A FAISS file being read sequentially: numbers, arrays and tags. Reads never leave the file, and no array is allocated
// that the file is too short for. Also the header that all indexes in such files have.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "index/index_parts.hpp"
#include "io/posix_file.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kith {

class FaissSource {
 public:
  FaissSource(const std::string& path, const Resources& resources);

  const std::string& path() const { return path_; }
  const Resources& resources() const { return resources_; }
  int64_t at() const { return at_; }
  int64_t left() const { return file_.size - at_; }

  // `what` is for the error if the file ends inside of it.
  void read(void* out, int64_t bytes, std::string_view what);
  void skip(int64_t bytes, std::string_view what);
  template <typename T>
  T number(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    read(&value, sizeof(value), what);
    return value;
  }
  bool flag(std::string_view what);
  std::string tag();

  // The number of elements that follow, checked against the rest of the file.
  int64_t count(int64_t element_bytes, std::string_view what);
  // A number that must be in [least, most].
  int64_t bounded(uint64_t least, uint64_t most, std::string_view what);
  void exactly(int64_t value, std::string_view what) {
    (void)bounded(static_cast<uint64_t>(value), static_cast<uint64_t>(value), what);
  }
  // An array with its number of values, which must be `expected`.
  std::vector<float> floats(int64_t expected, std::string_view what);
  template <typename T>
  HostArray<T> array(int64_t expected, std::string_view what) {
    expect_count(static_cast<int64_t>(sizeof(T)), expected, what);
    HostArray<T> values(expected, what, resources_);
    read(values.data(), values.bytes(), what);
    return values;
  }
  void skip_array(int64_t element_bytes, std::string_view what) {
    skip(count(element_bytes, what) * element_bytes, what);
  }
  void expect_count(int64_t element_bytes, int64_t expected, std::string_view what);

  // CorruptFile at the value that was read last.
  [[noreturn]] void corrupt(std::string_view reason) const;
  [[noreturn]] void refused(std::string_view reason) const;
  [[noreturn]] void unsupported(std::string_view reason) const;

 private:
  void check_left(int64_t bytes, std::string_view what) const;

  std::string path_;
  OpenedFile file_;
  Resources resources_;
  int64_t at_ = 0;
  std::vector<std::byte> buffer_;  // a part of the file, from buffer_at_ on
  int64_t buffer_at_ = 0;
};

// Constants in FAISS's files: metrics, and types of the scalar quantizer.

enum class FaissMetric : int32_t { inner_product = 0, l2 = 1, l1 = 2, linf = 3 };

enum class FaissScalar : int32_t {
  bits8 = 0,
  bits4 = 1,
  bits8_uniform = 2,
  bits4_uniform = 3,
  fp16 = 4,
  bits8_direct = 5,
  bits6 = 6,
  bf16 = 7,
  bits8_direct_signed = 8
};

inline constexpr int64_t kMostFaissRows = std::numeric_limits<int32_t>::max();
inline constexpr uint32_t kMostFaissCols = 1 << 20;  // FAISS's own limit

struct FaissHeader {
  int64_t cols = 0;
  int64_t rows = 0;
  FaissMetric metric = FaissMetric::l2;
};

FaissHeader read_faiss_header(FaissSource& source);

// Parts with the header's numbers.
IndexParts begun_parts(FaissSource& source, const FaissHeader& header);

MatrixBuffer read_faiss_rows(FaissSource& source, const FaissHeader& header);

// Whether an index of that tag stores plain vectors.
inline bool is_flat_tag(std::string_view tag) { return tag == "IxF2" || tag == "IxFI" || tag == "IxFl"; }

}  // namespace kith
