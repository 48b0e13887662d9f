// Whether the parts of an index fit together. A search trusts what passed here: offsets ascend and end at the number of
// rows, rows are a permutation, arrays have the bytes that their codes take, trained values are finite. So no file can
// make a search read outside of its arrays.
//
// Takes time in proportion to the bytes of the parts, and memory for a bit a row; where ids do not ascend, also for a
// copy of them.
#pragma once

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "graph/search/graph/walk_coder.hpp"
#include "index/index_parts.hpp"

#include <string>
#include <string_view>

namespace kith {

// The text is "section '<section>': <reason>".
class PartsProblem : public InvalidArgument {
 public:
  PartsProblem(std::string_view section, std::string_view reason);
  const std::string& section() const { return section_; }  // as files name it; "about": the numbers beside the arrays
  const std::string& reason() const { return reason_; }

 private:
  std::string section_;
  std::string reason_;
};

// Throw PartsProblem.
void check_parts(const IndexParts& parts, const Resources& resources);
void check_codec(const CodecParts& codec, std::string_view section);
void check_transforms(const std::vector<TransformParts>& transforms);

// Whether codes of that format, and so many lists, can be: the numbers alone.
void check_code_format(const CodecParts& codec);
// That the counts of a graph can be: the sizes of its arrays follow from them.
void check_graph_counts(const IndexParts& parts);
// How the places of its graph are coded, whose counts and scale were checked.
WalkCoder walk_coder_of(const IndexParts& parts);
void check_tuned_counts(const TunedParts& tuned);
void check_list_count(int64_t lists);

// "transform.3.matrix"
std::string transform_section(size_t i, std::string_view what);

}  // namespace kith
