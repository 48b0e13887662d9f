// Kernels read nothing past the last row and write nothing past the last value: a page without access follows both.
#include "kernels/distance/distance_block_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/forced_target.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

// Values that end where a page does, which the next one forbids to pass.
template <typename T>
class GuardedValues {
 public:
  explicit GuardedValues(int64_t count) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    size_ = (bytes + page - 1) / page * page + page;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    auto* const guard = static_cast<std::byte*>(memory_) + size_ - page;
    mprotect(guard, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(guard - bytes);
  }
  explicit GuardedValues(const std::vector<T>& values) : GuardedValues(static_cast<int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), data_);
  }
  ~GuardedValues() { munmap(memory_, size_); }
  GuardedValues(const GuardedValues&) = delete;
  GuardedValues& operator=(const GuardedValues&) = delete;
  T* data() const { return data_; }

 private:
  void* memory_;
  size_t size_;
  T* data_;
};

constexpr int64_t kColumns[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 19, 24, 31, 32, 33, 35, 48, 63, 64, 65, 100, 130};
constexpr int64_t kRowCounts[] = {1, 2, 7, 31, 64, 77, 130};

TEST(GuardedRows, BlocksOfPairs) {
  for (const int64_t cols : kColumns) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t count : {1, 2, 7}) {
        const GuardedValues<float> queries(make_floats(Shape::gaussian, count, cols, 1).values);
        const GuardedValues<float> base(make_floats(Shape::gaussian, rows, cols, 2).values);
        const GuardedValues<float> keys(count * rows);
        std::vector<CanonicalQuery> canonical;
        for (int64_t q = 0; q < count; ++q) {
          const float* const values = queries.data() + q * cols;
          canonical.push_back({values, canonical_inverse_norm(canonical_squared_norm_cpu(values, cols))});
        }
        const HostBuffer scratch(canonical_block_bytes(cols), "a test", Resources());
        for (const std::string& target : targets_for_next_case()) {
          const ForcedTarget forced(target);
          for (const KeyKind kind : {KeyKind::l1, KeyKind::squared_l2, KeyKind::cosine, KeyKind::linf}) {
            const MatrixView view(base.data(), rows, cols);
            canonical_block_cpu({kind, canonical.data(), count, view, keys.data(), rows}, scratch.data());
          }
        }
      }
    }
  }
}

TEST(GuardedRows, ScansOfRowsAsTheyLie) {
  for (const int64_t cols : kColumns) {
    for (const int64_t rows : kRowCounts) {
      const GuardedValues<float> query(make_floats(Shape::gaussian, 1, cols, 3).values);
      const GuardedValues<float> base(make_floats(Shape::gaussian, rows, cols, 4).values);
      const GuardedValues<uint8_t> bytes(make_bytes(rows, cols, 5).values);
      const GuardedValues<uint8_t> byte_query(make_bytes(1, cols, 6).values);
      std::vector<float> whole(static_cast<size_t>(cols));
      std::copy_n(byte_query.data(), cols, whole.begin());
      const GuardedValues<float> wide_query(whole);
      const GuardedValues<float> values(rows);
      const GuardedValues<float> facts(rows);
      const MatrixView floats(base.data(), rows, cols);
      const MatrixView stored(bytes.data(), DType::u8, {rows, cols, cols});
      for (const std::string& target : targets_for_next_case()) {
        const ForcedTarget forced(target);
        for (float* const wanted : {facts.data(), static_cast<float*>(nullptr)}) {
          for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::inner_product, KeyKind::cosine, KeyKind::l1}) {
            scan_rows_cpu(kind, query.data(), floats, values.data(), wanted);
            scan_rows_cpu(kind, wide_query.data(), stored, values.data(), wanted);
            if (!is_product(kind) || !has_byte_scan() || cols < kFewestDotColumns) continue;
            scan_byte_rows_cpu(kind, byte_query.data(), 1, stored, values.data(), wanted);
          }
          scan_rows_cpu(KeyKind::hamming, wide_query.data(), stored, values.data(), nullptr);
        }
      }
    }
  }
}

TEST(GuardedRows, PackedUnits) {
  for (const int64_t cols : kColumns) {
    for (const int64_t rows : kRowCounts) {
      const GuardedValues<float> base(make_floats(Shape::gaussian, rows, cols, 7).values);
      for (const int64_t width : {rows, rows + 5}) {
        const GuardedValues<uint32_t> out(cols * width);
        pack_units(reinterpret_cast<const uint32_t*>(base.data()), cols, rows, cols, width, out.data());
        for (int64_t c = 0; c < cols; ++c) {
          for (int64_t i = 0; i < width; ++i) {
            float value;
            std::memcpy(&value, out.data() + c * width + i, sizeof value);
            ASSERT_EQ(value, i < rows ? base.data()[i * cols + c] : 0.0f) << cols << " x " << rows << " in " << width;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kith
