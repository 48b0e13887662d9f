#include "index/refined_kind.hpp"

#include "rows/row_sample.hpp"
#include "core/typed_row.hpp"
#include "index/code_store.hpp"
#include "index/host_rows.hpp"
#include "index/refine.hpp"
#include "index/refine_gpu.hpp"
#include "ivf/model/streamed_training.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "rows/finite_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kTrainingRows = 1 << 16;  // for the range of each column
constexpr uint64_t kSampleStream = 0x7265;  // of random numbers

// Vectors in the order of rows, behind a codec.
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

class RefinedState final : public IndexState {
 public:
  // `factor`: the default of a search; 0: Kith's own.
  RefinedState(std::shared_ptr<const IndexState> inner, CodeStore vectors, const IndexParams& params, float factor)
      : IndexState(inner->content()),
        inner_(std::move(inner)),
        vectors_(std::move(vectors)),
        params_(params),
        factor_(factor) {}

  bool refines() const override { return true; }

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    // All of them, so that the error names the query's own number: the first search gets some at a time.
    if (params_.check_finite && queries.space().host_readable()) refuse_not_finite("query", queries, {0}, resources);
    const SearchParams coarse = for_candidates(params);
    const auto search = [&](const MatrixView& some, const NeighborsView& candidates) {
      inner_->search(some, candidates, coarse, resources);
    };
    const std::optional<int> gpu = gpu_for(queries, out, coarse.k, resources);
    if (gpu.has_value()) {
      try {
        return search_and_refine_on_gpu(vectors_.on_gpu(*gpu, resources), params_.metric, coarse.k, search, queries,
                                        out, resources);
      } catch (const OutOfMemory& error) {
        resources.log(LogLevel::info, fmt::format("candidates are compared again on the host: {}", error.what()));
      }
    }
    const HostRows on_host(queries, resources);
    const HostNeighbors results(out, resources);
    const StoredVectors stored(vectors_);
    search_and_refine({stored, params_.metric, coarse.k}, search, on_host.view(), results.view(), resources);
    results.deliver(resources);
  }

  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const HostRows on_host(queries, resources);
    RangeSearchParams to_host = params;
    to_host.result_space = MemorySpace::host();
    to_host.allocate = {};
    return refine_range(StoredVectors(vectors_), params_.metric, params.radius, on_host.view(),
                        inner_->range_search(on_host.view(), to_host, resources), resources);
  }

  int64_t smallest_host_bytes(const RowsInfo& queries, const SearchParams& params,
                              const Resources& resources) const override {
    const SearchParams coarse = for_candidates(params);
    const int64_t copies = HostRows::bytes_for(queries);
    return copies +
           refine_bytes(coarse.k, content().cols, inner_->smallest_host_bytes(queries, coarse, resources), resources);
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources&) const override {
    const StoredVectors stored(vectors_);
    for (int64_t i = 0; i < out.rows(); ++i) {
      const int64_t row = rows[i];
      stored.fetch(&row, 1, typed_row<float>(out, i));
    }
  }

  int64_t smallest_range_bytes(const RowsInfo& queries, const RangeSearchParams& params,
                               const Resources& resources) const override {
    return HostRows::bytes_for(queries) + 2 * inner_->smallest_range_bytes(queries, params, resources);
  }
  int64_t give_parts_bytes() const override { return inner_->give_parts_bytes() + vectors_.bytes(); }
  IndexBytes bytes() const override {
    IndexBytes total = inner_->bytes();
    total.host += vectors_.bytes() + vectors_.codec().bytes();
    total.device += vectors_.device_bytes();
    return total;
  }
  void describe(IndexInfo& info, const LiveRows& live) const override {
    inner_->describe(info, live);
    info.parts.emplace_back("refine", vectors_.bytes() + vectors_.codec().bytes());
  }
  void give_parts(IndexParts& parts, const Resources& resources) const override {
    inner_->give_parts(parts, resources);
    const Codec& codec = vectors_.codec();
    parts.refine = RefineParts{{codec.format(), codec.values(), codec.recipe().code, codec.recipe().effort},
                               vectors_.copy(resources), factor_};
  }

  const std::shared_ptr<const IndexState>& inner() const { return inner_; }
  const CodeStore& vectors() const { return vectors_; }
  float factor() const { return factor_; }

 private:
  SearchParams for_candidates(const SearchParams& params) const {
    const int64_t usual = factor_ > 0 ? static_cast<int64_t>(std::ceil(factor_)) : kDefaultRefine;
    SearchParams coarse = params;
    coarse.k = candidates_for(params.refine > 0 ? params.refine : usual, params.k, content().rows);
    return coarse;
  }

  // The GPU whose memory the candidates are to be found and compared in: the one that is asked for, else where
  // queries, results or lists lie.
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

  const std::shared_ptr<const IndexState> inner_;
  const CodeStore vectors_;
  const IndexParams params_;
  const float factor_;
};

const RefinedState& refined(const IndexState& state) { return static_cast<const RefinedState&>(state); }

class RefinedKind final : public IndexKind {
 public:
  RefinedKind(const std::optional<CodeRecipe>& code, std::shared_ptr<const IndexKind> inner, const IndexParams& params)
      : code_(code), inner_(std::move(inner)), params_(params) {}

  // The code of the vectors needs their columns, and may need their range.
  bool needs_training() const override { return inner_->needs_training() || code_.has_value(); }

  std::shared_ptr<const IndexState> trained(RowSource& rows, const Resources& resources) const override {
    std::shared_ptr<const IndexState> state =
        inner_->needs_training() ? inner_->trained(rows, resources) : empty_inner(rows.info(), resources);
    return std::make_shared<RefinedState>(std::move(state), CodeStore(train_code(rows, resources)), params_, 0);
  }

  int64_t trained_bytes(const RowsInfo& rows, const Resources& resources) const override {
    const int64_t inner = inner_->trained_bytes(rows, resources);
    if (!code_.has_value()) return inner;
    return inner + code_training_bytes(*code_, 0, params_.metric, rows, kTrainingRows, resources);
  }

  std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership,
                                          const Resources& resources) const override {
    if (before == nullptr) {  // nothing was trained, since nothing needs it: Flat behind vectors kept as they are
      return std::make_shared<RefinedState>(inner_->added(nullptr, rows, Ownership::copy, resources),
                                            no_vectors(RowsInfo(rows), resources).added(rows, resources), params_, 0);
    }
    const RefinedState& state = refined(*before);
    return std::make_shared<RefinedState>(inner_->added(state.inner().get(), rows, Ownership::copy, resources),
                                          state.vectors().added(rows, resources), params_, state.factor());
  }

  int64_t added_bytes(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    if (before == nullptr) {
      return inner_->added_bytes(nullptr, rows, resources) + no_vectors(rows, resources).added_bytes(rows, resources);
    }
    const RefinedState& state = refined(*before);
    return inner_->added_bytes(state.inner().get(), rows, resources) + state.vectors().added_bytes(rows, resources);
  }

  std::shared_ptr<const IndexState> compacted(const IndexState& before, const KeptRows& kept,
                                              const Resources& resources) const override {
    const RefinedState& state = refined(before);
    return std::make_shared<RefinedState>(inner_->compacted(*state.inner(), kept, resources),
                                          state.vectors().kept(kept, resources), params_, state.factor());
  }

  std::shared_ptr<const IndexState> merged(const IndexState* before, const IndexState& other,
                                           const Resources& resources) const override {
    const auto* const more = dynamic_cast<const RefinedState*>(&other);
    if (more == nullptr) throw_not_alike("the other index keeps no vectors to refine with");
    if (before == nullptr) {
      return std::make_shared<RefinedState>(inner_->merged(nullptr, *more->inner(), resources), more->vectors(),
                                            params_, more->factor());
    }
    const RefinedState& state = refined(*before);
    if (!same_code(state.vectors().codec(), more->vectors().codec())) {
      throw_not_alike("the vectors to refine with are kept as other codes");
    }
    return std::make_shared<RefinedState>(inner_->merged(state.inner().get(), *more->inner(), resources),
                                          state.vectors().joined(more->vectors(), resources), params_, state.factor());
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    std::shared_ptr<const IndexState> state = inner_->restored(parts, resources);
    RefineParts& own = *parts.refine;
    std::shared_ptr<const Codec> codec =
        Codec::from_parts(own.codec.recipe(), own.codec.format.cols, std::move(own.codec.values), resources);
    return std::make_shared<RefinedState>(
        std::move(state), CodeStore(std::move(codec), std::move(own.codes).take("the index's codes", resources)),
        params_, own.factor);
  }

 private:
  std::shared_ptr<const IndexState> empty_inner(const RowsInfo& info, const Resources& resources) const {
    const MatrixView none(nullptr, info.dtype, {0, info.cols, info.cols}, info.space);
    return inner_->added(nullptr, none, Ownership::copy, resources);
  }
  static CodeStore no_vectors(const RowsInfo& info, const Resources& resources) {
    return CodeStore(Codec::from_parts({.cols = info.cols, .dtype = info.dtype}, {}, resources));
  }

  std::shared_ptr<const Codec> train_code(RowSource& rows, const Resources& resources) const {
    const RowsInfo info = rows.info();
    if (!code_.has_value()) return Codec::from_parts({.cols = info.cols, .dtype = info.dtype}, {}, resources);
    const int64_t count = std::min(info.rows, kTrainingRows);
    const CounterRng rng(params_.seed, kSampleStream);
    if (!sample_fits(count, info.cols, resources)) {
      return train_code_streamed(*code_, {}, rows, count, rng, params_.seed, resources);
    }
    MatrixBuffer sample(DType::f32, count, info.cols, "the training sample", resources);
    gather_as_floats(rows, sample_rows(rng, info.rows, count, resources),
                     static_cast<float*>(sample.mutable_view().data()), resources);
    return Codec::train(*code_, sample.view(), params_.seed, resources);
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
