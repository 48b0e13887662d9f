// Encoding by local search on a GPU.
#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/icm_search_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kDeviceBatchBytes = int64_t{1} << 30;
constexpr int64_t kLaunchSteps = 1 << 14;  // of a row; a search can be cancelled after so many

// Splits the rows into batches of nearly equal size, of whole tiles.
int64_t batch_rows(int64_t rows, int64_t most) {
  const int64_t even = divide_up(rows, divide_up(rows, most));
  return std::min(round_up(even, std::min<int64_t>(kProductTileRows, most)), most);
}

}  // namespace

void encode_additive_cuda(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                          uint8_t* codes, float* costs, int device, const Resources& resources) {
  if (rows.rows() == 0) return;
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const IcmSearch search(books, encoding, rows.rows(), context, resources);
  const bool rows_there = rows.space().kind == MemoryKind::cuda;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const auto bytes_of = [&](int64_t count) {
    return search.workspace_bytes(count) + count * ((rows_there ? 0 : row_bytes) + books.books + array_bytes<float>(1));
  };
  const int64_t most = rows_at_a_time(search.good_batch(), kDeviceBatchBytes, bytes_of, resources);
  const int64_t batch = batch_rows(rows.rows(), most);
  const DeviceBuffer workspace(search.workspace_bytes(batch), "a batch of rows", context, resources);
  const DeviceBuffer brought(rows_there ? 0 : batch * row_bytes, "a batch of rows", context, resources);
  const DeviceArray<uint8_t> made(batch * books.books, "a batch of codes", context, resources);
  const DeviceArray<float> paid(costs == nullptr ? 0 : batch, "a batch of codes", context, resources);
  uint8_t* const batch_codes = made.data();
  float* const batch_costs = costs == nullptr ? nullptr : paid.data();
  RowUpload upload(wants_pinned(rows.space(), rows.rows() * row_bytes, resources), resources);
  if (counts_only(resources)) return;
  const LocalSearchPlan& plan = encoding.search;
  const int64_t some_rounds = std::max<int64_t>(kLaunchSteps / (plan.sweeps * books.books), 1);
  ProgressMeter meter("encode", rows.rows(), resources);
  for (int64_t first = 0; first < rows.rows(); first += batch) {
    const int64_t count = std::min(batch, rows.rows() - first);
    MatrixView some = rows.slice(first, count);
    if (!rows_there) {
      upload.copy(some, brought.data(), context->stream(), meter);
      some = {brought.data(), rows.dtype(), {count, rows.cols(), rows.cols()}, MemorySpace::cuda(device)};
    }
    if (encoding.start == CodeStart::given) {
      context->copy(batch_codes, codes + first * books.books, count * books.books);
    }
    search.prepare(device_rows(some), encoding.first_row + first, workspace.data(), context->stream());
    int64_t done = 0;
    do {
      const int64_t rounds = std::min(some_rounds, plan.rounds - done);
      search.search(count, plan.from_round + done, rounds, done == 0, batch_codes, batch_costs, workspace.data(),
                    context->stream());
      done += rounds;
      if (done < plan.rounds) {
        context->synchronize();
        meter.poll();
      }
    } while (done < plan.rounds);
    context->copy(codes + first * books.books, batch_codes, count * books.books);
    if (costs != nullptr) context->copy_values(costs + first, batch_costs, count);
    context->synchronize();
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

}  // namespace kith
