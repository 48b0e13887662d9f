// "...,RFlat" and "...,Refine(SQ8)": an index whose candidates are compared again. Beside another index it keeps all
// vectors once more, as they are or as finer codes. A search asks the other for `refine` times k candidates and returns
// the first k of them by (distance to these vectors, row).
#include "core/placed.hpp"
#include "core/typed_row.hpp"
#include "index/factory.hpp"
#include "index/host_rows.hpp"
#include "index/refine.hpp"
#include "index/refine_gpu.hpp"
#include "ivf/model/training_sample.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "rows/finite_check.hpp"
#include "rows/segments.hpp"

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

// Codes of an index's rows in the order of rows, in segments that versions share (rows/segments.hpp).
class CodeStore {
 public:
  explicit CodeStore(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), codec_there_(std::make_shared<Placed<CodecOnDevice>>()) {}
  // Takes codes of so many rows.
  CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes);

  const Codec& codec() const { return *codec_; }
  int64_t rows() const { return codes_.rows(); }
  int64_t bytes() const { return rows() * codec_->format().bytes(); }
  int64_t device_bytes() const;  // of copies on GPUs

  // With rows of any dtype, in host memory, behind the others.
  CodeStore added(const MatrixView& rows, const Resources& resources) const;
  Footprint add_footprint(const RowsInfo& rows, const Resources& resources) const;  // what that takes
  // With the codes of another, of the same codec, behind the others.
  CodeStore joined(const CodeStore& other, const Resources& resources) const;
  // Less the rows that are not kept.
  CodeStore kept(const KeptRows& kept, const Resources& resources) const;

  const uint8_t* code(int64_t row) const;
  // Of all rows, one after the other.
  HostArray<uint8_t> copy(const Resources& resources) const;

  // What that GPU lacks comes to it. OutOfMemory where there is no room.
  GpuCodes on_gpu(int device, const Resources& resources) const;

 private:
  using Codes = PlacedSegment<RowCodes>;

  // With `count` more codes, which write(to) puts behind the others.
  template <typename Write>
  CodeStore grown(int64_t count, const Resources& resources, const Write& write) const;
  uint8_t* copy_from(size_t segment, uint8_t* to) const;  // of all from that one on; returns their end

  std::shared_ptr<const Codec> codec_;
  std::shared_ptr<const Placed<CodecOnDevice>> codec_there_;
  Segments<Codes> codes_;
};

CodeStore::CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes) : CodeStore(std::move(codec)) {
  const int64_t rows = codes.size() / codec_->format().bytes();
  if (rows > 0) codes_.push_back(std::make_shared<Codes>(std::make_shared<const RowCodes>(std::move(codes), rows)));
}

template <typename Write>
CodeStore CodeStore::grown(int64_t count, const Resources& resources, const Write& write) const {
  CodeStore after = *this;
  if (count == 0) return after;
  const size_t stay = codes_.staying(count);
  const int64_t rows = codes_.rows() - codes_.first_row(stay) + count;
  HostArray<uint8_t> codes(rows * codec_->format().bytes(), kCodesPurpose, resources);
  write(copy_from(stay, codes.data()));
  after.codes_ = codes_.with(stay, std::make_shared<Codes>(std::make_shared<const RowCodes>(std::move(codes), rows)));
  return after;
}

CodeStore CodeStore::added(const MatrixView& rows, const Resources& resources) const {
  return grown(rows.rows(), resources, [&](uint8_t* to) { codec_->encode(rows, to, resources); });
}

Footprint CodeStore::add_footprint(const RowsInfo& rows, const Resources& resources) const {
  const int64_t joined = codes_.rows() - codes_.first_row(codes_.staying(rows.rows)) + rows.rows;
  return Footprint{joined * codec_->format().bytes()}.beside(codec_->encoding_footprint(rows, resources));
}

CodeStore CodeStore::joined(const CodeStore& other, const Resources& resources) const {
  return grown(other.rows(), resources, [&](uint8_t* to) { other.copy_from(0, to); });
}

CodeStore CodeStore::kept(const KeptRows& kept, const Resources& resources) const {
  const int64_t each = codec_->format().bytes();
  HostArray<uint8_t> left(kept.count() * each, kCodesPurpose, resources);
  int64_t at = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    if (!keeps(kept.bits(), row)) continue;
    std::memcpy(left.data() + at++ * each, code(row), static_cast<size_t>(each));
  }
  return {codec_, std::move(left)};
}

const uint8_t* CodeStore::code(int64_t row) const {
  const size_t segment = codes_.number_of(row);
  return codes_.all()[segment]->made().data() + (row - codes_.first_row(segment)) * codec_->format().bytes();
}

HostArray<uint8_t> CodeStore::copy(const Resources& resources) const {
  HostArray<uint8_t> all(bytes(), "codes to be saved", resources);
  copy_from(0, all.data());
  return all;
}

int64_t CodeStore::device_bytes() const {
  int64_t total = codec_there_->bytes(DeviceKind::cuda);
  for (const auto& segment : codes_) total += segment->bytes(DeviceKind::cuda);
  return total;
}

GpuCodes CodeStore::on_gpu(int device, const Resources& given) const {
  const Resources resources = given.with_progress({});
  GpuCodes there{device, codec_->format(), nullptr, {}};
  there.codec = codec_there_->get(Device::cuda(device), [&] { return codec_on_gpu(device, *codec_, resources); });
  for (size_t i = 0; i < codes_.count(); ++i) {
    there.blocks.push_back({codes_.all()[i]->on(Device::cuda(device), resources), codes_.first_row(i)});
  }
  return there;
}

uint8_t* CodeStore::copy_from(size_t segment, uint8_t* to) const {
  for (; segment < codes_.count(); ++segment) {
    const RowCodes& codes = codes_.all()[segment]->made();
    to = std::copy_n(codes.data(), codes.bytes(), to);
  }
  return to;
}

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
    const bool counts = only_counts(resources);
    // All of them, so that the error names the query's own number: the first search gets some at a time.
    if (params_.check_finite && queries.space().host_readable() && !counts) {
      refuse_not_finite("query", queries, {0}, resources);
    }
    const SearchParams coarse = for_candidates(params);
    const auto search = [&](const MatrixView& some, const NeighborsView& candidates, const Resources& used) {
      inner_->search(some, candidates, coarse, used);
    };
    const std::optional<int> gpu = counts ? std::nullopt : gpu_for(queries, out, coarse.k, resources);
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
    const auto first = [&](const Resources& used) { return inner_->range_search(on_host.view(), to_host, used); };
    if (only_counts(resources)) {  // what both looks leave in range
      count_work(footprint_of_call(resources, first).times(2), resources);
      return {};
    }
    return refine_range(StoredVectors(vectors_), params_.metric, params.radius, on_host.view(), first(resources),
                        resources);
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    const StoredVectors stored(vectors_);
    for (int64_t i = 0; i < out.rows() && !only_counts(resources); ++i) {
      const int64_t row = rows[i];
      stored.fetch(&row, 1, typed_row<float>(out, i));
    }
  }

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
    const auto inner = [&](const Resources& used) { inner_->give_parts(parts, used); };
    if (only_counts(resources)) {
      return count_work(footprint_of_call(resources, inner).beside({vectors_.bytes()}), resources);
    }
    inner(resources);
    const Codec& codec = vectors_.codec();
    parts.refine = RefineParts{{codec.format(), codec.values(), codec.recipe().code, codec.recipe().effort},
                               vectors_.copy(resources),
                               factor_};
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

  Footprint training_footprint(const RowsInfo& rows, const Resources& resources) const override {
    const Footprint inner = inner_->training_footprint(rows, resources);
    if (!code_.has_value()) return inner;
    return inner.beside(code_training_footprint(*code_, 0, params_.metric, rows, kTrainingRows, resources));
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

  Footprint add_footprint(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    const RefinedState* const state = before == nullptr ? nullptr : &refined(*before);
    const CodeStore vectors = state == nullptr ? no_vectors(rows, resources) : state->vectors();
    return inner_->add_footprint(state == nullptr ? nullptr : state->inner().get(), rows, resources)
        .beside(vectors.add_footprint(rows, resources));
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
