#include "io/formats.hpp"

#include <kith/error.hpp>

#include "io/hdf5/checksum.hpp"
#include "io/hdf5/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kSuperblockBytes = 48;
constexpr size_t kAlignment = 64;
constexpr size_t kLongestName = 32 * 1024;  // a message has less than 64 KiB
constexpr uint64_t kUndefined = UINT64_MAX;

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

std::string with_checksum(std::string text) {
  const uint32_t checksum = hdf5_checksum(std::as_bytes(std::span(text.data(), text.size())));
  return text + number(checksum, 4);
}

std::string message(Hdf5MessageType type, std::string_view content) {
  constexpr char kNoFlags = '\0';
  return number(static_cast<uint64_t>(type), 1) + number(content.size(), 2) + kNoFlags + std::string(content);
}

std::string object_header(const std::string& messages) {
  constexpr uint64_t kVersion = 2;
  constexpr uint64_t kSizeOf4Bytes = 2;
  return with_checksum("OHDR" + number(kVersion, 1) + number(kSizeOf4Bytes, 1) + number(messages.size(), 4) + messages);
}

// A group with one link, whose length does not depend on where that leads.
std::string group(const std::string& name, int64_t target) {
  constexpr uint64_t kNameLengthOf2Bytes = 0x01;
  constexpr uint64_t kHasCharacterSet = 0x10;
  constexpr uint64_t kUtf8 = 1;
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  std::string link = number(1, 1) + number(kNameLengthOf2Bytes | (ascii ? 0 : kHasCharacterSet), 1);
  if (!ascii) link += number(kUtf8, 1);
  link += number(name.size(), 2) + name + number(static_cast<uint64_t>(target), 8);
  // No heap and no tree of links: they are here.
  const std::string info = number(0, 2) + number(kUndefined, 8) + number(kUndefined, 8);
  constexpr auto kGroupInfo = static_cast<Hdf5MessageType>(0x0a);
  return object_header(message(Hdf5MessageType::link_info, info) + message(kGroupInfo, number(0, 2)) +
                       message(Hdf5MessageType::link, link));
}

std::string dataset(const FileLayout& shape, int64_t values_at) {
  constexpr uint64_t kSimple = 1;
  constexpr uint64_t kContiguous = 1;
  constexpr uint64_t kSpaceTakenEarlyNeverFilled = 0x05;
  const int64_t bytes = saturating_multiply(shape.rows, shape.row_bytes());
  const std::string space = number(2, 1) + number(2, 1) + number(0, 1) + number(kSimple, 1) +
                            number(static_cast<uint64_t>(shape.rows), 8) + number(static_cast<uint64_t>(shape.cols), 8);
  const std::string fill = number(3, 1) + number(kSpaceTakenEarlyNeverFilled, 1);
  const std::string layout = number(3, 1) + number(kContiguous, 1) +
                             number(bytes == 0 ? kUndefined : static_cast<uint64_t>(values_at), 8) +
                             number(static_cast<uint64_t>(bytes), 8);
  return object_header(message(Hdf5MessageType::dataspace, space) +
                       message(Hdf5MessageType::datatype, make_datatype(shape.element)) +
                       message(Hdf5MessageType::fill_value, fill) + message(Hdf5MessageType::layout, layout));
}

std::string superblock(uint64_t end) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  constexpr uint64_t kVersion = 2;
  constexpr uint64_t kWidth = 8;  // of addresses and of lengths
  return with_checksum(std::string(kSignature) + number(kVersion, 1) + number(kWidth, 1) + number(kWidth, 1) +
                       number(0, 1) + number(0, 8) + number(kUndefined, 8) + number(end, 8) +
                       number(kSuperblockBytes, 8));
}

}  // namespace

std::vector<std::string> dataset_steps(const FileName& name) {
  std::vector<std::string> steps;
  size_t begin = 0;
  while (begin < name.dataset.size()) {
    const size_t end = std::min(name.dataset.find('/', begin), name.dataset.size());
    const std::string step = name.dataset.substr(begin, end - begin);
    if (step.size() > kLongestName || step.find('\0') != std::string::npos) {
      throw InvalidArgument(
          fmt::format("'{}' cannot be written: no part of a dataset's name has a zero byte or more than {} bytes",
                      name.file, kLongestName));
    }
    if (!step.empty() && step != ".") steps.push_back(step);
    begin = end + 1;
  }
  if (steps.empty()) {
    throw InvalidArgument(fmt::format("'{}' names no dataset: '{}' is the root group; write {}::NAME", name.path,
                                      name.dataset, name.file));
  }
  return steps;
}

std::string make_hdf5_header(const FileName& name, const FileLayout& shape) {
  std::string objects;
  int64_t at = kSuperblockBytes;
  for (const std::string& step : dataset_steps(name)) {
    at += static_cast<int64_t>(group(step, 0).size());
    objects += group(step, at);
  }
  at += static_cast<int64_t>(dataset(shape, 0).size());
  const int64_t padding = shape.rows == 0 ? 0 : -at & static_cast<int64_t>(kAlignment - 1);
  objects += dataset(shape, at + padding);
  const int64_t bytes = saturating_multiply(shape.rows, shape.row_bytes());
  return superblock(static_cast<uint64_t>(at + padding) + static_cast<uint64_t>(bytes)) + objects +
         std::string(static_cast<size_t>(padding), '\0');
}

}  // namespace kith
