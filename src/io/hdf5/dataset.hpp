// What the messages of a dataset's header say about it: its shape and type, how its values are stored, and what stands
// where none were.
#pragma once

#include "io/file_layout.hpp"
#include "io/hdf5/chunk_index.hpp"
#include "io/hdf5/object_header.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace kith {

enum class Hdf5Storage : uint8_t {
  none,  // no value was ever written
  plain,
  chunked,
};

struct Hdf5Dataset {
  FileLayout layout;  // where they lie if they do so in one piece
  Hdf5Storage storage = Hdf5Storage::none;
  Hdf5Chunking chunking;
  std::vector<Hdf5Filter> filters;
  std::array<std::byte, 8> fill{};  // one element, of a value that was not written
};

bool is_hdf5_dataset(const Hdf5ObjectHeader& header);

// Between the elements of Kith's files and HDF5's datatype messages.
//
// Throws InvalidArgument for types that Kith does not take.
ElementType parse_datatype(const Hdf5Source& source, Hdf5Cursor message);

// The content of a datatype message. bf16 has no type in HDF5: it is for the caller to refuse.
std::string make_datatype(ElementType element);

// Throws InvalidArgument or Unsupported for datasets that Kith does not take.
Hdf5Dataset parse_dataset(const Hdf5Source& source, const Hdf5ObjectHeader& header);

}  // namespace kith
