// A piece of a list as panels of f32 (kernels/panels): the vectors that the index holds, less the list's centre where
// the key is made of differences, so that the bounds of kernels/distance/error_bound.hpp are bounds for their distance.
#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "ivf/model/norm_terms.hpp"
#include "ivf/scan/list_product.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr PanelFormat kFormat = PanelFormat::f32;

class PanelListProduct final : public ListProduct, private PanelHits {
 public:
  PanelListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : tables_(tables),
        norms_of_codes_(tables.model()),
        cols_(tables.model().cols()),
        shape_(panel_shape(kFormat)),
        group_(round_up(kHitQueries, shape_.queries_per_panel)),
        queries_(tables.kind(), kFormat, shape.query_block / kHitQueries * group_, cols_, resources),
        gathered_(std::max(kMostQueriesPerPanel, kMostRowsPerPanel) * cols_, "gathered vectors", resources),
        packing_(PanelScratch::bytes_for(kFormat, cols_, kMostRowsPerPanel), "packing", resources),
        limits_(kHitQueries + kMostQueriesPerPanel, "the queries' limits", resources),
        origin_(static_cast<size_t>(cols_), 0.0f) {
    const int64_t rows = round_up(shape.piece_rows, shape_.rows_per_panel);
    panels_ = HostBuffer(rows * packed_bytes(kFormat, cols_), "decoded vectors", resources);
    terms_ = HostArray<float>(rows, "decoded vectors", resources);
    norms_ = HostArray<float>(rows / shape_.rows_per_panel, "decoded vectors", resources);
  }

  void load_queries(const float* queries, const double*, const ListQueries* lists, int64_t) override {
    const auto [numbers, count, list] = lists[0];
    list_ = list;
    if (has_differences(tables_.kind())) std::copy_n(tables_.origin(list), cols_, origin_.data());
    norms_of_codes_.start_queries();
    for (int64_t i = 0; i < count; ++i) norms_of_codes_.add_query(queries + numbers[i] * cols_);
    const int64_t width = queries_.panel_width();
    for (int64_t first = 0; first < count; first += kHitQueries) {
      const int64_t end = std::min(first + kHitQueries, count);
      for (int64_t at = first; at < end; at += width) {
        const int64_t here = std::min(width, end - at);
        for (int64_t i = 0; i < here; ++i) {
          std::copy_n(queries + numbers[at + i] * cols_, cols_, gathered_.data() + i * cols_);
        }
        queries_.pack_panel(packed(at) / width, gathered_.data(), here, origin_, packing_.data());
      }
    }
    bounds_ = queries_.panels(0, packed(count), limits_.data());
  }

  void load_rows(const uint8_t* codes, int64_t count) override {
    const CodecView codec = tables_.model().codec->view();
    const int64_t width = shape_.rows_per_panel;
    const int64_t bytes = packed_bytes(kFormat, cols_);
    const PanelScratch scratch(packing_.data(), cols_);
    rows_ = count;
    largest_ = 0;
    norms_of_codes_.start_rows();
    for (int64_t first = 0; first < count; first += width) {
      const int64_t here = std::min(width, count - first);
      decode_rows_cpu(codec, codes + first * codec.format.bytes(), here, tables_.model().base_of(list_),
                      gathered_.data());
      float* const terms = terms_.data() + first;
      float largest = 0;
      for (int64_t i = 0; i < here; ++i) {
        const double squared = move_vector(tables_.kind(), origin_, gathered_.data() + i * cols_, scratch.vector);
        const float* const vector = gathered_.data() + i * cols_;
        terms[i] = norms_of_codes_.used()
                       ? norms_of_codes_.term(codes + (first + i) * codec.format.bytes(), vector, nullptr, squared)
                   : has_differences(tables_.kind()) ? static_cast<float>(squared)
                                                     : 0.0f;
        largest = std::max(largest, squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity);
        encode_floats(kFormat, scratch.vector, cols_, 1.0f, scratch.packed + i * bytes / 4);
      }
      std::fill(terms + here, terms + width, kInfinity);
      norms_[first / width] = largest;
      largest_ = std::max(largest_, largest);
      pack_panel(kFormat, cols_, scratch.packed, here, width, panels_.data() + first * bytes);
    }
  }

  float offset(int64_t query) const override { return queries_.offset(packed(query)); }
  float error(int64_t query) const override { return product_error_of(query) + norm_error(query); }

  void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) override {
    first_ = first;
    hits_ = &hits;
    std::fill(limits_.begin(), limits_.end(), -kInfinity);  // of those that only fill up a panel
    for (int64_t i = 0; i < count; ++i) limits_[i] = limits[i] + norm_error(first + i);
    const PanelQueries queries = queries_.panels(packed(first), count, limits_.data());
    const PanelBase base{panels_.data(), terms_.data(), norms_.data(), kFormat, cols_, PanelStep::product};
    scan_panels(queries, base, 0, divide_up(rows_, shape_.rows_per_panel), *this);
  }

 private:
  float product_error_of(int64_t query) const { return bounds_.bound(packed(query)).at(largest_); }
  float norm_error(int64_t query) const { return norms_of_codes_.used() ? norms_of_codes_.error(query) : 0.0f; }

  // Where a query is packed: groups begin with a panel.
  int64_t packed(int64_t query) const { return query / kHitQueries * group_ + query % kHitQueries; }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const int64_t first = panel * shape_.rows_per_panel;
    const int64_t count = std::min(shape_.rows_per_panel, rows_ - first);
    const float limit = limits_[query] + product_error_of(first_ + query);
    float* const to = hits_->values + query * hits_->stride;
    uint32_t* const rows = hits_->rows + query * hits_->stride;
    int64_t at = hits_->counts[query];
    for (int64_t i = 0; i < count; ++i) {
      to[at] = values[i];
      rows[at] = static_cast<uint32_t>(first + i);
      at += !(values[i] > limit);  // a NaN passes
    }
    hits_->counts[query] = at;
  }

  const ListTables& tables_;
  NormTerms norms_of_codes_;
  const int64_t cols_;
  const PanelShape shape_;
  const int64_t group_;  // kHitQueries in whole panels
  PackedQueries queries_;
  HostArray<float> gathered_;
  HostBuffer packing_;
  HostArray<float> limits_;
  std::vector<float> origin_;
  HostBuffer panels_;
  HostArray<float> terms_;
  HostArray<float> norms_;
  PanelQueries bounds_;
  int64_t list_ = 0;
  int64_t rows_ = 0;
  float largest_ = 0;  // norm of the piece
  int64_t first_ = 0;
  ListHits* hits_ = nullptr;
};

}  // namespace

std::unique_ptr<ListProduct> make_panel_list_product(const ListTables& tables, const ListProductShape& shape,
                                                     const Resources& resources) {
  return std::make_unique<PanelListProduct>(tables, shape, resources);
}

}  // namespace kith
