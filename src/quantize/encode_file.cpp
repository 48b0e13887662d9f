#include "quantize/encode_file.hpp"

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "core/float_mode.hpp"
#include "core/parallel_for.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "ranks/parts.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kMostPieceBytes = int64_t{32} << 20;  // of vectors and codes; larger ones are not faster
constexpr int64_t kFewestPieceRows = 64;

// Local search depends on row numbers; this sets the first of a piece.
struct PieceEncoding {
  PieceEncoding(const Codec& codec, const LocalSearchEncoding* how, int64_t first) {
    const bool by_number = how != nullptr || !codec.recipe().draws_by_content;
    if (!by_number) return;
    own.emplace();
    own->rounds = codec.recipe().effort;
    if (how != nullptr) own = *how;
    own->first_row += first;
  }
  const LocalSearchEncoding* get() const { return own ? &*own : nullptr; }

  std::optional<LocalSearchEncoding> own;
};

// Encodes pieces of as many rows as the limits have room for.
class FileEncoder {
 public:
  FileEncoder(const TrainedCodec& trained, const VectorFile& rows, const LocalSearchEncoding* how)
      : trained_(trained), codec_(trained.codec()), rows_(rows), how_(how), info_(rows) {
    if (rows.cols() == codec_->format().cols) return;
    throw InvalidArgument(fmt::format("'{}' holds rows of {} columns; the code is of {}", rows.path(), rows.cols(),
                                      codec_->format().cols));
  }

  int64_t code_bytes() const { return codec_->format().bytes(); }

  // encode(first, rows) makes the codes of a piece; `code_copies`: buffers for codes of a piece, beside the caller's.
  template <typename Encode>
  void run(int64_t code_copies, const Resources& given, const Encode& encode) const {
    const DefaultFloatMode mode;
    within_limits("the codes", given, [&](const Resources& resources) {
      const Device chosen = device(resources);
      const Resources on = chosen == resources.device() ? resources : resources.with_device(chosen);
      const ReadMemory memory = rows_.reserve_memory(on);
      const int64_t most = rows_at_once(code_copies, on);
      FileSource source(rows_);
      source.open(most, on);
      const Resources quiet = on.with_progress({});
      ProgressMeter meter("encode", info_.rows, on);
      encode(most, quiet, [&](const auto& use) {
        if (counts_only(on)) return use(0, RowsInfo(most, info_.cols, info_.dtype).counted_view());
        for (int64_t first = 0; first < info_.rows; first += most) {
          const int64_t count = std::min(most, info_.rows - first);
          use(first, source.fetch(first, count));
          meter.add(count);
          meter.poll();
        }
      });
      meter.finish();
    });
  }

  void encode_piece(int64_t first, const MatrixView& rows, const MutableMatrixView& codes,
                    const Resources& resources) const {
    const PieceEncoding encoding(*codec_, how_, first);
    const auto call = [&](const Resources& used) { trained_.encode(rows, codes, used, encoding.get()); };
    if (counts_only(resources)) return count_call(resources, call);
    naming_files({{"data", rows_}}, [&] { naming_rows("data", [&] { call(resources); }, first); });
  }

 private:
  // The device is chosen once, for all rows; under a limit for each piece, by what fits.
  Device device(const Resources& resources) const {
    const bool chosen = resources.device().kind != DeviceKind::automatic || is_shared(resources);
    if (chosen || counts_memory(resources)) return resources.device();
    RowsInfo all = info_;
    all.in_memory = true;
    return codec_->encoding_device(all.counted_view(), how_, resources);
  }

  int64_t rows_at_once(int64_t code_copies, const Resources& resources) const {
    const int64_t fewest = std::min(kFewestPieceRows, std::max<int64_t>(info_.rows, 1));
    if (counts_only(resources)) return fewest;
    const int64_t row_bytes = info_.row_bytes() + code_bytes();
    int64_t rows =
        std::clamp(kMostPieceBytes / std::max<int64_t>(row_bytes, 1), fewest, std::max<int64_t>(info_.rows, 1));
    const auto needed = [&] {
      const RowsInfo piece(rows, info_.cols, info_.dtype);
      return codec_->encoding_footprint(piece, resources.with_device(Device::cpu())).host + info_.read_bytes(rows) +
             code_copies * rows * code_bytes();
    };
    const int64_t room = resources.host_memory()->available();
    while (rows > fewest && needed() > room / 8 * 7) rows = std::max(fewest, rows / 2);
    return rows;
  }

  const TrainedCodec& trained_;
  const std::shared_ptr<const Codec> codec_;
  const VectorFile& rows_;
  const LocalSearchEncoding* const how_;
  const RowsInfo info_;
};

}  // namespace

void encode_file(const TrainedCodec& codec, const VectorFile& rows, const MutableMatrixView& codes,
                 const LocalSearchEncoding* how, const Resources& resources) {
  const FileEncoder encoder(codec, rows, how);
  if (codes.dtype() != DType::u8 || codes.rows() != rows.rows() || codes.cols() != encoder.code_bytes()) {
    throw InvalidArgument(fmt::format("the codes are {} x {} {}; they must be {} x {} u8", codes.rows(), codes.cols(),
                                      name_of(codes.dtype()), rows.rows(), encoder.code_bytes()));
  }
  encoder.run(0, resources, [&](int64_t, const Resources& quiet, const auto& for_pieces) {
    for_pieces([&](int64_t first, const MatrixView& piece) {
      encoder.encode_piece(first, piece, codes.slice(first, piece.rows()), quiet);
    });
  });
}

void encode_file(const TrainedCodec& codec, const VectorFile& rows, const CodesSink& out,
                 const LocalSearchEncoding* how, const Resources& resources) {
  if (how != nullptr && how->start == CodeStart::given) {
    throw InvalidArgument("codes that are given away have no start to be given; encode to an array that holds them");
  }
  const FileEncoder encoder(codec, rows, how);
  encoder.run(2, resources, [&](int64_t most, const Resources& quiet, const auto& for_pieces) {
    MatrixBuffer buffers[2];
    for (MatrixBuffer& buffer : buffers) buffer = MatrixBuffer(DType::u8, most, encoder.code_bytes(), "codes", quiet);
    std::future<void> given;  // the last: it ends before the buffers go
    int turn = 0;
    for_pieces([&](int64_t first, const MatrixView& piece) {
      const MutableMatrixView codes = buffers[turn].mutable_view().slice(0, piece.rows());
      encoder.encode_piece(first, piece, codes, quiet);
      if (counts_only(quiet)) return;
      if (given.valid()) given.get();
      given = start_beside([&out, first, view = MatrixView(codes)] { out(first, view); });
      turn = 1 - turn;
    });
    if (given.valid()) given.get();
  });
}

void VectorQuantizer::encode(const VectorFile& rows, const MutableMatrixView& codes, const Resources& resources) const {
  encode_file(*codec_, rows, codes, nullptr, resources);
}

void VectorQuantizer::encode(const VectorFile& rows, const CodesSink& out, const Resources& resources) const {
  encode_file(*codec_, rows, out, nullptr, resources);
}

void LocalSearchQuantizer::encode(const VectorFile& rows, const MutableMatrixView& codes,
                                  const LocalSearchEncoding& encoding, const Resources& resources) const {
  encoding.validate();
  encode_file(trained_codec(), rows, codes, &encoding, resources);
}

void LocalSearchQuantizer::encode(const VectorFile& rows, const CodesSink& out, const LocalSearchEncoding& encoding,
                                  const Resources& resources) const {
  encoding.validate();
  encode_file(trained_codec(), rows, out, &encoding, resources);
}

}  // namespace kith
