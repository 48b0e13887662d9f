// Every codeword's exact cost. Residuals are in float64, the codewords taken off in the order of the books.
#include "kernels/distance/canonical.hpp"
#include "quantize/additive/icm_engine.hpp"

#include <limits>
#include <vector>

namespace kith {
namespace {

class DirectIcm final : public IcmEngine {
 public:
  explicit DirectIcm(const SearchBooks& books)
      : books_(books), residual_(static_cast<size_t>(books.books().cols)) {}

  void load(const float* rows, int64_t) override { rows_ = rows; }

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override {
    const Codebooks& books = books_.books();
    for (int64_t i = 0; i < count; ++i) {
      find_residual(rows[i], book, others, codes + rows[i] * books.books);
      float best = std::numeric_limits<float>::infinity();
      out[i] = 0;
      for (int64_t j = 0; j < books.words(); ++j) {
        const float key = canonical_pair<KeyKind::squared_l2>(residual_.data(), books.word(book, j), books.cols);
        if (key < best) {
          best = key;
          out[i] = static_cast<uint8_t>(j);
        }
      }
    }
  }

  float cost(int64_t row, const uint8_t* codes) const override {
    find_residual(row, -1, IcmOthers::all, codes);
    return static_cast<float>(canonical_squared_norm(residual_.data(), books_.books().cols));
  }

 private:
  void find_residual(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes) const {
    const Codebooks& books = books_.books();
    for (int64_t c = 0; c < books.cols; ++c) {
      double value = static_cast<double>(rows_[row * books.cols + c]);
      for (int64_t k = 0; k < books.books; ++k) {
        if (k == book) continue;
        const bool by_mean = others == IcmOthers::before && k > book;
        value -= static_cast<double>(by_mean ? books_.mean(k)[c] : books.word(k, codes[k])[c]);
      }
      residual_[static_cast<size_t>(c)] = value;
    }
  }

  const SearchBooks& books_;
  const float* rows_ = nullptr;
  mutable std::vector<double> residual_;
};

}  // namespace

std::unique_ptr<IcmEngine> make_direct_icm(const SearchBooks& books) { return std::make_unique<DirectIcm>(books); }

}  // namespace kith
