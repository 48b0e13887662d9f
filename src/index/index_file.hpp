// Indexes, codecs and transforms in .kith files: their parts as sections of a container. docs/file-formats.md names
// them.
//
// Saving copies nothing, and arrays that are not in memory are produced while they are written. Loading takes memory
// for the parts, under the limit, and checks them (index_parts_check.hpp): a file that is damaged, or was made to do
// harm, is CorruptFile with the section that is wrong.
#pragma once

#include <kith/resources.hpp>

#include "index/index_parts.hpp"
#include "io/container/container_file.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kith {

void save_parts(const IndexParts& parts, const std::string& path, const Resources& resources);

// The bytes of sections that stand in the place of arrays of `parts`, which has the right counts all the same.
using ProducedSections = std::map<std::string, ContainerWriter::Produce>;
struct ProducedFile {
  ProducedSections sections = {};
  bool synced = true;  // else for a file that only this process will read
};
// The same with sections that are produced. `parts` is not checked: its arrays are elsewhere.
void save_parts(const IndexParts& parts, const ProducedFile& produced, const std::string& path,
                const Resources& resources);

// Where the arrays with a value for each row are to be.
enum class RowArrays : uint8_t {
  read,      // in memory, checked
  mapped,    // in the file, which is mapped: their sizes are checked, their values are not
  left_out,  // nowhere: the parts are those of an index without rows
};
struct LoadMode {
  RowArrays lists = RowArrays::read;    // codes and rows of lists
  RowArrays vectors = RowArrays::read;  // of Flat, and those that candidates are compared with again
  bool verify = false;                  // the hashes of what is mapped
};
IndexParts load_parts(const std::string& path, const Resources& resources, const LoadMode& mode = {});
// What an index takes on the host while it is made from such a file, at most.
int64_t load_bytes(const std::string& path, const Resources& resources, const LoadMode& mode = {});

// A quantizer's codec or transforms alone.
void save_codec(const QuantizerParts& parts, const std::string& path, const Resources& resources);
QuantizerParts load_codec(const std::string& path, const Resources& resources);
void save_transforms(const SavedTransforms& parts, const std::string& path, const Resources& resources);
SavedTransforms load_transforms(const std::string& path, const Resources& resources);

}  // namespace kith
