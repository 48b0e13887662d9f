#include "index/refined_kind.hpp"

#include "cluster/row_sample.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "exact/metric_unit.hpp"
#include "index/code_store.hpp"
#include "index/host_rows.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kDefaultRefine = 4;
constexpr int64_t kTrainingRows = 1 << 16;  // for the range of each column
constexpr uint64_t kSampleStream = 0x7265;  // of random numbers

// For what workers call: on the CPU, and without sinks, which are the calling thread's.
Resources for_workers(const Resources& resources) {
  return resources.with_progress({}).with_cancel({}).with_device(Device::cpu());
}

// What one thread refines with.
struct Scratch {
  std::vector<float> query;
  std::vector<uint8_t> codes;
  std::vector<float> vectors;
  std::vector<float> keys;
  std::vector<uint32_t> places;
  std::vector<uint64_t> neighbors;
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

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    const int64_t usual = factor_ > 0 ? static_cast<int64_t>(std::ceil(factor_)) : kDefaultRefine;
    const int64_t factor = params.refine > 0 ? params.refine : usual;
    const int64_t rows = content().rows;
    // Many queries take turns, so that their candidates stay few beside the result.
    const int64_t wanted = factor > rows / params.k ? std::max(rows, params.k) : factor * params.k;
    const int64_t together = std::clamp<int64_t>(kCandidatesTogether / wanted, 1, std::max<int64_t>(out.queries, 1));
    const HostRows on_host(queries, resources);
    const HostNeighbors results(out, resources);
    Neighbors candidates(together, wanted, resources);
    for (int64_t first = 0; first < out.queries; first += together) {
      const int64_t count = std::min(together, out.queries - first);
      SearchParams coarse = params;
      coarse.k = wanted;
      NeighborsView some = candidates.view();
      some.queries = count;
      const MatrixView part = on_host.view().slice(first, count);
      const NeighborsView& to = results.view();
      inner_->search(part, some, coarse, resources);
      refine(part, some, {to.ids + first * to.k, to.distances + first * to.k, count, to.k, to.space}, resources);
    }
    results.deliver(resources);
  }

  // Of what the index behind finds within the radius, that which is within it by these vectors too.
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const HostRows on_host(queries, resources);
    RangeSearchParams to_host = params;
    to_host.result_space = MemorySpace::host();
    const RangeNeighbors near = inner_->range_search(on_host.view(), to_host, resources);
    const float most = key_of(params_.metric, params.radius);
    HostArray<uint64_t> kept(near.size(), "the rows in range", resources);
    HostArray<int64_t> counts(near.queries(), "the rows in range", resources);
    ProgressMeter meter("refine", queries.rows(), resources);
    std::vector<Scratch> scratch(static_cast<size_t>(resources.threads()));
    const Resources quiet = for_workers(resources);
    parallel_for(near.queries(), meter, resources, [&](int64_t query, int slot) {
      Scratch& own = scratch[static_cast<size_t>(slot)];
      const int64_t first = near.offsets()[query];
      score(on_host.view(), query, near.ids() + first, near.offsets()[query + 1] - first, own, quiet);
      const auto end = std::partition(own.neighbors.begin(), own.neighbors.end(),
                                      [&](uint64_t neighbor) { return key_of_ordered(ordered_of(neighbor)) <= most; });
      std::sort(own.neighbors.begin(), end);
      counts[query] = end - own.neighbors.begin();
      std::copy(own.neighbors.begin(), end, kept.data() + first);
      meter.add(1);
    });
    meter.finish();
    RangeNeighbors found(near.queries(), std::accumulate(counts.begin(), counts.end(), int64_t{0}), resources);
    const ResultExit exit(params_.metric);
    int64_t at = 0;
    found.offsets()[0] = 0;
    for (int64_t query = 0; query < near.queries(); ++query) {
      for (int64_t i = 0; i < counts[query]; ++i, ++at) {
        const uint64_t neighbor = kept[near.offsets()[query] + i];
        found.ids()[at] = exit.id(neighbor);
        found.distances()[at] = exit.distance(neighbor);
      }
      found.offsets()[query + 1] = at;
    }
    return found;
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    for (int64_t i = 0; i < out.rows(); ++i) {
      vectors_.codec().decode(vectors_.code(rows[i]), 1, out.slice(i, 1), resources);
    }
  }

  IndexBytes bytes() const override {
    IndexBytes total = inner_->bytes();
    total.host += vectors_.bytes();
    return total;
  }
  void describe(IndexInfo& info) const override {
    inner_->describe(info);
    info.parts.emplace_back("refine", vectors_.bytes());
  }
  void give_parts(IndexParts& parts, const Resources& resources) const override {
    inner_->give_parts(parts, resources);
    parts.refine =
        RefineParts{{vectors_.codec().format(), vectors_.codec().values()}, vectors_.copy(resources), factor_};
  }

  const std::shared_ptr<const IndexState>& inner() const { return inner_; }
  const CodeStore& vectors() const { return vectors_; }
  float factor() const { return factor_; }

 private:
  static constexpr int64_t kCandidatesTogether = 1 << 20;

  void refine(const MatrixView& queries, const NeighborsView& candidates, const NeighborsView& out,
              const Resources& resources) const {
    ProgressMeter meter("refine", queries.rows(), resources);
    std::vector<Scratch> scratch(static_cast<size_t>(resources.threads()));
    const Resources quiet = for_workers(resources);
    parallel_for(queries.rows(), meter, resources, [&](int64_t query, int slot) {
      refine_one(queries, query, candidates, out, scratch[static_cast<size_t>(slot)], quiet);
      meter.add(1);
    });
    meter.finish();
  }

  void refine_one(const MatrixView& queries, int64_t query, const NeighborsView& candidates, const NeighborsView& out,
                  Scratch& scratch, const Resources& resources) const {
    const int64_t* const rows = candidates.ids + query * candidates.k;
    const int64_t count = std::find(rows, rows + candidates.k, int64_t{-1}) - rows;
    score(queries, query, rows, count, scratch, resources);
    scratch.neighbors.resize(static_cast<size_t>(std::max(count, out.k)), kPadding);
    std::partial_sort(scratch.neighbors.begin(), scratch.neighbors.begin() + out.k, scratch.neighbors.end());
    const ResultExit exit(params_.metric);
    for (int64_t i = 0; i < out.k; ++i) {
      out.ids[query * out.k + i] = exit.id(scratch.neighbors[static_cast<size_t>(i)]);
      out.distances[query * out.k + i] = exit.distance(scratch.neighbors[static_cast<size_t>(i)]);
    }
  }

  // The rows as packed neighbours, by their distance to these vectors, in scratch.neighbors.
  void score(const MatrixView& queries, int64_t query, const int64_t* rows, int64_t count, Scratch& scratch,
             const Resources& resources) const {
    const CodeFormat& format = vectors_.codec().format();
    scratch.query.resize(static_cast<size_t>(format.cols));
    scratch.codes.resize(static_cast<size_t>(count * format.bytes()));
    scratch.vectors.resize(static_cast<size_t>(count * format.cols));
    scratch.keys.resize(static_cast<size_t>(count));
    scratch.places.resize(static_cast<size_t>(count));
    scratch.neighbors.resize(static_cast<size_t>(count));
    if (count == 0) return;
    std::iota(scratch.places.begin(), scratch.places.end(), 0u);
    widen_row(queries, query, scratch.query.data());
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(vectors_.code(rows[i]), format.bytes(), scratch.codes.data() + i * format.bytes());
    }
    const MutableMatrixView decoded(scratch.vectors.data(), count, format.cols);
    vectors_.codec().decode(scratch.codes.data(), count, decoded, resources);
    CanonicalQuery with{scratch.query.data()};
    canonical_inverse_norms_cpu(MatrixView(scratch.query.data(), 1, format.cols), &with.inverse_norm);
    canonical_keys_cpu(key_kind(params_.metric), with, decoded, scratch.places.data(), count, scratch.keys.data());
    for (int64_t i = 0; i < count; ++i) {
      scratch.neighbors[static_cast<size_t>(i)] =
          pack_neighbor(ordered_key(scratch.keys[static_cast<size_t>(i)]), static_cast<uint32_t>(rows[i]));
    }
  }

  const std::shared_ptr<const IndexState> inner_;
  const CodeStore vectors_;
  const IndexParams params_;
  const float factor_;
};

const RefinedState& refined(const IndexState& state) { return static_cast<const RefinedState&>(state); }

class RefinedKind final : public IndexKind {
 public:
  RefinedKind(const std::optional<CodeSpec>& code, std::shared_ptr<const IndexKind> inner, const IndexParams& params)
      : code_(code), inner_(std::move(inner)), params_(params) {}

  // The code of the vectors needs their columns, and may need their range.
  bool needs_training() const override { return inner_->needs_training() || code_.has_value(); }

  std::shared_ptr<const IndexState> trained(RowSource& rows, const Resources& resources) const override {
    if (!inner_->needs_training()) {
      throw InvalidArgument("Flat searches the vectors as they are: there is nothing to refine");
    }
    std::shared_ptr<const IndexState> state = inner_->trained(rows, resources);
    return std::make_shared<RefinedState>(std::move(state), CodeStore(train_code(rows, resources)), params_, 0);
  }

  std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership,
                                          const Resources& resources) const override {
    const RefinedState& state = refined(*before);
    return std::make_shared<RefinedState>(inner_->added(state.inner().get(), rows, Ownership::copy, resources),
                                          state.vectors().added(rows, resources), params_, state.factor());
  }

  std::shared_ptr<const IndexState> removed(const IndexState& before, const KeptRows& kept,
                                            const Resources& resources) const override {
    const RefinedState& state = refined(before);
    return std::make_shared<RefinedState>(inner_->removed(*state.inner(), kept, resources),
                                          state.vectors().kept(kept, resources), params_, state.factor());
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    std::shared_ptr<const IndexState> state = inner_->restored(parts, resources);
    RefineParts& own = *parts.refine;
    std::shared_ptr<const Codec> codec = Codec::from_parts(own.codec.format, std::move(own.codec.values));
    return std::make_shared<RefinedState>(
        std::move(state), CodeStore(std::move(codec), std::move(own.codes).take("the index's codes", resources)),
        params_, own.factor);
  }

 private:
  std::shared_ptr<const Codec> train_code(RowSource& rows, const Resources& resources) const {
    const RowsInfo info = rows.info();
    if (!code_.has_value()) return Codec::from_parts({.cols = info.cols, .dtype = info.dtype}, {});
    const int64_t count = std::min(info.rows, kTrainingRows);
    MatrixBuffer sample(DType::f32, count, info.cols, "the training sample", resources);
    const CounterRng rng(params_.seed, kSampleStream);
    gather_as_floats(rows, sample_rows(rng, info.rows, count, resources),
                     static_cast<float*>(sample.mutable_view().data()), resources);
    return Codec::train(*code_, sample.view(), params_.seed, resources);
  }

  const std::optional<CodeSpec> code_;
  const std::shared_ptr<const IndexKind> inner_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_refined_kind(const std::optional<CodeSpec>& code,
                                                   std::shared_ptr<const IndexKind> inner, const IndexParams& params) {
  return std::make_shared<RefinedKind>(code, std::move(inner), params);
}

}  // namespace kith
