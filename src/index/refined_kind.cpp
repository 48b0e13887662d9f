// "...,RFlat" and "...,Refine(SQ8)": an index with refinement. Beside the inner index it stores all vectors a second
// time, as they are or as more precise codes. A search asks the inner index for `refine` times k candidates and returns
// the first k of them by (distance to these vectors, row).
#include "core/placed.hpp"
#include "core/typed_row.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "index/factory.hpp"
#include "index/host_neighbors.hpp"
#include "index/refine.hpp"
#include "index/refine_gpu.hpp"
#include "ivf/model/training_sample.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "rows/finite_check.hpp"
#include "rows/host_rows.hpp"
#include "rows/segments.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kTrainingRows = 1 << 16;  // for the range of each column
constexpr uint64_t kSampleStream = 0x7265;  // of random numbers

constexpr std::string_view kCodesPurpose = "the index's codes";

// Codes in the order of rows, in segments that versions share (rows/segments.hpp).
class CodeStore {
 public:
  explicit CodeStore(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), codec_there_(std::make_shared<Placed<CodecOnDevice>>()) {}
  // Takes ownership of codes.
  CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes) : CodeStore(std::move(codec)) {
    const int64_t rows = codes.size() / codec_->format().bytes();
    if (rows > 0) codes_.push_back(std::make_shared<Codes>(std::make_shared<const RowCodes>(std::move(codes), rows)));
  }

  // Appends codes from a file: moved, or left in the mapped file.
  void restore(PartArray<uint8_t> codes, const Resources& resources) {
    const int64_t rows = codes.size() / codec_->format().bytes();
    if (rows == 0) return;
    if (!codes.unchecked()) {
      codes_.push_back(std::make_shared<Codes>(
          std::make_shared<const RowCodes>(std::move(codes).take(kCodesPurpose, resources), rows)));
      return;
    }
    const auto held = std::make_shared<const PartArray<uint8_t>>(std::move(codes));
    mapped_bytes_ += held->size();
    codes_.push_back(std::make_shared<Codes>(
        std::make_shared<const RowCodes>(held->data(), rows, held->size(), MemorySpace::host(), held)));
  }

  const Codec& codec() const { return *codec_; }
  int64_t rows() const { return codes_.rows(); }
  int64_t bytes() const { return rows() * codec_->format().bytes(); }
  int64_t bytes_in_memory() const { return bytes() - mapped_bytes_; }
  // Bytes of copies on GPUs.
  int64_t device_bytes() const { return codec_there_->bytes(DeviceKind::cuda) + codes_.bytes(DeviceKind::cuda); }

  // With rows of any dtype, in host memory, appended.
  CodeStore added(const MatrixView& rows, const Resources& resources) const {
    return grown(rows.rows(), resources, [&](uint8_t* to) { codec_->encode(rows, to, resources); });
  }
  // The memory of added().
  Footprint add_footprint(const RowsInfo& rows, const Resources& resources) const {
    const int64_t joined = codes_.rows() - codes_.first_row(codes_.staying(rows.rows)) + rows.rows;
    return Footprint{joined * codec_->format().bytes()}.beside(codec_->encoding_footprint(rows, resources));
  }
  // With the codes of another store of the same codec appended.
  CodeStore joined(const CodeStore& other, const Resources& resources) const {
    return grown(other.rows(), resources, [&](uint8_t* to) { other.copy_from(0, to); });
  }
  // Only the kept rows.
  CodeStore kept(const KeptRows& kept, const Resources& resources) const {
    const int64_t each = codec_->format().bytes();
    HostArray<uint8_t> left(kept.count() * each, kCodesPurpose, resources);
    int64_t at = 0;
    for (int64_t row = 0; row < rows(); ++row) {
      if (!keeps(kept.bits(), row)) continue;
      std::memcpy(left.data() + at++ * each, code(row), static_cast<size_t>(each));
    }
    return {codec_, std::move(left)};
  }

  const uint8_t* code(int64_t row) const {
    const size_t segment = codes_.number_of(row);
    return codes_.all()[segment]->made().data() + (row - codes_.first_row(segment)) * codec_->format().bytes();
  }
  // The codes of all rows, contiguous.
  HostArray<uint8_t> copy(const Resources& resources) const {
    HostArray<uint8_t> all(bytes(), "codes to be saved", resources);
    copy_from(0, all.data());
    return all;
  }

  // All codes on that GPU; copies what it lacks. OutOfMemory if there is no room.
  GpuCodes on_gpu(int device, const Resources& given) const {
    const Resources resources = given.with_progress({});
    GpuCodes there{device, codec_->format(), nullptr, {}};
    there.codec =
        codec_there_->get(Device::cuda(device), resources, [&] { return codec_on_gpu(device, *codec_, resources); });
    for (size_t i = 0; i < codes_.count(); ++i) {
      there.blocks.push_back({codes_.all()[i]->on(Device::cuda(device), resources), codes_.first_row(i)});
    }
    return there;
  }

 private:
  using Codes = PlacedSegment<RowCodes>;

  // With `count` more codes, which write(to) provides.
  template <typename Write>
  CodeStore grown(int64_t count, const Resources& resources, const Write& write) const {
    CodeStore after = *this;
    if (count == 0) return after;
    const size_t stay = codes_.staying(count);
    const int64_t rows = codes_.rows() - codes_.first_row(stay) + count;
    HostArray<uint8_t> codes(rows * codec_->format().bytes(), kCodesPurpose, resources);
    write(copy_from(stay, codes.data()));
    after.codes_ = codes_.with(stay, std::make_shared<Codes>(std::make_shared<const RowCodes>(std::move(codes), rows)));
    return after;
  }
  // Copies all codes from that segment on; returns the end of the output.
  uint8_t* copy_from(size_t segment, uint8_t* to) const {
    for (; segment < codes_.count(); ++segment) {
      const RowCodes& codes = codes_.all()[segment]->made();
      to = std::copy_n(codes.data(), codes.bytes(), to);
    }
    return to;
  }

  std::shared_ptr<const Codec> codec_;
  std::shared_ptr<const Placed<CodecOnDevice>> codec_there_;
  Segments<Codes> codes_;
  int64_t mapped_bytes_ = 0;
};

// The decoded vectors of codes in the order of rows.
class StoredVectors final : public RefineVectors {
 public:
  explicit StoredVectors(const CodeStore& store) : store_(store) {}

  void fetch(const int64_t* rows, int64_t count, float* out) const override {
    const CodecView codec = store_.codec().view();
    for (int64_t i = 0; i < count; ++i) {
      decode_rows_cpu(codec, store_.code(rows[i]), 1, nullptr, out + i * codec.format.cols);
    }
  }

 private:
  const CodeStore& store_;
};

// The same as a source of pieces, for an exact search.
class StoredSource final : public RowSource {
 public:
  explicit StoredSource(const CodeStore& store) : vectors_(store), cols_(store.codec().format().cols) {
    info_ = RowsInfo(store.rows(), cols_, DType::f32);
    info_.in_memory = false;
  }

  RowsInfo info() const override { return info_; }
  void open(int64_t most, const Resources& resources) override {
    piece_ = MatrixBuffer(DType::f32, std::min(most, info_.rows), cols_, "decoded vectors", resources);
  }
  MatrixView fetch(int64_t first, int64_t count) override {
    const MutableMatrixView out = piece_.mutable_view().slice(0, count);
    for (int64_t i = 0; i < count; ++i) decode(first + i, out, i);
    return out;
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources&) override {
    for (int64_t i = 0; i < count; ++i) decode(rows[i], out, i);
  }

 private:
  void decode(int64_t row, const MutableMatrixView& out, int64_t at) const {
    vectors_.fetch(&row, 1, typed_row<float>(out, at));
  }

  const StoredVectors vectors_;
  const int64_t cols_;
  RowsInfo info_;
  MatrixBuffer piece_;
};

// Whether the limits have room for twice the memory of an optional call.
template <typename Call>
bool fits_well(const Call& call, const Resources& resources) {
  return !counts_memory(resources) || has_room_for(footprint_of_call(resources, call).times(2), resources);
}

class RefinedState final : public IndexState {
 public:
  // `factor`: the default refine of searches; 0: Kith's choice.
  RefinedState(SharedState inner, CodeStore vectors, const IndexParams& params, float factor)
      : IndexState(inner->content()),
        inner_(std::move(inner)),
        vectors_(std::move(vectors)),
        params_(params),
        factor_(factor) {}

  int64_t probes_with_filter(int64_t probes, const std::function<int64_t()>& kept, int64_t live) const override {
    return inner_->probes_with_filter(probes, kept, live);
  }

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    const bool counts = counts_only(resources);
    // Checks all queries here, so that the error has the query's own number: the first search gets them in batches.
    if (params_.check_finite && queries.space().host_readable() && !counts) {
      refuse_not_finite("query", queries, {0}, resources);
    }
    const RefineTask task(*inner_, params, usual_factor(), content().rows, params_.metric);
    const std::optional<int> gpu = counts ? std::nullopt : gpu_for(queries, out, task.coarse.k, resources);
    const auto on_gpu = [&](const Resources& used) {
      search_and_refine_on_gpu(task, vectors_.on_gpu(*gpu, used), queries, out, used);
    };
    if (gpu.has_value() && fits_well(on_gpu, resources)) {
      const int64_t quarter = resources.device_memory(*gpu)->available() / 4;
      try {
        return on_gpu(SpareDeviceMemory::with(resources, std::min(quarter, SpareDeviceMemory::of(resources))));
      } catch (const OutOfMemory& error) {
        resources.log(LogLevel::info, fmt::format("candidates are compared again on the host: {}", error.what()));
      }
    }
    search_and_refine(task, StoredVectors(vectors_), queries, out, resources);
  }

  // Searches the vectors of refinement exactly.
  void search_all(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                  const Resources& resources) const override {
    const HostRows on_host(queries, resources);
    const HostNeighbors results(out, resources);
    MatrixBuffer floats(DType::f32, queries.rows(), queries.cols(), "the queries as float32", resources);
    for (int64_t i = 0; i < queries.rows() && !counts_only(resources); ++i) {
      widen_row(on_host.view(), i, typed_row<float>(floats.mutable_view(), i));
    }
    StoredSource base(vectors_);
    SearchShape shape = check_knn(RowsInfo(floats.view()), base.info(), {params.k, params_.metric});
    shape.base_checked = true;
    const SearchRequest request{.k = params.k, .check_finite = params_.check_finite};
    if (counts_only(resources))
      return count_work(search_footprint(shape, request, params.filter, resources), resources);
    ViewSource query_rows(floats.view());
    search_knn(shape, request, {query_rows, base, params.filter}, results.view(), resources);
    results.deliver(resources);
  }
  int64_t compared(const MatrixView& queries, const SearchParams& params, const Resources& resources) const override {
    const RefineTask task(*inner_, params, usual_factor(), content().rows, params_.metric);
    return inner_->compared(queries, task.coarse, resources) + queries.rows() * std::min(task.coarse.k, content().rows);
  }

  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const HostRows on_host(queries, resources);
    RangeSearchParams to_host = params;
    to_host.result_space = MemorySpace::host();
    to_host.allocate = {};
    const auto first = [&](const Resources& used) { return inner_->range_search(on_host.view(), to_host, used); };
    if (counts_only(resources)) {  // the results of both searches
      count_work(footprint_of_call(resources, first).times(2), resources);
      return {};
    }
    return refine_range(StoredVectors(vectors_), params_.metric, params.radius, on_host.view(), first(resources),
                        resources);
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    const StoredVectors stored(vectors_);
    for (int64_t i = 0; i < out.rows() && !counts_only(resources); ++i) {
      const int64_t row = rows[i];
      stored.fetch(&row, 1, typed_row<float>(out, i));
    }
  }

  IndexBytes bytes() const override {
    IndexBytes total = inner_->bytes();
    total.host += vectors_.bytes_in_memory() + vectors_.codec().bytes();
    total.device += vectors_.device_bytes();
    return total;
  }
  void describe(IndexInfo& info, const LiveRows& live) const override {
    inner_->describe(info, live);
    info.parts.emplace_back("refine", vectors_.bytes_in_memory() + vectors_.codec().bytes());
  }
  void give_parts(IndexParts& parts, const Resources& resources) const override {
    const auto inner = [&](const Resources& used) { inner_->give_parts(parts, used); };
    if (counts_only(resources)) {
      return count_work(footprint_of_call(resources, inner).beside({vectors_.bytes()}), resources);
    }
    inner(resources);
    const Codec& codec = vectors_.codec();
    parts.refine = RefineParts{{codec.format(), codec.values(), codec.recipe().code, codec.recipe().effort},
                               vectors_.copy(resources),
                               {},
                               factor_};
  }

  const SharedState& inner() const { return inner_; }
  const CodeStore& vectors() const { return vectors_; }
  float factor() const { return factor_; }

 private:
  int64_t usual_factor() const { return factor_ > 0 ? static_cast<int64_t>(std::ceil(factor_)) : kDefaultRefine; }

  // The GPU that finds and compares candidates: the requested one, or the one that holds queries, results or lists.
  std::optional<int> gpu_for(const MatrixView& queries, const NeighborsView& out, int64_t candidates,
                             const Resources& resources) const {
    const Device asked = resources.device();
    if (!suits_gpu_refine(vectors_.codec().format(), params_.metric, candidates)) return std::nullopt;
    if (asked.kind == DeviceKind::cuda) return asked.index;
    if (asked.kind == DeviceKind::cpu) return std::nullopt;
    for (const MemorySpace& space : {queries.space(), out.space, inner_->content().space}) {
      if (!space.host_readable()) return space.device;
    }
    return std::nullopt;
  }

  const SharedState inner_;
  const CodeStore vectors_;
  const IndexParams params_;
  const float factor_;
};

const RefinedState* refined(const IndexState* state) { return static_cast<const RefinedState*>(state); }
const IndexState* inner_of(const RefinedState* state) { return state == nullptr ? nullptr : state->inner().get(); }

class RefinedKind final : public IndexKind {
 public:
  RefinedKind(const std::optional<CodeRecipe>& code, std::shared_ptr<const IndexKind> inner, const IndexParams& params)
      : code_(code), inner_(std::move(inner)), params_(params) {}

  SearchUse search_use() const override {
    SearchUse use = inner_->search_use();
    use.refines = true;
    return use;
  }

  // The code of refinement needs the number of columns, and may need their ranges.
  bool needs_training() const override { return inner_->needs_training() || code_.has_value(); }

  SharedState trained(RowSource& rows, const Resources& resources) const override {
    SharedState state =
        inner_->needs_training() ? inner_->trained(rows, resources) : empty_inner(rows.info(), resources);
    return made(std::move(state), CodeStore(train_code(rows, resources)), 0);
  }

  Footprint training_footprint(const RowsInfo& rows, const Resources& resources) const override {
    const Footprint inner = inner_->training_footprint(rows, resources);
    if (!code_.has_value()) return inner;
    return inner.beside(code_training_footprint(*code_, 0, params_.metric, rows, kTrainingRows, resources));
  }

  SharedState added(const IndexState* before, const MatrixView& rows, Ownership,
                    const Resources& resources) const override {
    // There is no state if neither index needs training: Flat with plain vectors.
    const RefinedState* const state = refined(before);
    const CodeStore vectors = state == nullptr ? no_vectors(RowsInfo(rows), resources) : state->vectors();
    return made(inner_->added(inner_of(state), rows, Ownership::copy, resources), vectors.added(rows, resources),
                state == nullptr ? 0 : state->factor());
  }

  SharedState completed(const SharedState& state, const Resources& resources) const override {
    return with_inner(state, inner_->completed(refined(state.get())->inner(), resources));
  }
  SharedState completed_from(const NeighborsView& start, const SharedState& state,
                             const Resources& resources) const override {
    return with_inner(state, inner_->completed_from(start, refined(state.get())->inner(), resources));
  }
  bool takes_start() const override { return inner_->takes_start(); }
  Footprint completion_footprint(const IndexState* before, const RowsInfo& rows,
                                 const Resources& resources) const override {
    return inner_->completion_footprint(inner_of(refined(before)), rows, resources);
  }
  Footprint compaction_footprint(const IndexState& before, int64_t dropped, const Resources& resources) const override {
    return inner_->compaction_footprint(*refined(&before)->inner(), dropped, resources);
  }

  Footprint add_footprint(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    const RefinedState* const state = refined(before);
    const CodeStore vectors = state == nullptr ? no_vectors(rows, resources) : state->vectors();
    return inner_->add_footprint(inner_of(state), rows, resources).beside(vectors.add_footprint(rows, resources));
  }

  SharedState compacted(const IndexState& before, const KeptRows& kept, const Resources& resources) const override {
    const RefinedState& state = *refined(&before);
    return made(inner_->compacted(*state.inner(), kept, resources), state.vectors().kept(kept, resources),
                state.factor());
  }

  SharedState merged(const IndexState* before, const IndexState& other, const Resources& resources) const override {
    const auto* const more = dynamic_cast<const RefinedState*>(&other);
    if (more == nullptr) throw_not_alike("the other index keeps no vectors to refine with");
    const RefinedState* const state = refined(before);
    if (state != nullptr && !same_code(state->vectors().codec(), more->vectors().codec())) {
      throw_not_alike("the vectors to refine with are kept as other codes");
    }
    SharedState inner = inner_->merged(inner_of(state), *more->inner(), resources);
    if (state == nullptr) return made(std::move(inner), more->vectors(), more->factor());
    return made(std::move(inner), state->vectors().joined(more->vectors(), resources), state->factor());
  }

  SharedState restored(IndexParts& parts, const Resources& resources) const override {
    SharedState state = inner_->restored(parts, resources);
    RefineParts& own = *parts.refine;
    std::shared_ptr<const Codec> codec =
        Codec::from_parts(own.codec.recipe(), own.codec.format.cols, std::move(own.codec.values), resources);
    CodeStore vectors(std::move(codec));
    vectors.restore(std::move(own.codes), resources);
    for (PartArray<uint8_t>& codes : own.behind) vectors.restore(std::move(codes), resources);
    return made(std::move(state), std::move(vectors), own.factor);
  }

 private:
  SharedState with_inner(const SharedState& state, SharedState inner) const {
    const RefinedState& whole = *refined(state.get());
    return inner == whole.inner() ? state : made(std::move(inner), whole.vectors(), whole.factor());
  }

  SharedState made(SharedState inner, CodeStore vectors, float factor) const {
    return std::make_shared<RefinedState>(std::move(inner), std::move(vectors), params_, factor);
  }
  SharedState empty_inner(const RowsInfo& info, const Resources& resources) const {
    const MatrixView none(nullptr, info.dtype, {0, info.cols, info.cols}, info.space);
    return inner_->added(nullptr, none, Ownership::copy, resources);
  }
  static CodeStore no_vectors(const RowsInfo& info, const Resources& resources) {
    return CodeStore(Codec::from_parts({.cols = info.cols, .dtype = info.dtype}, {}, resources));
  }

  std::shared_ptr<const Codec> train_code(RowSource& rows, const Resources& resources) const {
    const RowsInfo info = rows.info();
    if (!code_.has_value()) return Codec::from_parts({.cols = info.cols, .dtype = info.dtype}, {}, resources);
    const CounterRng rng(params_.seed, kSampleStream);
    return kith::train_code(*code_, {}, rows, kTrainingRows, rng, params_.seed, resources);
  }

  const std::optional<CodeRecipe> code_;
  const std::shared_ptr<const IndexKind> inner_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_refined_kind(const std::optional<CodeRecipe>& code,
                                                   std::shared_ptr<const IndexKind> inner, const IndexParams& params) {
  return std::make_shared<RefinedKind>(code, std::move(inner), params);
}

}  // namespace kith
