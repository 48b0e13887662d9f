// A 64-bit FNV-1a hash of what a call has returned.
//
// Numbers are hashed by their bytes in memory (little-endian on every supported processor). All NaNs count as one:
// processors differ in the sign of the NaN that inf - inf gives. Times and memory figures are never hashed.
#pragma once

#include <kith/kith.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace hashes {

class Hash {
 public:
  uint64_t value() const { return value_; }

  void bytes(const void* data, int64_t count) {
    const auto* at = static_cast<const uint8_t*>(data);
    for (int64_t i = 0; i < count; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3;
  }
  void number(int64_t value) { bytes(&value, sizeof value); }
  void text(std::string_view text) {
    number(static_cast<int64_t>(text.size()));
    bytes(text.data(), static_cast<int64_t>(text.size()));
  }
  void real(double value) {
    const auto bits = std::isnan(value) ? int64_t{0x7ff8000000000000} : std::bit_cast<int64_t>(value);
    number(bits);
  }
  void reals(const float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto bits = std::isnan(values[i]) ? uint32_t{0x7fc00000} : std::bit_cast<uint32_t>(values[i]);
      bytes(&bits, sizeof bits);
    }
  }
  void ids(const int64_t* values, int64_t count) { bytes(values, count * 8); }

  void add(const std::vector<float>& values) {
    number(static_cast<int64_t>(values.size()));
    reals(values.data(), static_cast<int64_t>(values.size()));
  }
  void add(const std::vector<int64_t>& values) {
    number(static_cast<int64_t>(values.size()));
    ids(values.data(), static_cast<int64_t>(values.size()));
  }
  void add(const std::vector<double>& values) {
    number(static_cast<int64_t>(values.size()));
    for (const double value : values) real(value);
  }
  // A matrix in host memory, without what lies between its rows.
  void add(const kith::MatrixView& matrix) {
    number(matrix.rows());
    number(matrix.cols());
    text(kith::name_of(matrix.dtype()));
    for (int64_t i = 0; i < matrix.rows(); ++i) {
      if (matrix.dtype() == kith::DType::f32) {
        reals(reinterpret_cast<const float*>(matrix.row(i)), matrix.cols());
      } else {
        bytes(matrix.row(i), matrix.cols() * kith::size_of(matrix.dtype()));
      }
    }
  }
  void add(const kith::NeighborsView& found) {
    number(found.queries);
    number(found.k);
    ids(found.ids, found.queries * found.k);
    reals(found.distances, found.queries * found.k);
  }
  void add(const kith::Neighbors& found) {
    add(kith::NeighborsView{
        const_cast<int64_t*>(found.ids()), const_cast<float*>(found.distances()), found.queries(), found.k(), {}});
  }
  void add(const kith::RangeView& found) {
    number(found.queries);
    if (found.queries > 0) ids(found.offsets, found.queries + 1);
    ids(found.ids, found.size());
    reals(found.distances, found.size());
  }
  void add(const kith::CsrMatrix& matrix) {
    number(matrix.rows());
    ids(matrix.offsets(), matrix.rows() + 1);
    ids(matrix.columns(), matrix.size());
    reals(matrix.values(), matrix.size());
  }
  void add(const kith::RowLabels& labels) {
    number(labels.sets);
    ids(labels.begin(), labels.rows);
  }
  void add(const kith::SpanningTree& tree) {
    number(tree.rows());
    ids(tree.ends(), 2 * tree.size());
    reals(tree.weights(), tree.size());
  }
  void add(const kith::KnnGraph& graph, const kith::Resources& resources) {
    const kith::KnnGraph here = graph.to(kith::MemorySpace::host(), resources);
    text(kith::name_of(here.metric()));
    add(kith::NeighborsView{
        const_cast<int64_t*>(here.ids()), const_cast<float*>(here.distances()), here.rows(), here.k(), {}});
  }
  void add(const kith::GraphRecall& recall) {
    real(recall.recall);
    real(recall.recall_at_10);
    real(recall.standard_error);
    number(recall.rows);
  }
  void add(const kith::GraphReport& report) {
    text(report.method);
    for (const kith::GraphParameter& parameter : report.parameters) {
      text(parameter.name);
      number(static_cast<int64_t>(parameter.value.index()));
      std::visit([this](const auto& value) { add_parameter(value); }, parameter.value);
    }
    number(report.recall.has_value());
    if (report.recall) add(*report.recall);
    number(report.reached);
    number(static_cast<int64_t>(report.rounds.size()));
    for (const kith::GraphRound& round : report.rounds) {
      number(round.recall.has_value());
      if (round.recall) real(*round.recall);
      real(round.phi);
      number(round.updates);
      number(round.comparisons);
    }
  }
  void add(const kith::IndexInfo& info) {
    text(info.factory);
    text(kith::name_of(info.metric));
    number(info.trained);
    number(info.size);
    number(info.dimension);
    text(kith::name_of(info.dtype));
    number(info.lists);
    real(info.imbalance);
    number(info.longest);
    number(info.code_bytes);
  }
  void add(const std::vector<kith::TransformStep>& steps) {
    number(static_cast<int64_t>(steps.size()));
    for (const kith::TransformStep& step : steps) {
      number(static_cast<int64_t>(step.kind));
      text(step.name);
      number(step.in);
      number(step.out);
      add(step.matrix);
      add(step.offset);
    }
  }
  // The bytes of a whole file.
  void file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    text(content);
  }

 private:
  void add_parameter(bool value) { number(value); }
  void add_parameter(int64_t value) { number(value); }
  void add_parameter(double value) { real(value); }
  void add_parameter(const std::string& value) { text(value); }

  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace hashes
