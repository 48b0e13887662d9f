// Checks that the parts of an index are consistent. Searches rely on it: offsets ascend and end at the number of rows,
// rows are a permutation, arrays have the size that their codes need, trained values are finite. So no file can make a
// search read outside its arrays.
//
// Time: proportional to the bytes of the parts. Memory: a bit per row, and a copy of the ids if they do not
// ascend.
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
  const std::string& section() const { return section_; }  // its name in files; "about": the numbers beside the arrays
  const std::string& reason() const { return reason_; }

 private:
  std::string section_;
  std::string reason_;
};

// Throw PartsProblem.
void check_parts(const IndexParts& parts, const Resources& resources);
void check_codec(const CodecParts& codec, std::string_view section);
void check_transforms(const std::vector<TransformParts>& transforms);

// Checks only the numbers of a code's format.
void check_code_format(const CodecParts& codec);
// Checks the counts of a graph, from which the sizes of its arrays follow.
void check_graph_counts(const IndexParts& parts);
// The coder of the graph's places; counts and scale have been checked.
WalkCoder walk_coder_of(const IndexParts& parts);
void check_tuned_counts(const TunedParts& tuned);
void check_list_count(int64_t lists);

// "transform.3.matrix"
std::string transform_section(size_t i, std::string_view what);

}  // namespace kith
