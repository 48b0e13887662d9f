// The parts of CpuScanner that start the scans of its tasks.
#include "exact/cpu_scanner.hpp"

#include "core/divide.hpp"
#include "exact/block_scan.hpp"
#include "kernels/panels/panel_ring.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <new>

namespace kith {

CpuScanner::CpuScanner(const SearchTask& task, const KnnCpuPlan& plan, const uint64_t* kept, const Resources& resources)
    : task_(task),
      plan_(plan),
      kind_(key_kind(task.shape.metric)),
      kept_(kept),
      resources_(resources),
      query_rows_(plan.query_batch * task.shape.cols, "the queries", resources),
      norms_(plan.query_batch, "the queries' norms", resources),
      list_memory_(plan.query_batch * plan.row_splits * CandidateList::bytes_for(plan.list_length),
                   "the candidate lists", resources),
      scratch_memory_(resources.threads() * CandidateScratch::bytes_for(plan.list_length), "selection", resources),
      thresholds_(static_cast<size_t>(plan.query_batch)) {
  if (const auto format = plan.packed_queries()) {
    packed_ = PackedQueries(kind_, *format, plan.query_batch, task.shape.cols, resources);
  }
  for (int slot = 0; slot < resources.threads(); ++slot) {
    const int64_t at = slot * CandidateScratch::bytes_for(plan.list_length);
    scratch_.emplace_back(scratch_memory_.data() + at, plan.list_length);
  }
  const int64_t count = plan.query_batch * plan.row_splits;
  std::byte* const candidates = list_memory_.data() + array_bytes<CandidateList>(count);
  const int64_t bytes = CandidateList::capacity_for(plan.list_length) * CandidateList::kBytesPerCandidate;
  for (int64_t i = 0; i < count; ++i) {
    new (list_memory_.as<CandidateList>() + i) CandidateList(candidates + i * bytes, plan.list_length);
  }
}

int64_t CpuScanner::make_room(int64_t query, int64_t split, int slot) const {
  int64_t scored = 0;
  const auto score = scorer(query, &scored);
  user_->make_room(&list(query, split), query, static_cast<uint32_t>(first_row_), slot, std::cref(score));
  return scored;
}

void CpuScanner::load(const MatrixView& queries, int64_t first_query) {
  if (kind_ == KeyKind::chi_square) refuse_negative("query", queries, {first_query}, resources_.with_progress({}));
  query_count_ = queries.rows();
  for (int64_t i = 0; i < query_count_; ++i) {
    float* const out = query_rows_.data() + i * queries.cols();
    widen_row(queries, i, out);
    const double squared = canonical_squared_norm_cpu(out, queries.cols());
    if (task_.request.check_finite && !std::isfinite(squared)) throw_not_finite("query", first_query + i);
    norms_[i] = {squared, canonical_inverse_norm(squared)};
  }
}

void CpuScanner::scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter,
                      CandidateUser& user) {
  base_ = base;
  first_row_ = first_row;
  meter_ = &meter;
  user_ = &user;
  const bool check = task_.request.check_finite && !task_.base_checked();
  if (kind_ == KeyKind::chi_square && !task_.base_checked()) {
    refuse_negative("base", base, {first_row, nullptr, kept_}, resources_.with_progress({}));
  }
  const bool exact = plan_.engine == CpuEngine::panels && holds_bytes(plan_.format);
  const CandidateList::Keys keys = !exact                  ? CandidateList::Keys::bounded
                                   : user.ties_may_count() ? CandidateList::Keys::exact
                                                           : CandidateList::Keys::exact_after_ties;
  for (int64_t query = 0; query < query_count_; ++query) {
    const float threshold = user.threshold(query);
    thresholds_[static_cast<size_t>(query)] = threshold;
    for (int64_t split = 0; split < plan_.row_splits; ++split) list(query, split).reset(threshold, keys);
  }
  const PackedRows* const packed = ready == nullptr ? nullptr : ready->packed();
  if (plan_.engine == CpuEngine::direct) {
    scan_directly(packed != nullptr && has_screen(packed->format()) ? packed : nullptr, check);
  } else {
    scan_products(packed, check);
  }
  parallel_for(query_count_, meter, resources_, [&](int64_t query, int slot) {
    const auto score = scorer(query);
    for (int64_t split = 0; split < plan_.row_splits; ++split) {
      exchange_threshold(query, &list(query, split));
      user.finish(&list(query, split), query, static_cast<uint32_t>(first_row), slot, std::cref(score));
    }
  });
}

void CpuScanner::scan_directly(const PackedRows* screen, bool check_finite) {
  const int64_t cols = base_.cols();
  // Cosine scans with normalised queries, which keeps their products clear of underflow.
  const HostArray<float> normalised(kind_ == KeyKind::cosine ? query_count_ * cols : 0, "the normalised queries",
                                    resources_);
  const float* queries = query(0);
  if (kind_ == KeyKind::cosine) {
    for (int64_t q = 0; q < query_count_; ++q) {
      const CanonicalQuery own = canonical(q);
      for (int64_t c = 0; c < cols; ++c) {
        normalised[q * cols + c] = static_cast<float>(own.values[c] * own.inverse_norm);
      }
    }
    queries = normalised.data();
  }

  const int64_t splits = plan_.row_splits;
  if (plan_.screens && !check_finite && screen != nullptr) {  // of an index, whose rows have been looked at
    packed_.set_scale(screen->scale());
    packed_.pack(query(0), query_count_, screen->origin(), *meter_, resources_);
    return parallel_for(splits, *meter_, resources_,
                        [&](int64_t split, int slot) { scan_screened_tiles(*this, queries, *screen, split, slot); });
  }
  ReusedVector<int64_t> bad(static_cast<size_t>(splits), -1);
  parallel_for(splits, *meter_, resources_, [&](int64_t split, int slot) {
    bad[static_cast<size_t>(split)] = scan_tiles(*this, queries, split, slot, check_finite);
  });
  for (const int64_t row : bad) {
    if (row >= 0) throw_not_finite("base", first_row_ + row);
  }
}

void CpuScanner::scan_products(const PackedRows* ready, bool check_finite) {
  if (ready != nullptr && ready->fits(plan_.format)) {
    packed_.set_scale(ready->scale());
    packed_.pack(query(0), query_count_, ready->origin(), *meter_, resources_);
    if (!lacks_panels(ready->format())) return scan_packed(*ready, 0);
    return plan_.format == PanelFormat::bf16 ? scan_made_tiles(*ready) : scan_made_panels(*ready);
  }
  const int64_t step = std::min(plan_.panel_rows, base_.rows());
  PackedRows rows(kind_, plan_.format, choose_origin(kind_, base_), step, resources_);
  rows.set_scale(choose_scale(kind_, base_, rows.origin()));
  packed_.set_scale(rows.scale());
  packed_.pack(query(0), query_count_, rows.origin(), *meter_, resources_);
  for (int64_t first = 0; first < base_.rows(); first += step) {
    rows.pack(base_.slice(first, std::min(step, base_.rows() - first)), {check_finite, first_row_ + first, 0, true},
              *meter_, resources_);
    scan_packed(rows, first);
  }
}

void CpuScanner::scan_packed(const PackedRows& rows, int64_t first_row) {
  const auto scan_block = holds_bytes(rows.format()) ? scan_byte_block : scan_float_block;
  // Rows first: when a query's later rows come, its earlier ones have lowered its threshold.
  const int64_t blocks = divide_up(query_count_, plan_.query_block);
  parallel_for(blocks * plan_.row_splits, *meter_, resources_, [&](int64_t task, int slot) {
    scan_block(*this, rows, first_row, {task % blocks, task / blocks, slot});
  });
}

void CpuScanner::scan_made_tiles(const PackedRows& known) {
  const int64_t step = round_up(std::min(plan_.panel_rows, base_.rows()), panel_shape(plan_.format).rows_per_panel);
  PackedRows rows(kind_, plan_.format, known.origin(), step, resources_);
  rows.set_scale(known.scale());
  for (int64_t first = 0; first < base_.rows(); first += step) {
    rows.pack_known(known, base_, first, std::min(step, base_.rows() - first), *meter_, resources_);
    scan_packed(rows, first);
  }
}

void CpuScanner::scan_made_panels(const PackedRows& rows) {
  const int64_t bytes = PanelRing::bytes_for(plan_.panel_rows, rows.cols());
  const HostBuffer rings(resources_.threads() * bytes, "the packed rows", resources_);
  const int64_t blocks = divide_up(query_count_, plan_.query_block);
  const int64_t groups = divide_up(blocks, plan_.blocks_together);
  parallel_for(groups * plan_.row_splits, *meter_, resources_, [&](int64_t task, int slot) {
    const int64_t first = task % groups * plan_.blocks_together;
    scan_made_blocks(*this, rows, {first, task / groups, slot}, std::min(plan_.blocks_together, blocks - first),
                     rings.data() + slot * bytes);
  });
}

}  // namespace kith
