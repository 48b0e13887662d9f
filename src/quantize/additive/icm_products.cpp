// Residuals times a book: rows x cols x codewords multiply-adds a step (kernels/assign/codewords_cpu.hpp). For few
// rows, or where there is no memory for tables.
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/icm_engine.hpp"
#include "quantize/additive/residual_rows.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kResiduals = 64;  // at a time

class ProductIcm final : public IcmEngine {
 public:
  ProductIcm(const SearchBooks& books, const Resources& resources)
      : books_(books),
        cols_(books.books().cols),
        residuals_(kResiduals * cols_, "residuals", resources),
        scratch_(NearestCodeword::scratch_floats(cols_), "residuals", resources) {}

  void load(const float* rows, int64_t) override { rows_ = rows; }

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override {
    for (int64_t first = 0; first < count; first += kResiduals) {
      const int64_t some = std::min(kResiduals, count - first);
      for (int64_t i = 0; i < some; ++i) {
        const int64_t row = rows[first + i];
        take_off_codewords(books_, rows_ + row * cols_, codes + row * books_.books().books, book, others,
                           residuals_.data() + i * cols_);
      }
      books_.nearest(book).nearest(residuals_.data(), cols_, some, out + first, 1, scratch_.data());
    }
  }

  float cost(int64_t row, const uint8_t* codes) const override {
    take_off_codewords(books_, rows_ + row * cols_, codes, -1, IcmOthers::all, scratch_.data());
    return static_cast<float>(canonical_squared_norm_cpu(scratch_.data(), cols_));
  }

 private:
  const SearchBooks& books_;
  const int64_t cols_;
  const float* rows_ = nullptr;
  HostArray<float> residuals_;
  HostArray<float> scratch_;
};

}  // namespace

std::unique_ptr<IcmEngine> make_product_icm(const SearchBooks& books, const Resources& resources) {
  return std::make_unique<ProductIcm>(books, resources);
}

int64_t product_icm_bytes(const Codebooks& books) {
  return array_bytes<float>(kResiduals * books.cols + NearestCodeword::scratch_floats(books.cols));
}

}  // namespace kith
