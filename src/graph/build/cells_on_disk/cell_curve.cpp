#include "graph/build/cells_on_disk/cell_curve.hpp"

#include "core/typed_row.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace kith {
namespace {

class CurveMaker {
 public:
  explicit CurveMaker(const MatrixView& centres) : centres_(centres), values_(static_cast<size_t>(centres.rows())) {}

  void halve(std::span<uint32_t> cells) {
    while (cells.size() > 2) {
      const uint32_t one = farthest(cells, cells.front());
      const uint32_t other = farthest(cells, one);
      for (const uint32_t cell : cells) values_[cell] = squared(cell, one) - squared(cell, other);
      const size_t half = cells.size() / 2;
      std::nth_element(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(half), cells.end(),
                       [&](uint32_t a, uint32_t b) { return std::pair(values_[a], a) < std::pair(values_[b], b); });
      halve(cells.first(half));
      cells = cells.subspan(half);
    }
  }

 private:
  double squared(uint32_t a, uint32_t b) const {
    const float* const one = typed_row<float>(centres_, a);
    const float* const other = typed_row<float>(centres_, b);
    double sum = 0;
    for (int64_t c = 0; c < centres_.cols(); ++c) sum += (double{one[c]} - other[c]) * (double{one[c]} - other[c]);
    return sum;
  }
  uint32_t farthest(std::span<const uint32_t> cells, uint32_t from) const {
    std::pair<double, uint32_t> most{-1, from};
    for (const uint32_t cell : cells) most = std::max(most, std::pair(squared(cell, from), cell));
    return most.second;
  }

  const MatrixView centres_;
  std::vector<double> values_;
};

}  // namespace

std::vector<uint32_t> cell_curve(const MatrixView& centres) {
  std::vector<uint32_t> cells(static_cast<size_t>(centres.rows()));
  std::iota(cells.begin(), cells.end(), 0u);
  CurveMaker(centres).halve(cells);
  return cells;
}

}  // namespace kith
