// Indexes, codecs and transforms in .kith files: their parts as sections of a container. docs/file-formats.md names
// them.
//
// Saving copies nothing. Loading takes memory for the parts, under the limit, and checks them (index_parts_check.hpp):
// a file that is damaged, or was made to do harm, is CorruptFile with the section that is wrong.
#pragma once

#include <kith/resources.hpp>

#include "index/index_parts.hpp"

#include <string>
#include <vector>

namespace kith {

void save_parts(const IndexParts& parts, const std::string& path, const Resources& resources);
IndexParts load_parts(const std::string& path, const Resources& resources);
// What an index takes on the host while it is made from such a file, at most.
int64_t load_bytes(const std::string& path, const Resources& resources);

// A quantizer's codec or transforms alone.
void save_codec(const QuantizerParts& parts, const std::string& path, const Resources& resources);
QuantizerParts load_codec(const std::string& path, const Resources& resources);
void save_transforms(const SavedTransforms& parts, const std::string& path, const Resources& resources);
SavedTransforms load_transforms(const std::string& path, const Resources& resources);

}  // namespace kith
