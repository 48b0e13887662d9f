// Items of a collection in a file of lines, one JSON object each, in the order of their vectors:
//
//   {"id": 7, "year": 1931, "title": "M", "payload": "bWFueSBieXRlcw=="}
//
// "id" and "payload", base64 of its bytes, may be left out, as may columns, which then have no value. Hides the JSON
// library, as json_output does.
#pragma once

#include <kith/collection.hpp>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace kith::cli {

class ItemLinesReader {
 public:
  // IoError if the file cannot be read.
  ItemLinesReader(const std::string& path, const CollectionParams& params);

  // Reads ids, columns and payloads of the next `count` lines into `items`; ids stay unchanged if no line has one.
  // InvalidArgument that names the line if it is not such an object, if the collection lacks a column, or if a value
  // has another type; and if the file ends early.
  void read(int64_t count, Items& items);
  // InvalidArgument if there are more lines.
  void finish();

 private:
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_;
  const CollectionParams& params_;
  std::ifstream file_;
  int64_t line_ = 0;
};

// Fills a temporary file beside the target, which commit() renames over the target.
class LinesWriter {
 public:
  explicit LinesWriter(const std::string& path);
  ~LinesWriter();
  LinesWriter(const LinesWriter&) = delete;
  LinesWriter& operator=(const LinesWriter&) = delete;

  void append(const ItemTable& items, const CollectionParams& params);
  // {"ids": [...], "distances": [...]} for each query, with text ids if the collection has them.
  void append(const CollectionNeighbors& found);
  void commit();

 private:
  void write(const std::string& line);

  std::string path_;
  std::string temporary_;
  std::ofstream file_;
};

// The printed results of a search, one query per line: "id distance, ...".
std::string neighbors_text(const CollectionNeighbors& found);

std::string base64(const std::string& bytes);
// None for text that is not base64.
std::optional<std::string> from_base64(const std::string& text);

}  // namespace kith::cli
