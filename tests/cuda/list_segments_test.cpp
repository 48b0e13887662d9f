// The steps that make segments of lists on a GPU, each beside the CPU's: the list of each row, the sort, the merge.
#include "cuda/device_data.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/parity.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "ivf/segment/code_rows_cuda.hpp"
#include "ivf/segment/coding_steps_cuda.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/additive/code_norms_cuda.hpp"
#include "reference/data.hpp"
#include "rows/kept_rows.hpp"

#include "core/ordered_key.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

class CudaListSegmentsSmall : public OnCuda {};

std::shared_ptr<IvfModel> model_of(const MatrixView& centres, Metric metric, const CodeRecipe& code,
                                   const MatrixView& rows) {
  auto model = std::make_shared<IvfModel>();
  model->metric = metric;
  model->centres = MatrixBuffer(DType::f32, centres.rows(), centres.cols(), "centres", on_cpu());
  for (int64_t i = 0; i < centres.rows(); ++i) {
    std::memcpy(model->centres.mutable_view().row(i), centres.row(i), static_cast<size_t>(centres.cols()) * 4);
  }
  model->codec = Codec::train(code, rows, 0, on_cpu());
  model->residual = code.code != kStoredCode;
  return model;
}

void expect_same(const ListSegment& a, const ListSegment& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.lists(), b.lists());
  EXPECT_TRUE(std::equal(a.offsets(), a.offsets() + a.lists() + 1, b.offsets()));
  EXPECT_TRUE(std::equal(a.rows(), a.rows() + a.size(), b.rows()));
  EXPECT_TRUE(std::equal(a.codes(), a.codes() + a.size() * a.code_bytes(), b.codes()));
}

TEST_F(CudaListSegmentsSmall, EveryRowHasTheListOfTheCpu) {
  const DeviceGuard guard(0);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    for (const Shape shape :
         {Shape::gaussian, Shape::near_duplicates, Shape::far_mean, Shape::all_equal, Shape::mixed_norms, Shape::huge}) {
      for (const auto& [lists, cols] : {std::pair<int64_t, int64_t>{7, 5}, {300, 24}, {900, 80}, {130, 100}}) {
        const auto rows = make_floats(shape, 1500, cols, 1);
        const auto centres = make_floats(shape, lists, cols, 2);
        const auto model = model_of(centres.view(), metric, {}, rows.view());
        std::vector<int32_t> expected(1500);
        assign_lists(metric, centres.view(), rows.view(), expected.data(), on_cpu());
        const auto context = std::make_shared<const DeviceContext>(0);
        const Resources resources = on_cuda().with_stream(context->stream());
        const auto there = gpu_model(0, *model, resources);
        ListLabels search(*model, *there, 1024, DType::f32, context, resources);
        const DeviceMatrix on_device(rows.view());
        const DeviceBytes labels(1500 * 4);
        ProgressMeter meter("test", 1500, resources);
        search.find(on_device.view().slice(0, 1024), static_cast<int32_t*>(labels.data()), meter);
        search.find(on_device.view().slice(1024, 476), static_cast<int32_t*>(labels.data()) + 1024, meter);
        context->synchronize();
        std::vector<int32_t> found(1500);
        labels.read(found.data());
        EXPECT_EQ(found, expected) << name_of(metric) << " " << static_cast<int>(shape) << " " << lists << " " << cols;
      }
    }
  }
}

TEST_F(CudaListSegmentsSmall, CodedAndMergedAsOnTheHost) {
  const auto rows = make_floats(Shape::gaussian, 2000, 24, 1);
  const DeviceMatrix on_device(rows.view());
  std::vector<CodeRecipe> codes(4);
  codes[0].code = kProductCode;
  codes[0].parts = 6;
  codes[1].code = kScalarCode;
  codes[2].code = kStoredCode;
  codes[3].code = kProductCode;
  codes[3].parts = 3;  // of three bytes: copied one by one
  for (const CodeRecipe& code : codes) {
    for (const int64_t lists : {1, 40, 3000}) {  // most of the last have no rows
      const auto centres = make_floats(Shape::gaussian, lists, 24, 2);
      const auto model = model_of(centres.view(), Metric::l2, code, rows.view());
      const Segment expected = build_segment(*model, rows.view(), 5, on_cpu());
      expect_same(*code_rows_cuda(0, *model, on_device.view(), 5, on_cuda())->copied_to(Device::cpu(), on_cpu()), *expected);
      expect_same(*code_rows_cuda(0, *model, rows.view(), 5, on_cuda())->copied_to(Device::cpu(), on_cpu()), *expected);
      std::vector<Segment> parts;
      int64_t at = 0;
      for (const int64_t count : {1, 999, 0, 33, 967}) {
        parts.push_back(code_rows_cuda(0, *model, on_device.view().slice(at, count), 5 + at, on_cuda()));
        at += count;
      }
      expect_same(*merge_on_device(parts, on_cuda())->copied_to(Device::cpu(), on_cpu()), *expected);
      const Segment there = expected->copied_to(Device::cuda(0), on_cuda());
      expect_same(*there->copied_to(Device::cpu(), on_cpu()), *expected);
      for (const int64_t one_in : {2, 7, 1900}) {  // of the rows goes, or the other way round
        for (const bool goes : {false, true}) {
          std::vector<uint8_t> mask(2005);
          for (int64_t row = 0; row < 2005; ++row) {
            mask[static_cast<size_t>(row)] = (row * 2654435761 % 4294967296 / 1000 % one_in == 0) != goes;
          }
          KeptRows kept(RowFilter::mask(mask.data(), 2005), 2005, on_cpu());
          kept.bits(on_cpu());
          expect_same(*without_on_device(*there, kept, 2005, on_cuda())->copied_to(Device::cpu(), on_cpu()),
                      *without(*expected, kept, on_cpu()));
        }
      }
    }
  }
}

TEST_F(CudaListSegmentsSmall, TheNearestOfTwoParts) {
  for (const int64_t k : {1, 5, 300}) {
    std::vector<uint64_t> a(static_cast<size_t>(4 * k), kPadding);
    std::vector<uint64_t> b = a;
    std::vector<uint64_t> expected;
    for (int64_t q = 0; q < 4; ++q) {  // none, one or the other, both; ties of keys go by rows
      std::vector<uint64_t> both;
      for (int64_t i = 0; i < (q % 2 == 1 ? k : 0); ++i) {
        a[static_cast<size_t>(q * k + i)] = pack_neighbor(static_cast<uint32_t>(100 + i / 3), static_cast<uint32_t>(2 * i));
        both.push_back(a[static_cast<size_t>(q * k + i)]);
      }
      for (int64_t i = 0; i < (q >= 2 ? (k + 1) / 2 : 0); ++i) {
        b[static_cast<size_t>(q * k + i)] = pack_neighbor(static_cast<uint32_t>(101 + i / 2), static_cast<uint32_t>(2 * i + 1));
        both.push_back(b[static_cast<size_t>(q * k + i)]);
      }
      std::sort(both.begin(), both.end());
      both.resize(static_cast<size_t>(k), kPadding);
      expected.insert(expected.end(), both.begin(), both.end());
    }
    const DeviceBytes on_a(a.data(), a.size() * 8);
    const DeviceBytes on_b(b.data(), b.size() * 8);
    const DeviceBytes out(a.size() * 8);
    launch_merge_found(static_cast<uint64_t*>(on_a.data()), static_cast<uint64_t*>(on_b.data()), 4, k,
                       static_cast<uint64_t*>(out.data()), nullptr);
    std::vector<uint64_t> found(a.size());
    out.read(found.data());
    EXPECT_EQ(found, expected) << k;
  }
}

// Norms that a GPU writes behind additive codes are the CPU's, of every kind and in any bits.
TEST_F(CudaListSegmentsSmall, NormsOfCodesAreTheCpus) {
  const DeviceGuard guard(0);
  const auto bytes = make_bytes(500, 64, 3);
  for (const auto& [cols, bits] : {std::pair<int64_t, int>{5, 3}, {24, 8}, {130, 7}}) {
    for (const CodeNorm norm : {CodeNorm::float32, CodeNorm::cqint8}) {
      for (const bool residual : {false, true}) {
        CodeFormat format;
        format.kind = CodeKind::additive;
        format.cols = cols;
        format.bits = bits;
        format.parts = 3;
        format.norm = norm;
        const auto words = make_floats(Shape::gaussian, 3 * format.codewords(), cols, 4);
        const auto centres = make_floats(Shape::gaussian, 4, cols, 5);
        std::vector<float> levels(256);
        for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(i) * static_cast<float>(cols) / 32;
        std::vector<uint8_t> codes;
        std::vector<int32_t> lists;
        for (int64_t i = 0; i < 500; ++i) {
          const auto* const row = reinterpret_cast<const uint8_t*>(bytes.view().row(i));
          codes.insert(codes.end(), row, row + format.bytes());
          const int64_t used = (3 * format.bits + format.norm_bits()) % 8;
          if (used != 0) codes.back() &= static_cast<uint8_t>((1 << used) - 1);  // behind the norm are zeros
          lists.push_back(static_cast<int32_t>(i % 4));
        }
        const CodecView here{format, nullptr, nullptr, words.row(0), levels.data()};
        std::vector<uint8_t> expected = codes;
        for (int64_t i = 0; i < 500; ++i) {
          write_code_norms(here, expected.data() + i * format.bytes(), 1, residual ? centres.row(i % 4) : nullptr);
        }
        const DeviceBytes device_words(words.row(0), static_cast<size_t>(3 * format.codewords() * cols) * 4);
        const DeviceBytes device_levels(levels.data(), levels.size() * 4);
        const DeviceBytes device_centres(centres.row(0), static_cast<size_t>(4 * cols) * 4);
        const DeviceBytes device_lists(lists.data(), lists.size() * 4);
        const DeviceBytes device_codes(codes.data(), codes.size());
        const CodecView there{format, nullptr, nullptr, static_cast<const float*>(device_words.data()),
                              static_cast<const float*>(device_levels.data())};
        CodeCentres of_lists;
        if (residual) {
          of_lists = {static_cast<const float*>(device_centres.data()),
                      static_cast<const int32_t*>(device_lists.data())};
        }
        launch_write_code_norms(there, static_cast<uint8_t*>(device_codes.data()), 500, of_lists, nullptr);
        KITH_CUDA_CHECK(cudaDeviceSynchronize());
        device_codes.read(codes.data());
        EXPECT_EQ(codes, expected) << cols << " columns, " << bits << " bits, residual " << residual;
      }
    }
  }
}

}  // namespace
}  // namespace kith
