// What parts of one process on GPUs that build one graph together (graph_share.hpp) hand to each other: values of their
// rows, and lists. All of it goes through transfer() (ranks/transfer.hpp), which asks for the owner of every buffer.
//
// A part tells the others where its memory lies once its stream has written there, and keeps it until all have read.
// The resources have the context's stream. Every call is made by all parts.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "graph/lists/graph_share.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Values of all rows in the memory of a part's GPU.
struct RowsOnDevice {
  std::byte* data = nullptr;
  int64_t row_bytes = 0;

  template <typename T>
  static RowsOnDevice of(const DeviceArray<T>& values, int64_t each) {
    return {reinterpret_cast<std::byte*>(values.data()), each * static_cast<int64_t>(sizeof(T))};
  }
};

// Every part has made the values of its rows; then it has all.
void give_on_device(const GraphShare& share, const RowsOnDevice& values, const DeviceContext& context,
                    const Resources& resources);

// Bytes become what they are on the first part.
void take_first_on_device(const GraphShare& share, std::byte* bytes, int64_t count, const DeviceContext& context,
                          const Resources& resources);

// GraphShare::join() for lists on GPUs. Memory: GraphShare::device_bytes_to_join().
void join_on_device(const GraphShare& share, const DeviceWorkingLists& lists, bool own,
                    const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

// GraphShare::gather_offers() for offers on GPUs, of `share`'s rows. Memory: GraphShare::device_bytes_to_gather().
void gather_offers_on_device(const GraphShare& share, uint64_t* offers, int64_t slots,
                             const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

}  // namespace kith
