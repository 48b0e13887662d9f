// Small files that Kith writes, each made by a fixed recipe through the public interface: indexes of every kind and
// metric after adds, removals and merges, graphs, quantizers and transforms.
//
// tests/golden/kith/recipes keeps what commit 8d3366cc wrote: `hashes.txt` has one line for each file and one for the
// answers of its searches, `answers.txt` the answers themselves, and some of the files lie beside them. They are the
// measure of every later tree and are never written again; new recipes may be added.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kith::testing {

struct GoldenRecipe {
  std::string name;
  bool kept = false;                 // its files are kept, not only their hashes
  bool trained = false;              // k-means has a part in it, so that another start of k-means gives other bytes
  std::vector<std::string> endings;  // of its files; of .faiss there is none where FAISS has no such index

  // Makes the files `stem` + ending.
  std::function<void(const std::string& stem)> write;
  // Opens them and writes them again under another stem.
  std::function<void(const std::string& stem, const std::string& other)> write_again;
  // Opens them and tells, as text, what they answer to fixed questions.
  std::function<std::string(const std::string& stem)> answers;
};

const std::vector<GoldenRecipe>& golden_recipes();

// What hashes.txt says of some bytes: FNV-1a of 64 bits, 16 hexadecimal digits.
std::string golden_hash(std::string_view bytes);

// The whole file; "refused" where there is none. So a format that refuses an index is recorded too.
std::string golden_file_hash(const std::string& path);

}  // namespace kith::testing
