// Indexes, codecs and transforms in .kith files: their parts as sections of a container. docs/file-formats.md names
// them.
//
// Saving copies nothing; arrays that are not in memory are produced while they are written. Loading allocates memory
// for the parts, under the limit, and checks them (index_parts_check.hpp): a damaged or malicious file is CorruptFile
// with the section that is wrong.
#pragma once

#include <kith/resources.hpp>

#include "index/index_parts.hpp"
#include "io/container/container_file.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kith {

void save_parts(const IndexParts& parts, const std::string& path, const Resources& resources);

// Producers of sections in place of arrays of `parts`, whose counts are nevertheless right.
using ProducedSections = std::map<std::string, ContainerWriter::Produce>;
struct ProducedFile {
  ProducedSections sections = {};
  bool synced = true;  // false for a file that only this process will read
  DiskFile* into = nullptr;  // an empty file, in the place of a path; the caller syncs it
};
// The same with produced sections. `parts` is not checked, since its arrays are elsewhere.
void save_parts(const IndexParts& parts, const ProducedFile& produced, const std::string& path,
                const Resources& resources);

// Where to put the arrays whose size grows with the rows.
enum class RowArrays : uint8_t {
  read,      // in memory, checked
  mapped,    // in the mapped file: sizes are checked, values are not
  left_out,  // nowhere: the parts are those of an index without rows
};
struct LoadMode {
  RowArrays lists = RowArrays::read;    // codes and rows of lists
  RowArrays vectors = RowArrays::read;  // of Flat and of refinement
  bool verify = false;                  // check the hashes of mapped arrays
};
IndexParts load_parts(const std::string& path, const Resources& resources, const LoadMode& mode = {});
// The same from a file that a disk has opened; nothing of it is mapped.
IndexParts load_parts(const std::shared_ptr<const DiskFile>& file, const Resources& resources, const LoadMode& mode = {});
// The most host memory that an index takes while it is made from such a file.
int64_t load_bytes(const std::string& path, const Resources& resources, const LoadMode& mode = {});

// A quantizer's codec or transforms alone.
void save_codec(const QuantizerParts& parts, const std::string& path, const Resources& resources);
QuantizerParts load_codec(const std::string& path, const Resources& resources);
void save_transforms(const SavedTransforms& parts, const std::string& path, const Resources& resources);
SavedTransforms load_transforms(const std::string& path, const Resources& resources);

}  // namespace kith
