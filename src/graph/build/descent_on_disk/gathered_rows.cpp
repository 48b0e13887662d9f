#include "graph/build/descent_on_disk/gathered_rows.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "graph/lists/start_rules.hpp"
#include "rows/rows_info.hpp"
#include "rows/threaded_rows.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kWindowBytes = 64 << 10;  // that are read together
constexpr int64_t kGapBytes = 2 << 10;      // reading them is sooner than another read
constexpr int64_t kRowsPerRead = 4096;      // of a task
constexpr int64_t kSortedWords = 64;        // sorting a row takes no longer than counting so many words

int64_t window_rows(const VectorFile& x) {
  return std::max<int64_t>(1, kWindowBytes / std::max<int64_t>(1, RowsInfo(x).row_bytes()));
}

}  // namespace

GatheredRows::GatheredRows(const VectorFile& x, int64_t most, const Resources& resources)
    : x_(x),
      parallel_(reads_in_parallel(x)),
      resources_(resources.with_progress({})),
      most_(most),
      bits_(divide_up(x.rows(), 64), "the rows of joins", resources_),
      before_(divide_up(x.rows(), 64), "the rows of joins", resources_),
      listed_(most, "the rows of joins", resources_),
      rows_(x.dtype(), most, x.cols(), "the rows of joins", resources_),
      windows_(resources.threads() * window_rows(x) * RowsInfo(x).row_bytes(), "the rows of joins", resources_) {
  std::fill(bits_.begin(), bits_.end(), uint64_t{0});
}

void GatheredRows::clear() {
  if (are_few()) {
    for (int64_t i = 0; i < count_; ++i) bits_[listed_[i] / 64] = 0;
  } else {
    std::fill(bits_.begin(), bits_.end(), uint64_t{0});
  }
  count_ = 0;
}

bool GatheredRows::are_few() const { return count_ < bits_.size() / kSortedWords; }

bool GatheredRows::add(const uint32_t* rows, int64_t count) {
  const int64_t before = count_;
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] == kNobody || has(rows[i])) continue;
    if (count_ == most_) {  // takes back what this call has added, the end of the list
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
  count_places();
  const int64_t each = window_rows(x_);
  if (!parallel_) return read(0, count_, {windows_.data(), each * resources_.threads()});
  ProgressMeter meter("gather", count_, resources_);
  parallel_for(divide_up(count_, kRowsPerRead), meter, resources_, [&](int64_t task, int slot) {
    read(task * kRowsPerRead, std::min((task + 1) * kRowsPerRead, count_),
         {windows_.data() + slot * each * RowsInfo(x_).row_bytes(), each});
  });
}

// Sorts the rows. Without a pass over all of the file's where they are few: then only the words that hold one are
// counted.
void GatheredRows::count_places() {
  if (are_few()) {
    std::sort(listed_.data(), listed_.data() + count_);
    for (int64_t i = count_ - 1; i >= 0; --i) before_[listed_[i] / 64] = static_cast<uint32_t>(i);
    return;
  }
  uint32_t place = 0;
  for (int64_t word = 0; word < bits_.size(); ++word) {
    before_[word] = place;
    for (uint64_t bits = bits_[word]; bits != 0; bits &= bits - 1) {
      listed_[place++] = static_cast<uint32_t>(word * 64 + std::countr_zero(bits));
    }
  }
}

void GatheredRows::read(int64_t first, int64_t end, const Window& window) {
  const int64_t row_bytes = RowsInfo(x_).row_bytes();
  const int64_t gap = kGapBytes / std::max<int64_t>(1, row_bytes);
  const MutableMatrixView out = rows_.mutable_view();
  for (int64_t i = first; i < end;) {
    const uint32_t begin = listed_[i];
    int64_t next = i + 1;
    while (next < end && listed_[next] - listed_[next - 1] <= gap + 1 && listed_[next] - begin < window.rows) ++next;
    const int64_t span = listed_[next - 1] - begin + 1;
    if (span == next - i) {
      x_.read(begin, out.slice(i, span));
    } else {
      x_.read(begin, MutableMatrixView(window.data, x_.dtype(), {span, x_.cols(), x_.cols()}));
      for (int64_t at = i; at < next; ++at) {
        std::memcpy(out.row(at), window.data + (listed_[at] - begin) * row_bytes, static_cast<size_t>(row_bytes));
      }
    }
    i = next;
  }
}

}  // namespace kith
