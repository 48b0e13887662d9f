// What commit 8d3366cc wrote is opened, answers as it did, and is written again in its very bytes; and its recipes give
// these bytes today (golden_recipes.hpp).
#include "index/golden_recipes.hpp"

#include "index/golden_directory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace kith {
namespace {

using testing::golden_file_hash;
using testing::golden_hash;
using testing::golden_recipes;
using testing::GoldenRecipe;

std::string kept_file(const std::string& name) { return std::string(KITH_GOLDEN) + "/kith/recipes/" + name; }

using Hashes = std::map<std::string, std::string>;

// The hash of each file and of each recipe's answers, by name.
Hashes hashes_in(const std::string& list_name) {
  Hashes read;
  std::ifstream list(kept_file(list_name));
  std::string hash;
  std::string name;
  while (list >> hash && std::getline(list >> std::ws, name)) read[name] = hash;
  return read;
}

const Hashes& golden_hashes() {
  static const Hashes hashes = hashes_in("hashes.txt");
  return hashes;
}

// What recipes give today: training has changed since for those in a list of their own.
const Hashes& hashes_of_today() {
  static const Hashes hashes = [] {
    Hashes read = hashes_in("hashes_retrained.txt");
    read.insert(golden_hashes().begin(), golden_hashes().end());
    return read;
  }();
  return hashes;
}

// A recipe that was added after the files were written has no line yet.
std::string listed_hash(const Hashes& hashes, const std::string& name) {
  const auto found = hashes.find(name);
  return found == hashes.end() ? "not listed: run write_golden_recipes" : found->second;
}

// The paragraph of answers.txt under a recipe's name.
std::map<std::string, std::string> golden_answers() {
  std::map<std::string, std::string> read;
  std::ifstream list(kept_file("answers.txt"));
  std::string name;
  std::string line;
  while (std::getline(list, name)) {
    while (std::getline(list, line) && !line.empty()) read[name] += line + "\n";
  }
  return read;
}

void expect_listed(const GoldenRecipe& recipe, const std::string& stem, const Hashes& hashes = golden_hashes()) {
  for (const std::string& ending : recipe.endings) {
    EXPECT_EQ(golden_file_hash(stem + ending), listed_hash(hashes, recipe.name + ending)) << recipe.name << ending;
  }
}

void expect_same_bytes(bool trained) {
  const testing::GoldenDirectory directory;
  for (const GoldenRecipe& recipe : golden_recipes()) {
    if (recipe.trained != trained) continue;
    SCOPED_TRACE(recipe.name);
    const std::string stem = directory.path(recipe.name);
    ASSERT_NO_THROW(recipe.write(stem));
    const Hashes& hashes = trained ? hashes_of_today() : golden_hashes();
    expect_listed(recipe, stem, hashes);
    EXPECT_EQ(golden_hash(recipe.answers(stem)), listed_hash(hashes, "answers of " + recipe.name));
  }
}

TEST(GoldenRecipes, KeptFilesAreThoseOfTheList) {
  for (const GoldenRecipe& recipe : golden_recipes()) {
    if (recipe.kept) expect_listed(recipe, kept_file(recipe.name));
  }
}

TEST(GoldenRecipes, KeptFilesAnswerAsTheyDid) {
  const std::map<std::string, std::string> answers = golden_answers();
  for (const GoldenRecipe& recipe : golden_recipes()) {
    if (!recipe.kept) continue;
    SCOPED_TRACE(recipe.name);
    ASSERT_EQ(answers.count(recipe.name), 1U);
    EXPECT_EQ(recipe.answers(kept_file(recipe.name)), answers.at(recipe.name));
  }
}

TEST(GoldenRecipes, KeptFilesAreWrittenAgainInTheirBytes) {
  const testing::GoldenDirectory directory;
  for (const GoldenRecipe& recipe : golden_recipes()) {
    if (!recipe.kept) continue;
    SCOPED_TRACE(recipe.name);
    const std::string again = directory.path(recipe.name);
    ASSERT_NO_THROW(recipe.write_again(kept_file(recipe.name), again));
    expect_listed(recipe, again);
  }
}

TEST(GoldenRecipes, GiveTheSameBytesWithoutTraining) { expect_same_bytes(false); }

// Another start of k-means, or another training of OPQ, changes these, and nothing else may: hashes_retrained.txt then
// says what they give.
TEST(GoldenRecipes, GiveTheSameBytesTrained) { expect_same_bytes(true); }

}  // namespace
}  // namespace kith
