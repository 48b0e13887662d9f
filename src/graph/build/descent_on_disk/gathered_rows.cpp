#include "graph/build/descent_on_disk/gathered_rows.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "graph/lists/start_rules.hpp"
#include "rows/rows_info.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kWindowBytes = 64 << 10;  // that are read together
constexpr int64_t kGapBytes = 2 << 10;      // reading them is sooner than another read
constexpr int64_t kRowsPerRead = 4096;      // of a task

int64_t window_rows(const VectorFile& x) {
  return std::max<int64_t>(1, kWindowBytes / std::max<int64_t>(1, RowsInfo(x).row_bytes()));
}

}  // namespace

GatheredRows::GatheredRows(const VectorFile& x, int64_t most, const Resources& resources)
    : x_(x),
      resources_(resources.with_progress({})),
      most_(most),
      bits_(divide_up(x.rows(), 64), "the rows of joins", resources_),
      before_(divide_up(x.rows(), 64), "the rows of joins", resources_),
      listed_(most, "the rows of joins", resources_),
      rows_(x.dtype(), most, x.cols(), "the rows of joins", resources_),
      windows_(resources.threads() * window_rows(x) * RowsInfo(x).row_bytes(), "the rows of joins", resources_) {}

void GatheredRows::clear() {
  std::fill(bits_.begin(), bits_.end(), uint64_t{0});
  count_ = 0;
}

bool GatheredRows::add(const uint32_t* rows, int64_t count) {
  const int64_t before = count_;
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] == kNobody || has(rows[i])) continue;
    if (count_ == most_) {  // those just added, which are at the end of the list, go again
      for (int64_t at = before; at < count_; ++at) bits_[listed_[at] / 64] &= ~(uint64_t{1} << listed_[at] % 64);
      count_ = before;
      return false;
    }
    bits_[rows[i] / 64] |= uint64_t{1} << rows[i] % 64;
    listed_[count_++] = rows[i];
  }
  return true;
}

void GatheredRows::load() {
  uint32_t place = 0;
  for (int64_t word = 0; word < bits_.size(); ++word) {
    before_[word] = place;
    for (uint64_t bits = bits_[word]; bits != 0; bits &= bits - 1) {
      listed_[place++] = static_cast<uint32_t>(word * 64 + std::countr_zero(bits));
    }
  }
  ProgressMeter meter("gather", count_, resources_);
  const int64_t window = window_rows(x_) * RowsInfo(x_).row_bytes();
  parallel_for(divide_up(count_, kRowsPerRead), meter, resources_, [&](int64_t task, int slot) {
    read(task * kRowsPerRead, std::min((task + 1) * kRowsPerRead, count_), windows_.data() + slot * window);
  });
}

void GatheredRows::read(int64_t first, int64_t end, std::byte* window) {
  const int64_t row_bytes = RowsInfo(x_).row_bytes();
  const int64_t most = window_rows(x_);
  const int64_t gap = kGapBytes / std::max<int64_t>(1, row_bytes);
  const MutableMatrixView out = rows_.mutable_view();
  for (int64_t i = first; i < end;) {
    const uint32_t begin = listed_[i];
    int64_t next = i + 1;
    while (next < end && listed_[next] - listed_[next - 1] <= gap + 1 && listed_[next] - begin < most) ++next;
    const int64_t span = listed_[next - 1] - begin + 1;
    if (span == next - i) {
      x_.read(begin, out.slice(i, span));
    } else {
      x_.read(begin, MutableMatrixView(window, x_.dtype(), {span, x_.cols(), x_.cols()}));
      for (int64_t at = i; at < next; ++at) {
        std::memcpy(out.row(at), window + (listed_[at] - begin) * row_bytes, static_cast<size_t>(row_bytes));
      }
    }
    i = next;
  }
}

}  // namespace kith
