#include "interop/faiss_header.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

Metric metric_of(FaissSource& source, FaissMetric metric) {
  switch (metric) {
    case FaissMetric::inner_product: return Metric::inner_product;
    case FaissMetric::l2: return Metric::sqeuclidean;
    case FaissMetric::l1: return Metric::l1;
    case FaissMetric::linf: return Metric::linf;
  }
  source.unsupported(fmt::format("FAISS's metric {}, which Kith lacks", static_cast<int>(metric)));
}

}  // namespace

FaissHeader read_faiss_header(FaissSource& source) {
  FaissHeader header;
  const auto cols = source.number<uint32_t>("an index's header");
  if (cols < 1 || cols > kMostFaissCols) source.corrupt(fmt::format("an index of {} columns", static_cast<int32_t>(cols)));
  header.cols = cols;
  header.rows = source.number<int64_t>("an index's header");
  if (header.rows < 0) source.corrupt(fmt::format("an index of {} vectors", header.rows));
  if (header.rows > kMostFaissRows) {
    source.unsupported(fmt::format("an index of {} vectors; Kith's have up to {}", header.rows, kMostFaissRows));
  }
  source.skip(2 * sizeof(int64_t), "an index's header");
  if (!source.flag("whether the index is trained")) {
    source.refused("the index is not trained; train it in FAISS, or anew in Kith");
  }
  header.metric = static_cast<FaissMetric>(source.number<int32_t>("an index's metric"));
  if (static_cast<int32_t>(header.metric) > 1) source.skip(sizeof(float), "an index's metric");
  metric_of(source, header.metric);
  return header;
}

IndexParts begun_parts(FaissSource& source, const FaissHeader& header) {
  IndexParts parts;
  parts.metric = metric_of(source, header.metric);
  parts.cols = header.cols;
  parts.rows = header.rows;
  parts.next_id = header.rows;
  return parts;
}

MatrixBuffer read_faiss_rows(FaissSource& source, const FaissHeader& header) {
  source.expect_count(sizeof(float), header.rows * header.cols, "vectors");
  MatrixBuffer rows(DType::f32, header.rows, header.cols, "the vectors", source.resources());
  source.read(rows.mutable_view().data(), header.rows * header.cols * size_of(DType::f32), "vectors");
  return rows;
}

bool is_flat_tag(std::string_view tag) { return tag == "IxF2" || tag == "IxFI" || tag == "IxFl"; }

}  // namespace kith
