#include "ivf/model/streamed_training.hpp"

#include "cluster/kmeans_fit.hpp"
#include "rows/row_sample.hpp"
#include "core/counted_bytes.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/typed_row.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/model/norm_training.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kShare = 4;  // of what is left, for a sample in memory
constexpr int64_t kPieceShare = 16;  // for rows whose lists are looked for: the search for centres needs most of it

// What is done to a row that was drawn at that place.
using RowStep = std::function<void(float* row, int64_t place)>;

void make_unit_length(float* row, int64_t cols) {
  const double inverse = canonical_inverse_norm(canonical_squared_norm_cpu(row, cols));
  for (int64_t c = 0; c < cols; ++c) row[c] = static_cast<float>(row[c] * inverse);
}

// Row numbers that were drawn, ascending; they count against the limit.
struct DrawnRows {
  DrawnRows(RowSource& rows, int64_t most, const CounterRng& rng, const Resources& resources)
      : counted(array_bytes<uint32_t>(std::min(rows.rows(), most)), "the training rows' numbers", resources),
        numbers(sample_rows(rng, rows.rows(), std::min(rows.rows(), most), resources)) {}

  CountedBytes counted;
  std::vector<uint32_t> numbers;
};

// Beside what is trained on them: their numbers, and a bit a row while they are drawn.
Footprint drawn_footprint(const RowsInfo& rows, int64_t count) {
  return array_footprint<uint32_t>(count).beside(array_footprint<uint64_t>(divide_up(rows.rows, 64)));
}

// Drawn rows as f32, gathered anew at each fetch.
class DrawnSource final : public RowSource {
 public:
  // All must outlive it.
  DrawnSource(RowSource& from, const std::vector<uint32_t>& numbers, const RowStep& step, const Resources& resources)
      : from_(from), numbers_(numbers), step_(step), resources_(resources.with_progress({})) {}

  static RowsInfo info_of(const RowsInfo& from, int64_t rows) {
    RowsInfo info(rows, from.cols, DType::f32);
    info.in_memory = false;
    return info;
  }

  RowsInfo info() const override { return info_of(from_.info(), static_cast<int64_t>(numbers_.size())); }
  void open(int64_t most, const Resources& resources) override {
    resources_ = resources.with_progress({});
    buffer_ = MatrixBuffer(DType::f32, std::min(most, info().rows), info().cols, "drawn rows", resources);
  }
  MatrixView fetch(int64_t first, int64_t count) override {
    const MutableMatrixView out = buffer_.mutable_view().slice(0, count);
    take({numbers_.begin() + first, numbers_.begin() + first + count}, out, [&](int64_t i) { return first + i; });
    return out;
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources&) override {
    std::vector<uint32_t> some(static_cast<size_t>(count));
    std::transform(rows, rows + count, some.begin(), [&](uint32_t place) { return numbers_[place]; });
    take(some, out, [&](int64_t i) { return int64_t{rows[i]}; });
  }

 private:
  template <typename PlaceOf>
  void take(const std::vector<uint32_t>& some, const MutableMatrixView& out, const PlaceOf& place_of) {
    gather_as_floats(from_, some, static_cast<float*>(out.data()), resources_);
    if (!step_) return;
    for (int64_t i = 0; i < out.rows(); ++i) step_(typed_row<float>(out, i), place_of(i));
  }

  RowSource& from_;
  const std::vector<uint32_t>& numbers_;
  const RowStep& step_;
  Resources resources_;
  MatrixBuffer buffer_;
};

// The list of every drawn row, a piece at a time.
HostArray<int32_t> lists_of(const CodedVectors& vectors, RowSource& rows, const std::vector<uint32_t>& numbers,
                            const Resources& resources) {
  constexpr int64_t kPieceBytes = 1 << 20;
  const auto count = static_cast<int64_t>(numbers.size());
  HostArray<int32_t> lists(count, "the sample's lists", resources);
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / kPieceShare);
  const int64_t piece = std::clamp<int64_t>(bytes / array_bytes<float>(vectors.centres.cols()), 1, count);
  const RowStep nothing;
  DrawnSource source(rows, numbers, nothing, resources);
  source.open(piece, resources);
  for (int64_t first = 0; first < count; first += piece) {
    const MatrixView some = source.fetch(first, std::min(piece, count - first));
    assign_lists(vectors.metric, vectors.centres, some, lists.data() + first, resources);
  }
  return lists;
}

}  // namespace

bool sample_fits(int64_t rows, int64_t cols, const Resources& resources) {
  return rows <= resources.host_memory()->available() / kShare / array_bytes<float>(cols);
}

Footprint centre_training_footprint(const KMeansParams& params, const RowsInfo& rows, int64_t most,
                                    const Resources& resources) {
  const int64_t count = std::min(rows.rows, most);
  return drawn_footprint(rows, count).beside(
      fit_footprint(params, DrawnSource::info_of(rows, count), resources));
}

Footprint code_training_footprint(const CodeRecipe& code, int64_t lists, Metric metric, const RowsInfo& rows,
                                  int64_t most, const Resources& resources) {
  const int64_t count = std::min(rows.rows, most);
  const RowsInfo info = DrawnSource::info_of(rows, count);
  Footprint working = Codec::training_footprint(code, info, resources);
  if (code.norm != CodeNorm::decoded) working = working.then(norm_training_footprint(code, info, resources));
  if (lists > 0) {  // looked for with a share of what is left beside
    const int64_t assigning = assign_footprint(metric, lists, {1, info.cols, DType::f32}, resources).host;
    working = working.then({assigning * kPieceShare / (kPieceShare - 1)});
  }
  return drawn_footprint(rows, count).beside(array_footprint<int32_t>(count)).beside(working);
}

MatrixBuffer train_centres_streamed(const KMeansParams& params, Metric metric, RowSource& rows, int64_t most,
                                    const CounterRng& rng, const Resources& resources) {
  const RowsInfo info = DrawnSource::info_of(rows.info(), std::min(rows.rows(), most));
  const DrawnRows drawn(rows, most, rng, resources);
  const int64_t cols = info.cols;
  const RowStep step =
      metric == Metric::cosine ? RowStep([=](float* row, int64_t) { make_unit_length(row, cols); }) : RowStep();
  KMeansRows source;
  source.info = info;
  source.open = [&](int64_t piece, const Resources& planned) {
    auto made = std::make_unique<DrawnSource>(rows, drawn.numbers, step, planned);
    made->open(piece, planned);
    return made;
  };
  return std::move(fit_kmeans(params, source, {}, resources).centres);
}

std::shared_ptr<const Codec> train_code_streamed(const CodeRecipe& code, const CodedVectors& vectors, RowSource& rows,
                                                 int64_t most, const CounterRng& rng, uint64_t seed,
                                                 const Resources& resources) {
  const bool residual = vectors.centres.rows() > 0;
  const DrawnRows drawn(rows, most, rng, resources);
  const HostArray<int32_t> lists =
      residual ? lists_of(vectors, rows, drawn.numbers, resources) : HostArray<int32_t>();
  const int64_t cols = rows.info().cols;
  const RowStep less_centre = [&](float* row, int64_t place) {
    const float* const centre = typed_row<float>(vectors.centres, lists[place]);
    for (int64_t c = 0; c < cols; ++c) row[c] -= centre[c];
  };
  const RowStep step = residual ? less_centre : RowStep();
  DrawnSource source(rows, drawn.numbers, step, resources);
  CodeRecipe without = code;
  without.norm = CodeNorm::decoded;
  std::shared_ptr<const Codec> codec = Codec::train(without, source, seed, resources);
  if (code.norm == CodeNorm::decoded) return codec;
  DrawnSource again(rows, drawn.numbers, step, resources);
  return with_norms(codec, code.norm, again, residual ? lists.data() : nullptr, vectors.centres, resources);
}

}  // namespace kith
