// The items that an expression of SQL keeps. The expression is the user's: it runs under an authorizer that lets it
// read the items' columns and call SQLite's functions, and nothing else.
#pragma once

#include <kith/collection.hpp>

#include "collection/sqlite.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kith {

// InvalidArgument for what cannot stand in parentheses: comments, a semicolon, parentheses that do not match, an open
// quote. Then it cannot end the parentheses around it.
void check_expression(const std::string& where);

// Which rows of the table of items an expression is asked of: those that live now, or that a version sees. A version in
// memory knows its rows, so that it may be given others too.
enum class WhereRows : uint8_t { living, of_version_and_others };

struct WhereQuery {
  const std::string& where;  // may be empty
  const std::vector<ColumnValue>& params;
  WhereRows rows = WhereRows::living;
  int64_t version = 0;  // with of_version_and_others
  std::chrono::milliseconds time_limit;
};

// An expression that is prepared once and run with several lists of parameters. The connection is its own meanwhile.
class WhereStatement {
 public:
  // The parameters in `query` are not used. All but the query must outlive it.
  WhereStatement(Database& db, const WhereQuery& query, const Resources& resources);
  ~WhereStatement();
  WhereStatement(const WhereStatement&) = delete;
  WhereStatement& operator=(const WhereStatement&) = delete;

  // Calls use(row) for every item that the expression keeps, in any order, and for some perhaps twice.
  void for_each(const std::vector<ColumnValue>& params, const std::function<void(int64_t row)>& use);

 private:
  struct Hooks;
  // `rows`: a condition on the table of items.
  int prepare(const std::string& rows);
  int prepare_exact();
  [[noreturn]] void fail(int code) const;
  void detach() const;  // removes the hooks from the connection

  Database& db_;
  const std::string where_;
  bool exact_;  // only matching rows are returned
  const int64_t version_;
  const std::chrono::milliseconds time_limit_;
  std::unique_ptr<Hooks> hooks_;
  std::string names_;  // of columns
  size_t offset_ = 0;  // of the expression in the statement
  sqlite3_stmt* statement_ = nullptr;
};

// The same for one list of parameters.
void for_each_where(Database& db, const WhereQuery& query, const std::function<void(int64_t row)>& use,
                    const Resources& resources);

}  // namespace kith
