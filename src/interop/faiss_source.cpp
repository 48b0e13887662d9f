#include "interop/faiss_source.hpp"

#include <kith/error.hpp>

#include "core/reservation.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kBufferBytes = 64 * 1024;
constexpr int64_t kStep = int64_t{16} << 20;  // bytes between two looks at whether the caller cancelled

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

FaissSource::FaissSource(const std::string& path, const Resources& resources)
    : path_(path), file_(open_for_reading(path)), resources_(resources) {}

void FaissSource::check_left(int64_t bytes, std::string_view what) const {
  if (bytes > left()) {
    throw_corrupt(path_, file_.size, fmt::format("the file ends here, within {}; it was cut or damaged", what));
  }
}

void FaissSource::read(void* out, int64_t bytes, std::string_view what) {
  check_left(bytes, what);
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const int64_t buffered = buffer_at_ + static_cast<int64_t>(buffer_.size()) - at_;
    int64_t taken = std::min(bytes, buffered);
    if (buffered > 0) {
      std::memcpy(to, buffer_.data() + (at_ - buffer_at_), static_cast<size_t>(taken));
    } else if (bytes >= kBufferBytes) {
      resources_.check_cancelled();
      taken = std::min(bytes, kStep);
      read_fully(file_.file, path_, at_, to, taken);
    } else {
      buffer_at_ = at_;
      buffer_.resize(static_cast<size_t>(std::min(kBufferBytes, left())));
      read_fully(file_.file, path_, at_, buffer_.data(), static_cast<int64_t>(buffer_.size()));
      continue;
    }
    at_ += taken;
    to += taken;
    bytes -= taken;
    if (at_ > buffer_at_ + static_cast<int64_t>(buffer_.size())) {
      buffer_.clear();
      buffer_at_ = at_;
    }
  }
}

void FaissSource::skip(int64_t bytes, std::string_view what) {
  check_left(bytes, what);
  at_ += bytes;
  if (at_ > buffer_at_ + static_cast<int64_t>(buffer_.size())) {
    buffer_.clear();
    buffer_at_ = at_;
  }
}

bool FaissSource::flag(std::string_view what) {
  const auto value = number<uint8_t>(what);
  if (value > 1) corrupt(fmt::format("{} is {}, and must be 0 or 1", what, value));
  return value == 1;
}

std::string FaissSource::tag() {
  std::string text(4, '\0');
  read(text.data(), 4, "the name of a part");
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!printable) corrupt("no name of a part of a FAISS index is here");
  return text;
}

int64_t FaissSource::count(int64_t element_bytes, std::string_view what) {
  const auto value = number<uint64_t>(what);
  if (value > static_cast<uint64_t>(left() / element_bytes)) {
    corrupt(fmt::format("{} values of {} are more than the file has; it was cut or damaged", value, what));
  }
  return static_cast<int64_t>(value);
}

int64_t FaissSource::bounded(uint64_t least, uint64_t most, std::string_view what) {
  const auto value = number<uint64_t>(what);
  if (value < least || value > most) {
    corrupt(fmt::format("{} is {}, and must be {} to {}", what, value, least, most));
  }
  return static_cast<int64_t>(value);
}

void FaissSource::expect_count(int64_t element_bytes, int64_t expected, std::string_view what) {
  const int64_t found = count(element_bytes, what);
  if (found != expected) corrupt(fmt::format("{} values of {}, where {} must be", found, what, expected));
}

std::vector<float> FaissSource::floats(int64_t expected, std::string_view what) {
  expect_count(sizeof(float), expected, what);
  const Reservation room(array_bytes<float>(expected), 0, resources_);  // too small a limit is found here
  std::vector<float> values(static_cast<size_t>(expected));
  read(values.data(), array_bytes<float>(expected), what);
  return values;
}

void FaissSource::corrupt(std::string_view reason) const { throw_corrupt(path_, at_, reason); }

void FaissSource::refused(std::string_view reason) const { throw_refused(path_, at_, reason); }

void FaissSource::unsupported(std::string_view reason) const {
  throw Unsupported(fmt::format("'{}', byte {}: {}", path_, at_, reason));
}

FaissHeader read_faiss_header(FaissSource& source) {
  FaissHeader header;
  const auto cols = source.number<uint32_t>("an index's header");
  if (cols < 1 || cols > kMostFaissCols)
    source.corrupt(fmt::format("an index of {} columns", static_cast<int32_t>(cols)));
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

}  // namespace kith
