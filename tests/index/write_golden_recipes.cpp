// Adds to tests/golden/kith/recipes (golden_recipes.hpp) what recipes have made that are not listed there yet. What is
// listed stays as it is; where a recipe now gives something else, it is named, and the exit code is 1.
//
//   cmake --build --preset dev --target write_golden_recipes && build/dev/write_golden_recipes
#include "index/golden_directory.hpp"
#include "index/golden_recipes.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace {

namespace fs = std::filesystem;
using kith::testing::golden_file_hash;
using kith::testing::golden_hash;
using kith::testing::GoldenRecipe;

class GoldenFolder {
 public:
  explicit GoldenFolder(fs::path folder) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    std::ifstream list(folder_ / "hashes.txt");
    std::string hash;
    std::string name;
    while (list >> hash && std::getline(list >> std::ws, name)) listed_[name] = hash;
    hashes_.open(folder_ / "hashes.txt", std::ios::app);
    answers_.open(folder_ / "answers.txt", std::ios::app);
  }

  void add(const GoldenRecipe& recipe) {
    const std::string stem = directory_.path(recipe.name);
    recipe.write(stem);
    const std::string told = recipe.answers(stem);
    if (list(golden_hash(told), "answers of " + recipe.name) && recipe.kept)
      answers_ << recipe.name << "\n" << told << "\n";
    for (const std::string& ending : recipe.endings) {
      const std::string hash = golden_file_hash(stem + ending);
      if (!list(hash, recipe.name + ending) || !recipe.kept || hash == "refused") continue;
      fs::copy_file(stem + ending, folder_ / (recipe.name + ending));
    }
  }

  int different() const { return different_; }

 private:
  // Whether it is new.
  bool list(const std::string& hash, const std::string& name) {
    const auto found = listed_.find(name);
    if (found == listed_.end()) {
      hashes_ << hash << " " << name << "\n";
      return true;
    }
    if (found->second != hash) {
      std::fprintf(stderr, "not as listed: %s\n", name.c_str());
      ++different_;
    }
    return false;
  }

  fs::path folder_;
  kith::testing::GoldenDirectory directory_;
  std::map<std::string, std::string> listed_;
  std::ofstream hashes_;
  std::ofstream answers_;
  int different_ = 0;
};

}  // namespace

int main() {
  GoldenFolder folder(fs::path(KITH_GOLDEN) / "kith" / "recipes");
  for (const GoldenRecipe& recipe : kith::testing::golden_recipes()) {
    try {
      folder.add(recipe);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "write_golden_recipes: %s: %s\n", recipe.name.c_str(), error.what());
      return 1;
    }
  }
  return folder.different() == 0 ? 0 : 1;
}
