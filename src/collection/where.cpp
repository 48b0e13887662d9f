#include "collection/where.hpp"

#include <kith/error.hpp>

#include "collection/schema.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <exception>
#include <string_view>

namespace kith {
namespace {

// The beginning of a long expression, for errors.
std::string shown(const std::string& where) {
  constexpr size_t kShown = 200;
  return where.size() <= kShown ? printable(where) : printable(where.substr(0, kShown)) + "...";
}

[[noreturn]] void refuse(const std::string& where, size_t at, std::string_view reason) {
  throw InvalidArgument(fmt::format("where \"{}\", character {}: {}", shown(where), at + 1, reason));
}

// The end of a quoted piece that begins at `at`: behind its last quote.
size_t quoted_end(const std::string& where, size_t at) {
  const char close = where[at] == '[' ? ']' : where[at];
  for (size_t i = at + 1; i < where.size(); ++i) {
    if (where[i] != close) continue;
    if (close != ']' && i + 1 < where.size() && where[i + 1] == close) {
      ++i;  // a doubled quote stands for one
    } else {
      return i + 1;
    }
  }
  refuse(where, at, "this quote is not closed");
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

std::string in_lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

// A name that does not occur in the expression, in whatever case.
std::string other_than(const std::string& where) {
  const std::string text = in_lower_case(where);
  std::string name = "_items";
  while (text.find(name) != std::string::npos) name += "_";
  return name;
}

std::string names_of_columns(const Database& db) {
  std::string names = "_row, id";
  Statement read = db.prepare("SELECT name FROM columns ORDER BY place");
  while (read.step()) names += ", " + quoted(std::string(read.text(0)));
  return names;
}

void bind_all(sqlite3_stmt* statement, const std::string& where, const std::vector<ColumnValue>& params) {
  const int wanted = sqlite3_bind_parameter_count(statement);
  if (static_cast<size_t>(wanted) != params.size()) {
    throw InvalidArgument(fmt::format("where \"{}\" has {} parameter{}; {} were given", shown(where), wanted,
                                      wanted == 1 ? "" : "s", params.size()));
  }
  sqlite3_clear_bindings(statement);
  for (int i = 0; i < wanted; ++i) {
    const ColumnValue& value = params[static_cast<size_t>(i)];
    if (const auto* const number = std::get_if<int64_t>(&value)) sqlite3_bind_int64(statement, i + 1, *number);
    if (const auto* const real = std::get_if<double>(&value)) sqlite3_bind_double(statement, i + 1, *real);
    if (const auto* const truth = std::get_if<bool>(&value)) sqlite3_bind_int64(statement, i + 1, *truth ? 1 : 0);
    if (const auto* const text = std::get_if<std::string>(&value)) {
      sqlite3_bind_text64(statement, i + 1, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
}

}  // namespace

void check_expression(const std::string& where) {
  int64_t depth = 0;
  for (size_t i = 0; i < where.size();) {
    const char c = where[i];
    const std::string_view two = std::string_view(where).substr(i, 2);
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      const size_t end = quoted_end(where, i);
      if (c != '\'' && std::string_view(where).substr(i + 1, 1) == "_") {
        refuse(where, i, "names that begin with an underscore are Kith's own");
      }
      i = end;
      continue;
    }
    if (c == '\0') refuse(where, i, "a null character cannot be here");
    if (c == ';') refuse(where, i, "a filter is one expression, without ';'");
    if (two == "--" || two == "/*") refuse(where, i, "comments cannot be here");
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) refuse(where, i, "this parenthesis closes none");
    if (is_word(c)) {
      const size_t begin = i;
      while (i < where.size() && is_word(where[i])) ++i;
      const std::string word = in_lower_case(where.substr(begin, i - begin));
      if (word.starts_with('_')) refuse(where, begin, "names that begin with an underscore are Kith's own");
      if (word == "items" || word == "rowid" || word == "oid") {
        refuse(where, begin, "it is not a column of the collection; a filter sees columns and id");
      }
      continue;
    }
    ++i;
  }
  if (depth != 0) refuse(where, where.size(), "a parenthesis is not closed");
}

// What SQLite calls while a statement is prepared and runs.
struct WhereStatement::Hooks {
  // SQLite calls this while it prepares the statement. Items are read through a common table expression whose name the
  // user's expression cannot contain: so, however it is written or quoted, it only sees the columns of one item.
  struct Allowed {
    std::string source;  // the name of that table expression
    std::string refused;
  };
  struct Watch {
    const Resources& resources;
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
    bool late = false;
    bool cancelled = false;
  };

  Allowed allowed;
  Watch watched;
  const std::function<void(int64_t row)>* use = nullptr;
  std::exception_ptr failure;  // of `use`, which cannot be thrown through SQLite

  static int authorize(void* context, int action, const char* first, const char* second, const char*,
                       const char* source) {
    auto& allowed = *static_cast<Allowed*>(context);
    const auto deny = [&](std::string what) {
      if (allowed.refused.empty()) allowed.refused = std::move(what);
      return SQLITE_DENY;
    };
    const auto says = [](const char* text) { return std::string_view(text == nullptr ? "" : text); };
    switch (action) {
      case SQLITE_SELECT:
      case SQLITE_RECURSIVE: return SQLITE_OK;
      case SQLITE_READ: {
        if (says(first) == "json_each" || says(first) == "json_tree") return SQLITE_OK;
        if (says(first) == "items" && says(source) == allowed.source) return SQLITE_OK;
        return deny(fmt::format("it reads the table '{}'; a filter sees the collection's columns and id", says(first)));
      }
      case SQLITE_FUNCTION: {
        constexpr std::array<std::string_view, 7> kRefused{"load_extension", "random", "randomblob", "writefile",
                                                           "readfile", "edit", "fts3_tokenizer"};
        for (const std::string_view name : kRefused) {
          if (says(second) == name) return deny(fmt::format("the function {}() is not for filters", name));
        }
        return SQLITE_OK;
      }
      default: return deny("it does more than look at values");
    }
  }

  static int watch(void* context) {
    auto& watched = *static_cast<Watch*>(context);
    try {
      watched.resources.check_cancelled();
    } catch (...) {
      watched.cancelled = true;
      return 1;
    }
    watched.late = std::chrono::steady_clock::now() > watched.end;
    return watched.late ? 1 : 0;
  }

  // Rows leave SQLite through an aggregate: a statement that returns them one by one takes more than twice as long. An
  // expression cannot name it, for the underscore.
  static void take(sqlite3_context* context, int, sqlite3_value** values) {
    auto& hooks = *static_cast<Hooks*>(sqlite3_user_data(context));
    if (hooks.failure) return;
    try {
      (*hooks.use)(sqlite3_value_int64(values[0]));
    } catch (...) {
      hooks.failure = std::current_exception();
      sqlite3_result_error_code(context, SQLITE_ABORT);
    }
  }
};

WhereStatement::WhereStatement(Database& db, const WhereQuery& query, const Resources& resources)
    : db_(db),
      where_(query.where),
      exact_(query.rows == WhereRows::living),
      version_(query.version),
      time_limit_(query.time_limit),
      hooks_(new Hooks{{}, {resources}, nullptr, nullptr}) {
  check_expression(where_);
  hooks_->allowed.source = other_than(where_);
  names_ = names_of_columns(db);
  // The first use of a table-valued function declares its table, which the authorizer would see.
  if (in_lower_case(where_).find("json_") != std::string::npos)
    db.run("SELECT 1 FROM json_each('[]'), json_tree('[]')");
  const int made = sqlite3_create_function_v2(db.get(), "_take", 1, SQLITE_UTF8, hooks_.get(), nullptr, Hooks::take,
                                              [](sqlite3_context*) {}, nullptr);
  if (made != SQLITE_OK) db.fail(made, "use");
  constexpr int kInstructions = 4096;  // between two checks of the time
  hooks_->watched.end = std::chrono::steady_clock::now() + time_limit_;
  sqlite3_set_authorizer(db.get(), Hooks::authorize, &hooks_->allowed);
  sqlite3_progress_handler(db.get(), kInstructions, Hooks::watch, &hooks_->watched);
  int code = prepare(exact_ ? "_removed = 0" : "true");
  // If no column is used, SQLite calls the authorizer with a table but not with its reader.
  if (code == SQLITE_AUTH && !exact_) code = prepare_exact();
  if (code == SQLITE_OK) return;
  try {
    fail(code);
  } catch (...) {
    detach();
    throw;
  }
}

// For the version's items alone, which takes longer.
int WhereStatement::prepare_exact() {
  exact_ = true;
  hooks_->allowed.refused.clear();
  sqlite3_finalize(statement_);
  statement_ = nullptr;
  // The unary plus keeps SQLite from choosing an index for the versions, which nearly all items satisfy.
  return prepare(fmt::format("+_added <= {0} AND (+_removed = 0 OR +_removed > {0})", version_));
}

int WhereStatement::prepare(const std::string& rows) {
  std::string sql = fmt::format("WITH {0} AS (SELECT {1} FROM main.items WHERE {2}) SELECT _take(_row) FROM {0}",
                                hooks_->allowed.source, names_, rows);
  if (!where_.empty()) {
    sql += " WHERE (";
    offset_ = sql.size();
    sql += where_ + ")";
  }
  return sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()), 0, &statement_, nullptr);
}

WhereStatement::~WhereStatement() {
  sqlite3_finalize(statement_);
  detach();
}

void WhereStatement::detach() const {
  sqlite3_set_authorizer(db_.get(), nullptr, nullptr);
  sqlite3_progress_handler(db_.get(), 0, nullptr, nullptr);
  sqlite3_create_function_v2(db_.get(), "_take", 1, SQLITE_UTF8, nullptr, nullptr, nullptr, nullptr, nullptr);
}

void WhereStatement::fail(int code) const {
  if (hooks_->watched.cancelled) throw Cancelled();
  if (hooks_->watched.late) {
    throw InvalidState(fmt::format("where \"{}\" takes longer than {} ms; index the columns that it compares "
                                   "(create_index), or give it more time", shown(where_), time_limit_.count()));
  }
  if (!hooks_->allowed.refused.empty()) {
    throw InvalidArgument(fmt::format("where \"{}\" cannot be a filter: {}", shown(where_), hooks_->allowed.refused));
  }
  if ((code & 0xff) != SQLITE_ERROR && (code & 0xff) != SQLITE_MISMATCH) db_.fail(code, "use");
  const int offset = sqlite3_error_offset(db_.get()) - static_cast<int>(offset_);
  const std::string place = offset < 0 ? "" : fmt::format(", character {}", offset + 1);
  const std::string reason = sqlite3_errmsg(db_.get());
  const std::string_view hint =
      reason.starts_with("no such column") ? "; put text in single quotes, or write ? and give it in params" : "";
  throw InvalidArgument(fmt::format("where \"{}\"{}: {}{}", shown(where_), place, reason, hint));
}

void WhereStatement::for_each(const std::vector<ColumnValue>& params, const std::function<void(int64_t row)>& use) {
  bind_all(statement_, where_, params);
  hooks_->watched.end = std::chrono::steady_clock::now() + time_limit_;
  hooks_->use = &use;
  hooks_->failure = nullptr;
  int code = sqlite3_step(statement_);
  try {
    if (hooks_->failure) std::rethrow_exception(hooks_->failure);
    // It may be an item of another version of which the expression cannot be computed.
    if ((code & 0xff) == SQLITE_ERROR && !exact_) {
      code = prepare_exact();
      if (code == SQLITE_OK) return for_each(params, use);
    }
    if (code != SQLITE_ROW) fail(code);
  } catch (...) {
    sqlite3_reset(statement_);
    throw;
  }
  sqlite3_reset(statement_);
}

void for_each_where(Database& db, const WhereQuery& query, const std::function<void(int64_t row)>& use,
                    const Resources& resources) {
  WhereStatement(db, query, resources).for_each(query.params, use);
}

}  // namespace kith
