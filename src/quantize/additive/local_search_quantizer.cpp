#include <kith/local_search_quantizer.hpp>

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/named_limit.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/encode_packed.hpp"
#include "quantize/additive/local_search_training.hpp"
#include "quantize/additive/packed_codes.hpp"
#include "quantize/codec.hpp"
#include "quantize/finite_rows.hpp"
#include "quantize/lookup_table.hpp"
#include "quantize/unused_bits.hpp"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

namespace kith {
namespace {

void check_at_least(const char* name, int64_t value, int64_t least) {
  if (value >= least) return;
  throw InvalidArgument(fmt::format("{} = {}; give {} or more", name, value, least));
}

}  // namespace

void LocalSearchParams::validate() const {
  if (codebooks < 1 || codebooks > kMostCodebooks) {
    throw InvalidArgument(fmt::format("codebooks = {}; an additive code has 1 to {}", codebooks, kMostCodebooks));
  }
  if (bits < 1 || bits > 8) {
    throw InvalidArgument(fmt::format("bits = {}; an additive code has 1 to 8 bits a codebook", bits));
  }
  check_at_least("rounds", rounds, 1);
  check_at_least("train_search_rounds", train_search_rounds, 1);
  check_at_least("sweeps", sweeps, 1);
  check_at_least("perturbed", perturbed, 0);
  if (perturbed > codebooks) {
    throw InvalidArgument(fmt::format("perturbed = {} of {} codes; perturb at most as many as there are codebooks",
                                      perturbed, codebooks));
  }
  if (!(regularization > 0) || !(regularization < 1e300)) {
    throw InvalidArgument(fmt::format("regularization = {}; it must be above 0 (10 is usual)", regularization));
  }
  if (!(anneal >= 0) || !(anneal < 1e300)) {
    throw InvalidArgument(fmt::format("anneal = {}; it must be a finite number from 0 on (0.35 is usual)", anneal));
  }
}

void LocalSearchEncoding::validate() const {
  check_at_least("rounds", rounds, 0);
  check_at_least("from_round", from_round, 0);
  check_at_least("first_row", first_row, 0);
}

struct LocalSearchQuantizer::State {
  explicit State(const LocalSearchParams& given) : params(given) {}

  struct Trained {
    std::shared_ptr<const Codec> codec;
    std::vector<double> history;

    int64_t cols() const { return codec->format().cols; }
  };

  std::shared_ptr<const Trained> find() const {
    const std::lock_guard lock(mutex);
    return trained;
  }
  std::shared_ptr<const Trained> get() const {
    std::shared_ptr<const Trained> found = find();
    if (found == nullptr) throw InvalidState("the quantizer is not trained; call train first");
    return found;
  }
  void publish(int64_t cols, std::vector<float> values, std::vector<double> history) {
    CodeFormat format;
    format.kind = CodeKind::additive;
    format.cols = cols;
    format.bits = params.bits;
    format.parts = params.codebooks;
    auto next = std::make_shared<const Trained>(
        Trained{Codec::from_parts(format, std::move(values)), std::move(history)});
    const std::lock_guard lock(mutex);
    trained.swap(next);
  }

  void train(RowSource& source, const Resources& resources) {
    const DefaultFloatMode mode;
    const int64_t cols = source.info().cols;
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    std::vector<float> values;
    std::vector<double> history;
    const auto take = [&](TrainingRound round) {
      values = std::move(round.codebooks);
      history.push_back(round.objective);
    };
    const auto needed = [&] { return local_search_training_bytes(params, source.rows(), cols, resources.threads()); };
    try {
      naming_host_limit(needed, resources, [&] { train_local_search(params, source, take, resources); });
    } catch (const Cancelled&) {
      if (!values.empty()) publish(cols, std::move(values), std::move(history));
      throw;
    }
    publish(cols, std::move(values), std::move(history));
  }

  Codebooks books(const Trained& of) const {
    return {of.codec->values().data(), params.codebooks, params.bits, of.cols()};
  }

  const LocalSearchParams params;
  mutable std::mutex mutex;
  std::shared_ptr<const Trained> trained;
};

LocalSearchQuantizer::LocalSearchQuantizer(LocalSearchParams params) {
  params.validate();
  state_ = std::make_unique<State>(params);
}
LocalSearchQuantizer::~LocalSearchQuantizer() = default;
LocalSearchQuantizer::LocalSearchQuantizer(LocalSearchQuantizer&&) noexcept = default;
LocalSearchQuantizer& LocalSearchQuantizer::operator=(LocalSearchQuantizer&&) noexcept = default;

void LocalSearchQuantizer::train(const MatrixView& rows, const Resources& resources) {
  ViewSource source(rows);
  if (params().check_finite) refuse_not_finite_rows(source, resources);
  state_->train(source, resources);
}

void LocalSearchQuantizer::train(const VectorFile& rows, const Resources& resources) {
  const ReadMemory memory = rows.reserve_memory(resources);
  if (params().check_finite) {
    FileSource checked(rows);
    refuse_not_finite_rows(checked, resources);
  }
  FileSource source(rows);
  state_->train(source, resources);
}

void LocalSearchQuantizer::set_values(const VectorView<const float>& codebooks) {
  state_->publish(columns_of_codebooks(params().codebooks, params().bits, codebooks),
                  {codebooks.data, codebooks.data + codebooks.size}, {});
}

std::vector<float> LocalSearchQuantizer::values() const { return state_->get()->codec->values(); }
std::vector<double> LocalSearchQuantizer::history() const { return state_->get()->history; }
const LocalSearchParams& LocalSearchQuantizer::params() const { return state_->params; }
bool LocalSearchQuantizer::trained() const { return state_->find() != nullptr; }
int64_t LocalSearchQuantizer::cols() const {
  const auto found = state_->find();
  return found == nullptr ? 0 : found->cols();
}
int64_t LocalSearchQuantizer::code_bytes() const {
  return trained() ? additive_code_bytes(params().codebooks, params().bits) : 0;
}

void LocalSearchQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes,
                                  const LocalSearchEncoding& encoding, const Resources& resources) const {
  const DefaultFloatMode mode;
  encoding.validate();
  const auto trained = state_->get();
  const Codebooks books = state_->books(*trained);
  check_additive_rows(rows, books.cols);
  check_additive_codes(codes, rows.rows(), books);
  ViewSource source(rows);
  if (params().check_finite) refuse_not_finite_rows(source, resources);
  AdditiveEncoding how;
  how.search = plan_of(params(), encoding.rounds, encoding.from_round);
  how.search.seed = encoding.seed;
  how.start = encoding.start;
  how.first_row = encoding.first_row;
  const auto needed = [&] { return encoding_bytes(rows.rows(), rows.dtype(), resources.threads()); };
  naming_host_limit(needed, resources, [&] { encode_packed(books, how, rows, codes, resources); });
}

void LocalSearchQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes,
                                  const Resources& resources) const {
  encode(rows, codes, LocalSearchEncoding(), resources);
}

void LocalSearchQuantizer::decode(const MatrixView& codes, const MutableMatrixView& out,
                                  const Resources& resources) const {
  const auto trained = state_->get();
  check_additive_codes(codes, codes.rows(), state_->books(*trained));
  refuse_unused_bits(codes, trained->codec->format(), resources);
  const auto needed = [&] { return trained->codec->decoding_bytes(resources.threads()); };
  naming_host_limit(needed, resources, [&] { trained->codec->decode(codes, out, resources); });
}

int64_t LocalSearchQuantizer::encoding_bytes(int64_t rows, DType dtype, int threads) const {
  return state_->get()->codec->encoding_bytes(rows, dtype, threads);
}
int64_t LocalSearchQuantizer::decoding_bytes(int threads) const {
  return state_->get()->codec->decoding_bytes(threads);
}

void LocalSearchQuantizer::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                        const Resources& resources) const {
  const DefaultFloatMode mode;
  const auto trained = state_->get();
  ViewSource source(queries);
  if (params().check_finite) refuse_not_finite_rows(source, resources);
  fill_lookup_table(*trained->codec, queries, metric, out, resources);
}

}  // namespace kith
