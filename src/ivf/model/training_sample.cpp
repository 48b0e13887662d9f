#include "ivf/model/training_sample.hpp"

#include "cluster/kmeans_fit.hpp"
#include "core/counted_bytes.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/typed_row.hpp"
#include "cuda/device_info.hpp"
#include "cuda/device_memory.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/model/norm_training.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/row_sample.hpp"
#include "rows/rows_cuda.hpp"
#include "transform/transform_chain.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace kith {

namespace {

constexpr std::string_view kPurpose = "the training sample";
constexpr int64_t kPieceBytes = int64_t{256} << 20;

constexpr int64_t kShare = 4;        // fraction of the remaining memory that a sample may take
constexpr int64_t kPieceShare = 16;  // for rows being assigned to lists: searching the centres needs most of the memory

void make_row_unit_length(float* row, int64_t cols) {
  const double inverse = canonical_inverse_norm(canonical_squared_norm_cpu(row, cols));
  for (int64_t c = 0; c < cols; ++c) row[c] = static_cast<float>(row[c] * inverse);
}

// The drawn row numbers, ascending; they count against the memory limit.
struct DrawnRows {
  DrawnRows(RowSource& rows, int64_t most, const CounterRng& rng, const Resources& resources)
      : counted(array_bytes<uint32_t>(std::min(rows.rows(), most)), "the training rows' numbers", resources),
        numbers(sample_rows(rng, rows.rows(), std::min(rows.rows(), most), resources)) {}

  CountedBytes counted;
  std::vector<uint32_t> numbers;
};

// Memory besides the training itself: the row numbers, and a bit per row while they are drawn.
Footprint drawn_footprint(const RowsInfo& rows, int64_t count) {
  return array_footprint<uint32_t>(count).beside(array_footprint<uint64_t>(divide_up(rows.rows, 64)));
}

// The least memory to draw rows on a GPU piece by piece: a piece as f32 and in its final form.
Footprint drawing_footprint(const RowsInfo& rows, int64_t count, const Resources& resources) {
  if (rows.space.host_readable()) return {};
  const Footprint row = footprint_of<FloatRows>(resources, rows.space, int64_t{1}, rows.cols, kPurpose);
  return gathering_footprint(rows, count, resources).beside(row.times(2));
}

// The list of every drawn row, computed piece by piece.
HostArray<int32_t> lists_of(const CodedVectors& vectors, RowSource& rows, const std::vector<uint32_t>& numbers,
                            const Resources& resources) {
  constexpr int64_t kMostBytes = 1 << 20;
  const auto count = static_cast<int64_t>(numbers.size());
  HostArray<int32_t> lists(count, "the sample's lists", resources);
  const int64_t bytes = std::min(kMostBytes, resources.host_memory()->available() / kPieceShare);
  const int64_t piece = std::clamp<int64_t>(bytes / array_bytes<float>(vectors.centres.cols()), 1, count);
  GatheredSource source(rows, numbers, DType::f32, resources);
  source.open(piece, resources);
  for (int64_t first = 0; first < count; first += piece) {
    const MatrixView some = source.fetch(first, std::min(piece, count - first));
    assign_lists(vectors.metric, vectors.centres, some, lists.data() + first, resources);
  }
  return lists;
}

}  // namespace

TrainingSample::TrainingSample(RowSource& rows, int64_t most, const CounterRng& rng, const Use& use,
                               const Resources& resources) {
  if (!rows.space().host_readable()) {
    draw_on_gpu(rows, most, rng, use, resources);
    return;
  }
  const int64_t count = std::min(rows.rows(), most);
  take_room(count, rows.info().cols, MemorySpace::host(), resources);
  gather_as_floats(rows, drawn_rows(rng, rows.rows(), count, resources), typed_row<float>(own_.view(), 0), resources);
}

void TrainingSample::take_room(int64_t count, int64_t cols, MemorySpace space, const Resources& resources) {
  own_ = FloatRows(space, count, cols, kPurpose, resources);
  view_ = own_.view();
}

// Gathers the rows piece by piece, converts each piece to its final form, and copies it into the sample.
void TrainingSample::draw_on_gpu(RowSource& rows, int64_t most, const CounterRng& rng, const Use& use,
                                 const Resources& resources) {
  const RowsInfo info = rows.info();
  RowSource* const stored = rows.made_from() == nullptr ? &rows : rows.made_from();
  const MatrixView all = stored->fetch(0, info.rows);
  const int64_t count = std::min(info.rows, most);
  const bool as_they_are = stored == &rows && count == info.rows && all.dtype() == DType::f32;
  if (as_they_are && use.footprint_on_gpu && !use.changes_values) {
    view_ = all;
    return;
  }
  if (as_they_are && !use.footprint_on_gpu && all.row_stride() == all.cols()) {
    take_room(count, info.cols, MemorySpace::host(), resources);
    wait_for_stream(info.space.device, resources);
    return copy_to_host(all.data(), array_bytes<float>(count * info.cols), info.space.device, own_.view().data());
  }
  const MemorySpace space = info.space;
  const int64_t room = device_memory_left(space.device, resources);
  constexpr int64_t kRoomShare = 4;  // fraction of the free memory: k-means needs as much again, and more
  const int64_t bytes = array_bytes<float>(count * info.cols);
  const bool stays = use.footprint_on_gpu && bytes <= room / kRoomShare &&
                     (!counts_memory(resources) || use.footprint_on_gpu().device <= room - bytes);
  take_room(count, info.cols, stays ? space : MemorySpace::host(), resources);
  const int64_t widest = std::max(info.cols, all.cols());
  const int64_t piece =
      std::clamp<int64_t>(std::min(kPieceBytes, room / 16) / (4 * widest), 1, std::max<int64_t>(count, 1));
  const bool made = stored != &rows;
  const FloatRows gathered(space, piece, all.cols(), kPurpose, resources);
  const FloatRows finished(space, made && !stays ? piece : 0, info.cols, kPurpose, resources);
  const std::vector<uint32_t> numbers = drawn_rows(rng, info.rows, count, resources);
  for (int64_t first = 0; first < count; first += piece) {
    resources.check_cancelled();
    const int64_t some = std::min(piece, count - first);
    const std::vector<uint32_t> wanted(numbers.begin() + first, numbers.begin() + first + some);
    const MutableMatrixView to = made || !stays ? gathered.view().slice(0, some) : own_.view().slice(first, some);
    const MutableMatrixView place = stays ? own_.view().slice(first, some) : made ? finished.view().slice(0, some) : to;
    gather_floats_cuda(all, wanted, typed_row<float>(to, 0), resources);
    if (made) rows.make(to, place, resources);
    if (!stays) copy_to_host(place.data(), array_bytes<float>(some * info.cols), space.device, own_.view().row(first));
  }
}

void TrainingSample::make_unit_length(const Resources& resources) {
  const int64_t cols = view_.cols();
  TransformChain()
      .then(std::make_shared<const Transform>(
          TransformParts{TransformParts::Kind::unit_length, "L2norm", cols, cols, {}, {}}, resources))
      .apply(view_, own_.view(), resources);
}

bool sample_fits(int64_t rows, int64_t cols, const std::function<Footprint()>& beside, const Resources& resources) {
  const MemoryBudget& budget = *resources.host_memory();
  const int64_t left = budget.available();
  if (rows > left / kShare / array_bytes<float>(cols)) return false;
  return budget.limit() == kNoLimit || beside().host <= left - array_bytes<float>(rows * cols);
}

Footprint centre_training_footprint(const KMeansParams& params, const RowsInfo& rows, int64_t most,
                                    const Resources& resources) {
  const int64_t count = std::min(rows.rows, most);
  const Footprint fit =
      drawn_footprint(rows, count).beside(fit_footprint(params, GatheredSource::info_of(rows, count), resources));
  if (rows.space.host_readable()) return fit;
  // The sample may be in host memory, or be the rows themselves.
  const RowsInfo there(count, rows.cols, DType::f32, rows.space);
  return fit.beside(array_footprint<float>(count, rows.cols))
      .then(fit_footprint(params, there, resources))
      .then(drawing_footprint(rows, count, resources));
}

Footprint code_training_footprint(const CodeRecipe& code, int64_t lists, Metric metric, const RowsInfo& rows,
                                  int64_t most, const Resources& resources) {
  const int64_t count = std::min(rows.rows, most);
  const RowsInfo info = GatheredSource::info_of(rows, count);
  Footprint working = Codec::training_footprint(code, info, resources);
  if (code.norm != CodeNorm::decoded) working = working.then(norm_training_footprint(code, info, resources));
  if (lists > 0) {  // assigning them takes part of the remaining memory
    const Footprint assigning = assign_footprint(metric, lists, {1, info.cols, DType::f32}, resources);
    working = working.then({assigning.host * kPieceShare / (kPieceShare - 1), assigning.device});
  }
  return drawn_footprint(rows, count)
      .beside(array_footprint<int32_t>(count))
      .beside(
          working.beside(gathering_footprint(rows, count, resources)).then(drawing_footprint(rows, count, resources)));
}

MatrixBuffer train_centres_streamed(const KMeansParams& params, Metric metric, const RowDraw& from,
                                    const KMeansInput& input, const Resources& resources) {
  RowSource& rows = from.rows;
  const RowsInfo info = GatheredSource::info_of(rows.info(), std::min(rows.rows(), from.most));
  const DrawnRows drawn(rows, from.most, from.rng, resources);
  const int64_t cols = info.cols;
  const GatheredSource::Step step =
      metric == Metric::cosine ? GatheredSource::Step([=](float* row, int64_t) { make_row_unit_length(row, cols); })
                               : GatheredSource::Step();
  KMeansRows source;
  source.info = info;
  source.open = [&](int64_t piece, const Resources& planned) {
    auto made = std::make_unique<GatheredSource>(rows, drawn.numbers, DType::f32, planned, step);
    made->open(piece, planned);
    return made;
  };
  return std::move(fit_kmeans(params, source, input, resources).centres);
}

namespace {

std::shared_ptr<const Codec> train_code_streamed(const CodeRecipe& code, const CodedVectors& vectors, RowSource& rows,
                                                 int64_t most, const CounterRng& rng, uint64_t seed,
                                                 const Resources& resources) {
  const bool residual = vectors.centres.rows() > 0;
  const DrawnRows drawn(rows, most, rng, resources);
  const HostArray<int32_t> lists = residual ? lists_of(vectors, rows, drawn.numbers, resources) : HostArray<int32_t>();
  const int64_t cols = rows.info().cols;
  const GatheredSource::Step less_centre = [&](float* row, int64_t place) {
    const float* const centre = typed_row<float>(vectors.centres, lists[place]);
    for (int64_t c = 0; c < cols; ++c) row[c] -= centre[c];
  };
  const GatheredSource::Step step = residual ? less_centre : GatheredSource::Step();
  GatheredSource source(rows, drawn.numbers, DType::f32, resources, step);
  CodeRecipe without = code;
  without.norm = CodeNorm::decoded;
  without.of_residuals = vectors.centres.rows() > 0;
  std::shared_ptr<const Codec> codec = Codec::train(without, source, seed, resources);
  if (code.norm == CodeNorm::decoded) return codec;
  GatheredSource again(rows, drawn.numbers, DType::f32, resources, step);
  return with_norms(codec, code.norm, again, residual ? lists.data() : nullptr, vectors.centres, resources);
}

}  // namespace

std::shared_ptr<const Codec> train_code(const CodeRecipe& code, const CodedVectors& vectors, RowSource& rows,
                                        int64_t most, const CounterRng& rng, uint64_t seed,
                                        const Resources& resources) {
  const auto training = [&] {
    return code_training_footprint(code, vectors.centres.rows(), vectors.metric, rows.info(), most, resources);
  };
  if (!sample_fits(std::min(rows.rows(), most), rows.info().cols, training, resources)) {
    return train_code_streamed(code, vectors, rows, most, rng, seed, resources);
  }
  MatrixBuffer sample = TrainingSample(rows, most, rng, {}, resources).on_host();
  HostArray<int32_t> lists;
  if (vectors.centres.rows() > 0) {
    lists = HostArray<int32_t>(sample.rows(), "the sample's lists", resources);
    assign_lists(vectors.metric, vectors.centres, sample.view(), lists.data(), resources);
    for (int64_t i = 0; i < sample.rows(); ++i) {
      float* const row = typed_row<float>(sample.mutable_view(), i);
      const float* const centre = typed_row<float>(vectors.centres, lists[i]);
      for (int64_t c = 0; c < sample.cols(); ++c) row[c] -= centre[c];
    }
  }
  CodeRecipe without = code;
  without.norm = CodeNorm::decoded;
  without.of_residuals = vectors.centres.rows() > 0;
  std::shared_ptr<const Codec> codec = Codec::train(without, sample.view(), seed, resources);
  if (code.norm == CodeNorm::decoded) return codec;
  ViewSource source(sample.view());
  return with_norms(codec, code.norm, source, lists.data(), vectors.centres, resources);
}

}  // namespace kith
