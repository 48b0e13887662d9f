// Uses the installed collections from outside: add, search with a filter, open again, one error caught by its type.
#include <kith/collection.hpp>
#include <kith/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "kith-outside-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const std::vector<float> vectors = {0, 1, 2, 3, 4};
  kith::CollectionParams params;
  params.dimension = 1;
  params.columns = {{"year", kith::ColumnType::integer}};
  {
    kith::Collection c = kith::Collection::create(folder + "/c", params);
    kith::Items items;
    items.vectors = kith::MatrixView(vectors.data(), 5, 1);
    items.columns = {{"year", {int64_t{2000}, int64_t{2001}, int64_t{2002}, int64_t{2003}, int64_t{2004}}}};
    c.add(items);
  }
  const kith::Collection c = kith::Collection::open(folder + "/c");
  const std::vector<float> query = {2.2F};
  kith::CollectionSearchParams search;
  search.search.k = 2;
  search.filter.where = "year <> ?";
  search.filter.params = {int64_t{2002}};
  const kith::CollectionNeighbors found = c.search(kith::MatrixView(query.data(), 1, 1), search);
  const bool right = found.neighbors.ids()[0] == 3 && found.neighbors.ids()[1] == 1;
  bool caught = false;
  try {
    (void)kith::Collection::open(folder + "/c");
  } catch (const kith::InvalidState&) {
    caught = true;
  }
  std::filesystem::remove_all(folder);
  if (!right || !caught) {
    std::printf("found %lld and %lld, expected 3 and 1; second writer %s\n", static_cast<long long>(found.neighbors.ids()[0]),
                static_cast<long long>(found.neighbors.ids()[1]), caught ? "refused" : "not refused");
    return 1;
  }
  std::printf("a collection from outside: ok\n");
  return 0;
}
