#include "io/hdf5/group.hpp"

#include "io/hdf5/dense_links.hpp"
#include "io/hdf5/symbol_table.hpp"
#include "io/python_literal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// Each soft link may lead to another; in a circle they never end.
constexpr int kMostSoftLinks = 16;
// No path that a person writes is longer, but soft links can make one.
constexpr size_t kLongestPath = 16 * 1024;

Hdf5Cursor cursor_of(const Hdf5Source& source, const Hdf5Message& message, std::string_view what) {
  return {source, message.content, message.at, what};
}

const Hdf5Message* symbol_table_of(const Hdf5ObjectHeader& group) { return group.find(Hdf5MessageType::symbol_table); }

std::optional<Hdf5DenseLinks> dense_links_of(const Hdf5Source& source, const Hdf5ObjectHeader& group) {
  const Hdf5Message* const info = group.find(Hdf5MessageType::link_info);
  if (info == nullptr) return std::nullopt;
  return open_dense_links(source, cursor_of(source, *info, "a link info message"));
}

// Calls visit(link) for the links in a group's header until it returns true.
template <typename Visit>
void visit_own_links(const Hdf5Source& source, const Hdf5ObjectHeader& group, const Visit& visit) {
  for (const Hdf5Message& message : group.messages) {
    if (message.type != Hdf5MessageType::link) continue;
    if (visit(parse_link(source, cursor_of(source, message, "a link message")))) return;
  }
}

// "a/b/c" becomes "a" and "b/c". Slashes before, between and behind names are all the same.
std::pair<std::string, std::string> split_first(const std::string& path) {
  const size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) return {"", ""};
  const size_t end = std::min(path.find('/', begin), path.size());
  return {path.substr(begin, end - begin), path.substr(end)};
}

}  // namespace

bool is_hdf5_group(const Hdf5ObjectHeader& header) {
  return header.find(Hdf5MessageType::symbol_table) != nullptr || header.find(Hdf5MessageType::link_info) != nullptr;
}

std::optional<Hdf5Link> find_link(const Hdf5Source& source, const Hdf5ObjectHeader& group, std::string_view name) {
  if (const Hdf5Message* const table = symbol_table_of(group)) {
    return Hdf5SymbolTable(source, cursor_of(source, *table, "a symbol table message")).find(name);
  }
  if (const auto dense = dense_links_of(source, group)) return find_dense_link(source, *dense, name);
  std::optional<Hdf5Link> found;
  visit_own_links(source, group, [&](Hdf5Link link) {
    if (link.name != name) return false;
    found = std::move(link);
    return true;
  });
  return found;
}

std::vector<std::string> link_names(const Hdf5Source& source, const Hdf5ObjectHeader& group, size_t most) {
  if (const Hdf5Message* const table = symbol_table_of(group)) {
    return Hdf5SymbolTable(source, cursor_of(source, *table, "a symbol table message")).names(most);
  }
  std::vector<std::string> names;
  if (const auto dense = dense_links_of(source, group)) {
    names = dense_link_names(source, *dense, most);
  } else {
    visit_own_links(source, group, [&](Hdf5Link link) {
      names.push_back(std::move(link.name));
      return false;
    });
  }
  std::sort(names.begin(), names.end());
  if (names.size() > most) names.resize(most);
  return names;
}

std::string list_links(const Hdf5Source& source, int64_t group_at) {
  constexpr size_t kMost = 20;
  const std::vector<std::string> names = link_names(source, read_object_header(source, group_at), kMost + 1);
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ", ", i < kMost ? printable(names[i]) : "...");
  }
  return list.empty() ? "nothing" : list;
}

std::optional<Hdf5ObjectHeader> find_object(const Hdf5Source& source, int64_t root_at, std::string_view path) {
  Hdf5ObjectHeader here = read_object_header(source, root_at);
  std::string rest(path);
  for (int soft_links = 0; !rest.empty();) {
    auto [name, behind] = split_first(rest);
    rest = std::move(behind);
    if (name.empty() || name == ".") continue;
    if (!is_hdf5_group(here)) return std::nullopt;
    const std::optional<Hdf5Link> link = find_link(source, here, name);
    if (!link) return std::nullopt;
    if (link->kind == Hdf5LinkKind::external) {
      source.unsupported(here.at, fmt::format("'{}' is a link to another file; name that one", printable(name)));
    }
    if (link->kind == Hdf5LinkKind::hard) {
      here = read_object_header(source, link->header_at);
      continue;
    }
    rest.insert(0, link->target);
    if (++soft_links > kMostSoftLinks || rest.size() > kLongestPath) {
      source.refused(here.at, fmt::format("the link '{}' leads through too many others; do they lead in a circle?",
                                          printable(name)));
    }
    if (link->target.starts_with('/')) here = read_object_header(source, root_at);
  }
  return here;
}

}  // namespace kith
