// Writes the golden .kith files that index_file_test.cpp compares with; for when the format gets another version:
//
//   cmake --build --preset dev --target write_golden_files && build/dev/write_golden_files
#include "index/index_file.hpp"
#include "index/parts_data.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

int main() {
  const std::string folder = std::string(KITH_GOLDEN) + "/kith/";
  const auto file = [&](const std::string& name) { return folder + name + ".kith"; };
  try {
    const kith::Resources resources;
    std::filesystem::create_directories(folder);
    for (const std::string& kind : kith::testing::kinds_of_parts()) {
      kith::save_parts(kith::testing::make_parts(kind), file(kind), resources);
    }
    for (const std::string& kind : kith::testing::kinds_of_codecs()) {
      kith::save_codec({kith::testing::make_codec(kind)}, file("codec_" + kind), resources);
    }
    kith::save_transforms({kith::testing::make_parts("transformed_flat").transforms, {}}, file("transforms"), resources);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_golden_files: %s\n", error.what());
    return 1;
  }
}
