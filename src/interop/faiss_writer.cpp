#include "interop/faiss_file.hpp"

#include <kith/error.hpp>
#include <kith/faiss_file.hpp>

#include "core/typed_row.hpp"
#include "index/index_access.hpp"
#include "index/index_parts_check.hpp"
#include "index/refine.hpp"
#include "interop/faiss_own_code.hpp"
#include "interop/faiss_parts.hpp"
#include "ivf/model/ivf_model.hpp"
#include "quantize/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace kith {
namespace {

[[noreturn]] void refuse(std::string_view reason) {
  throw Unsupported(fmt::format("the index cannot be written for FAISS: {}", reason));
}

FaissMetric faiss_metric(Metric metric) {
  switch (metric) {
    case Metric::l2:
    case Metric::sqeuclidean: return FaissMetric::l2;
    case Metric::inner_product: return FaissMetric::inner_product;
    case Metric::l1: return FaissMetric::l1;
    case Metric::linf: return FaissMetric::linf;
    case Metric::cosine:
      refuse("it has no metric cosine; an index 'L2norm,...' with inner_product finds the same neighbours");
    default: refuse(fmt::format("it has no metric {} as Kith's", name_of(metric)));
  }
}

FaissScalar scalar_type(const CodeFormat& format) {
  if (format.steps_columns()) {
    return format.bits == 8 ? FaissScalar::bits8 : format.bits == 6 ? FaissScalar::bits6 : FaissScalar::bits4;
  }
  if (format.dtype == DType::f16) return FaissScalar::fp16;
  if (format.dtype == DType::bf16) return FaissScalar::bf16;
  refuse(fmt::format("it keeps {} vectors as they are; FAISS has f32, f16 and bf16 for that, or codes (SQ8)",
                     name_of(format.dtype)));
}

bool is_f32(const CodeFormat& format) { return format.stores_values() && format.dtype == DType::f32; }

// What FAISS lacks is found before a file is begun.
void check_code(const CodeFormat& format, bool residual) {
  if (format.copies_codewords() || format.adds_codewords() || own_code_of(format) != nullptr) return;
  if (!is_f32(format)) {
    scalar_type(format);
  } else if (residual) {
    refuse("its lists keep f32 vectors less their centres; FAISS keeps them as they are");
  }
}

void check_writable(const IndexParts& parts) {
  const FaissMetric metric = faiss_metric(parts.metric);
  if (parts.cols == 0) refuse("it has no columns yet; add vectors first");
  if (parts.graph)
    refuse("FAISS has no such graph; save it as .kith, or add the vectors to a Flat index and write that");
  if (parts.lists) {
    check_code(parts.lists->codec.format, parts.lists->residual);
    if (const FaissOwnCode* const own = own_code_of(parts.lists->codec.format)) {
      if (const std::string reason = own->refusal(*parts.lists, metric); !reason.empty()) refuse(reason);
    }
  } else {
    const CodeFormat format{.cols = parts.stored_cols(), .dtype = parts.transforms.empty() ? parts.dtype : DType::f32};
    check_code(format, false);
    if (!is_f32(format) && metric != FaissMetric::l2 && metric != FaissMetric::inner_product) {
      refuse(fmt::format("it has {} for f32 vectors alone", name_of(parts.metric)));
    }
  }
  if (parts.refine) check_code(parts.refine->codec.format, false);
}

class FaissWriter {
 public:
  FaissWriter(const IndexParts& parts, const std::string& path, const Resources& resources)
      : parts_(parts), metric_(faiss_metric(parts.metric)), sink_(path, resources) {}

  void write() {
    const bool inverted = parts_.lists && parts_.lists->centres.rows() > 0;
    const bool mapped = !parts_.ids.empty() && (!inverted || parts_.refine);
    if (mapped) {
      sink_.tag("IxMp");
      header(parts_.cols);
    }
    if (parts_.refine) {
      sink_.tag("IxRF");
      header(parts_.cols);
    }
    if (!parts_.transforms.empty()) {
      sink_.tag("IxPT");
      header(parts_.cols);
      sink_.number(static_cast<int32_t>(parts_.transforms.size()));
      for (const TransformParts& transform : parts_.transforms) write_transform(sink_, transform);
    }
    if (inverted) {
      write_inverted(!mapped);
    } else if (parts_.lists) {
      write_codes(parts_.lists->codec, parts_.lists->codes);
    } else {
      write_flat();
    }
    if (parts_.refine) {
      write_codes(parts_.refine->codec, parts_.refine->codes);
      const float factor = parts_.refine->factor > 0 ? parts_.refine->factor : static_cast<float>(kDefaultRefine);
      sink_.number(std::clamp(factor, 1.0F, 1000.0F));
    }
    if (mapped) sink_.values(std::span<const int64_t>(parts_.ids.begin(), parts_.ids.end()));
    sink_.commit();
  }

 private:
  void header(int64_t cols) { header(cols, parts_.rows); }
  void header(int64_t cols, int64_t rows) {
    constexpr int64_t kUnused = 1 << 20;
    sink_.number(static_cast<int32_t>(cols));
    sink_.number(rows);
    sink_.number(kUnused);
    sink_.number(kUnused);
    sink_.flag(true);
    sink_.number(static_cast<int32_t>(metric_));
    if (static_cast<int32_t>(metric_) > 1) sink_.number(0.0F);
  }

  std::string_view flat_tag() const {
    if (metric_ == FaissMetric::l2) return "IxF2";
    return metric_ == FaissMetric::inner_product ? "IxFI" : "IxFl";
  }

  void write_rows(const MatrixView& rows) {
    const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
    if (rows.row_stride() == rows.cols()) return sink_.bytes(rows.data(), rows.rows() * row_bytes);
    for (int64_t i = 0; i < rows.rows(); ++i) sink_.bytes(rows.row(i), row_bytes);
  }

  // What stands before values as they are, or scalar codes.
  void begin_values(const CodecParts& codec) {
    const CodeFormat& format = codec.format;
    const bool plain = is_f32(format);
    sink_.tag(plain ? flat_tag() : "IxSQ");
    header(format.cols);
    if (!plain) scalar_quantizer(codec);
    sink_.number(static_cast<uint64_t>(parts_.rows * (plain ? format.cols : format.bytes())));
  }

  void write_flat() {
    begin_values({{.cols = parts_.stored_cols(), .dtype = parts_.transforms.empty() ? parts_.dtype : DType::f32}, {}});
    for (const PartMatrix& block : parts_.flat) write_rows(block.view());
  }

  void product_quantizer(const CodecParts& codec) {
    sink_.number(static_cast<uint64_t>(codec.format.cols));
    sink_.number(static_cast<uint64_t>(codec.format.parts));
    sink_.number(static_cast<uint64_t>(codec.format.bits));
    sink_.values<float>(codec.values);
  }

  void scalar_quantizer(const CodecParts& codec) {
    sink_.number(static_cast<int32_t>(scalar_type(codec.format)));
    sink_.number(int32_t{0});  // ranges were those of the training vectors
    sink_.number(0.0F);
    sink_.number(static_cast<uint64_t>(codec.format.cols));
    sink_.number(static_cast<uint64_t>(codec.format.bytes()));
    sink_.values<float>(codec.values);
  }

  // Codes of all rows in their order, without lists.
  void write_codes(const CodecParts& codec, const PartArray<uint8_t>& codes) {
    const CodeFormat& format = codec.format;
    if (const FaissOwnCode* const own = own_code_of(format)) return write_own_codes(*own, codec, codes);
    const bool additive = format.adds_codewords();
    if (!additive && !format.copies_codewords()) {
      begin_values(codec);
      return sink_.bytes(codes.data(), codes.size());
    }
    sink_.tag(!additive ? "IxPq" : codec.code == kResidualCode ? "IxRq" : "IxLS");
    header(format.cols);
    additive ? write_additive_quantizer(sink_, codec) : product_quantizer(codec);
    if (additive) sink_.number(static_cast<uint64_t>(format.bytes()));
    sink_.values(std::span<const uint8_t>(codes.begin(), codes.end()));
    if (additive) return;
    sink_.number(int32_t{0});  // search_type, encode_signs, polysemous_ht: FAISS's defaults
    sink_.flag(false);
    sink_.number(static_cast<int32_t>(format.parts * format.bits + 1));
  }

  void write_own_codes(const FaissOwnCode& own, const CodecParts& parts, const PartArray<uint8_t>& codes) {
    const auto codec = Codec::from_parts(parts.format, parts.values);
    const int64_t bytes = parts.format.bytes();
    std::vector<uint8_t> given(static_cast<size_t>(bytes));
    sink_.tag(own.tag());
    header(parts.format.cols);
    own.write(sink_, parts.format);
    sink_.number(static_cast<uint64_t>(codes.size()));
    for (int64_t i = 0; i < codes.size(); i += bytes) {
      own.convert_back(codec->view(), nullptr, codes.data() + i, given.data());
      sink_.bytes(given.data(), bytes);
    }
    own.write_end(sink_, parts);
  }

  void write_inverted(bool own_ids) {
    const ListParts& lists = *parts_.lists;
    const FaissOwnCode* const own = own_code_of(lists.codec.format);
    const bool drops_norms = lists.residual && lists.codec.format.has_norm() && own == nullptr;
    const CodecParts codec = drops_norms ? without_norms(lists.codec) : lists.codec;
    const CodeFormat& format = codec.format;
    const bool product = format.copies_codewords();
    const bool additive = format.adds_codewords();
    const std::string_view additive_tag = codec.code == kResidualCode ? "IwRQ" : "IwLS";
    sink_.tag(additive ? additive_tag : product ? "IwPQ" : own ? own->list_tag() : is_f32(format) ? "IwFl" : "IwSq");
    header(format.cols);
    sink_.number(static_cast<uint64_t>(lists.lists));
    sink_.number(static_cast<uint64_t>(parts_.probes > 0 ? parts_.probes : default_probes(lists.lists)));
    sink_.tag(flat_tag());
    header(format.cols, lists.lists);
    sink_.number(static_cast<uint64_t>(lists.lists * format.cols));
    write_rows(lists.centres.view());
    sink_.number(uint8_t{0});  // no direct map
    sink_.number(uint64_t{0});
    if (product) {
      sink_.flag(lists.residual);
      sink_.number(static_cast<uint64_t>(format.bytes()));
      product_quantizer(codec);
    } else if (additive) {
      sink_.number(static_cast<uint64_t>(format.bytes()));
      write_additive_quantizer(sink_, codec);
      sink_.flag(lists.residual);
      sink_.number(int32_t{0});  // no precomputed table
    } else if (own != nullptr) {
      own->write(sink_, format);
      own->write_list_settings(sink_, format, lists.residual);
    } else if (!is_f32(format)) {
      scalar_quantizer(codec);
      sink_.number(static_cast<uint64_t>(format.bytes()));
      sink_.flag(lists.residual);
    }
    if (own != nullptr) {
      const auto held = Codec::from_parts(format, codec.values);
      return write_lists(lists, format.bytes(), own_ids, [&](int64_t list, const uint8_t* code, uint8_t* out) {
        own->convert_back(held->view(), typed_row<float>(lists.centres.view(), list), code, out);
      });
    }
    if (!drops_norms) return write_lists(lists, format.bytes(), own_ids, {});
    write_lists(lists, format.bytes(), own_ids,
                [&](int64_t, const uint8_t* code, uint8_t* out) { copy_books(lists.codec.format, code, out); });
  }

  // A code of a list as FAISS has it; none: as it is.
  using GivenCode = std::function<void(int64_t list, const uint8_t* code, uint8_t* out)>;

  void write_lists(const ListParts& lists, int64_t code_bytes, bool own_ids, const GivenCode& give) {
    const int64_t held_bytes = lists.codec.format.bytes();
    std::vector<uint8_t> given(static_cast<size_t>(code_bytes));
    sink_.tag("ilar");
    sink_.number(static_cast<uint64_t>(lists.lists));
    sink_.number(static_cast<uint64_t>(code_bytes));
    sink_.tag("full");
    sink_.number(static_cast<uint64_t>(lists.lists));
    for (int64_t list = 0; list < lists.lists; ++list) {
      sink_.number(static_cast<uint64_t>(lists.offsets[list + 1] - lists.offsets[list]));
    }
    for (int64_t list = 0; list < lists.lists; ++list) {
      const int64_t first = lists.offsets[list];
      const int64_t end = lists.offsets[list + 1];
      if (!give) sink_.bytes(lists.codes.data() + first * code_bytes, (end - first) * code_bytes);
      for (int64_t i = first; give && i < end; ++i) {
        give(list, lists.codes.data() + i * held_bytes, given.data());
        sink_.bytes(given.data(), code_bytes);
      }
      for (int64_t i = first; i < end; ++i) {
        const int64_t row = lists.rows[i];
        sink_.number(own_ids && !parts_.ids.empty() ? parts_.ids[row] : row);
      }
    }
  }

  const IndexParts& parts_;
  FaissMetric metric_;
  FaissSink sink_;
};

}  // namespace

void write_faiss(const IndexParts& parts, const std::string& path, const Resources& resources) {
  check_parts(parts, resources);
  check_writable(parts);
  FaissWriter(parts, path, resources).write();
}

void write_faiss_index(const Index& index, const std::string& path, const Resources& resources) {
  if (!index.offset().empty()) {
    throw InvalidArgument(
        "the index subtracts an offset from float64 vectors, which FAISS's files do not hold; add float32 vectors");
  }
  write_faiss(IndexAccess::parts(index, resources), path, resources);
}

}  // namespace kith
