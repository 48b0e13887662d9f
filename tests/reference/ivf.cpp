#include "reference/ivf.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kith::reference {
namespace {

float stored_value(DType dtype, const uint8_t* code, int64_t i) {
  const auto read = [&](auto value) {
    std::memcpy(&value, code + i * static_cast<int64_t>(sizeof value), sizeof value);
    return static_cast<float>(value);
  };
  switch (dtype) {
    case DType::f16: return read(Half{});
    case DType::bf16: return read(BFloat16{});
    case DType::u8: return read(uint8_t{});
    case DType::i8: return read(int8_t{});
    default: return read(float{});
  }
}

void decode(const CodecView& codec, const uint8_t* code, float* out) {
  const CodeFormat& format = codec.format;
  for (int64_t c = 0; c < format.cols; ++c) {
    if (format.kind == CodeKind::stored) {
      out[c] = stored_value(format.dtype, code, c);
    } else if (format.kind == CodeKind::scalar) {
      out[c] = std::fma(static_cast<float>(sub_code(code, c, format.bits)), codec.steps[c], codec.bases[c]);
    } else {
      const int64_t part = c / format.part_cols();
      const int64_t word = sub_code(code, part, format.bits);
      out[c] = codec.codewords[(part * format.codewords() + word) * format.part_cols() + c % format.part_cols()];
    }
  }
}

}  // namespace

Ivf::Ivf(const IvfModel& model, const Matrix<float>& rows) : model_(model), vectors_(rows.rows, rows.cols) {
  std::vector<uint8_t> code(static_cast<size_t>(model.codec->format().bytes()));
  for (int64_t i = 0; i < rows.rows; ++i) {
    const int64_t list = ranked_lists(rows.row(i)).front();
    lists_.push_back(list);
    std::vector<float> x(rows.row(i), rows.row(i) + rows.cols);
    if (model.residual) {
      for (int64_t c = 0; c < rows.cols; ++c) x[static_cast<size_t>(c)] -= model.centre(list)[c];
    }
    model.codec->encode(MatrixView(x.data(), 1, rows.cols), code.data(), Resources());
    decode(model.codec->view(), code.data(), vectors_.row(i));
    if (!model.residual) continue;
    for (int64_t c = 0; c < rows.cols; ++c) vectors_.row(i)[c] = model.centre(list)[c] + vectors_.row(i)[c];
  }
}

std::vector<int64_t> Ivf::ranked_lists(const float* query) const {
  if (!model_.has_centres()) return {0};
  std::vector<uint64_t> ranked;
  for (int64_t list = 0; list < model_.lists(); ++list) {
    const float distance = canonical(model_.metric, query, model_.centre(list), model_.cols());
    ranked.push_back(pack_neighbor(ordered_key(distance), static_cast<uint32_t>(list)));
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<int64_t> lists;
  for (const uint64_t one : ranked) lists.push_back(row_of(one));
  return lists;
}

uint64_t Ivf::neighbor(const float* query, int64_t row) const {
  return pack_neighbor(ordered_key(canonical(model_.metric, query, vectors_.row(row), model_.cols())),
                       static_cast<uint32_t>(row));
}

std::vector<uint64_t> Ivf::search(const Matrix<float>& queries, int64_t k, int64_t probes,
                                  const std::vector<bool>& kept) const {
  const auto keeps = [&](int64_t row) { return kept.empty() || kept[static_cast<size_t>(row)]; };
  int64_t total = 0;
  for (int64_t row = 0; row < vectors_.rows; ++row) total += keeps(row);
  std::vector<uint64_t> found;
  for (int64_t q = 0; q < queries.rows; ++q) {
    const std::vector<int64_t> lists = ranked_lists(queries.row(q));
    std::vector<uint64_t> all;
    for (size_t rank = 0; rank < lists.size(); ++rank) {
      const bool enough = static_cast<int64_t>(all.size()) >= std::min(k, total);
      if (static_cast<int64_t>(rank) >= probes && enough) break;
      for (int64_t row = 0; row < vectors_.rows; ++row) {
        if (list(row) == lists[rank] && keeps(row)) all.push_back(neighbor(queries.row(q), row));
      }
    }
    std::sort(all.begin(), all.end());
    all.resize(static_cast<size_t>(k), kPadding);
    found.insert(found.end(), all.begin(), all.end());
  }
  return found;
}

std::vector<std::vector<uint64_t>> Ivf::range(const Matrix<float>& queries, float most, int64_t probes,
                                              const std::vector<bool>& kept) const {
  std::vector<std::vector<uint64_t>> found;
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<int64_t> lists = ranked_lists(queries.row(q));
    lists.resize(static_cast<size_t>(std::min<int64_t>(probes, static_cast<int64_t>(lists.size()))));
    std::vector<uint64_t> within;
    for (int64_t row = 0; row < vectors_.rows; ++row) {
      if (!kept.empty() && !kept[static_cast<size_t>(row)]) continue;
      if (std::find(lists.begin(), lists.end(), list(row)) == lists.end()) continue;
      const uint64_t one = neighbor(queries.row(q), row);
      if (ordered_of(one) <= ordered_key(most)) within.push_back(one);
    }
    std::sort(within.begin(), within.end());
    found.push_back(within);
  }
  return found;
}

}  // namespace kith::reference
