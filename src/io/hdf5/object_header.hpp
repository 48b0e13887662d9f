// The header of a group or dataset: a list of messages, each of a type, spread over a first block and others that it
// leads to. Versions 1 and 2; the checksums of version 2 are verified.
//
// How many blocks and bytes are followed is limited: blocks that lead to each other in a circle are an error.
#pragma once

#include "io/hdf5/source.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kith {

enum class Hdf5MessageType : uint16_t {
  nil = 0x00,
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  old_fill_value = 0x04,
  fill_value = 0x05,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  filters = 0x0b,
  attribute = 0x0c,
  continuation = 0x10,
  symbol_table = 0x11,
  attribute_info = 0x15,
};

struct Hdf5Message {
  Hdf5MessageType type;
  bool shared;  // the content stands elsewhere, and here is where
  std::span<const std::byte> content;
  int64_t at;
};

struct Hdf5ObjectHeader {
  int64_t at = 0;
  std::vector<Hdf5Block> blocks;  // what the messages point into
  std::vector<Hdf5Message> messages;

  // The first of this type, or null.
  const Hdf5Message* find(Hdf5MessageType type) const;
};

Hdf5ObjectHeader read_object_header(const Hdf5Source& source, int64_t at);

}  // namespace kith
