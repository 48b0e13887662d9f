// SQLite's connections and statements, closed by their destructors; its codes as Kith's errors, which name the file.
#pragma once

#include <kith/collection.hpp>
#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/resources.hpp>

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kith {

// A failed sync: the handle that sees it writes no more.
class SyncFailed : public IoError {
 public:
  using IoError::IoError;
};

class Statement;

// What SQLite takes for a connection while a limit counts: its pages, one table of its own for a sort or a list of values,
// statements and the schema. Values themselves are counted where they are read.
inline constexpr int64_t kDatabaseMemory = int64_t{4} << 20;

class Database {
 public:
  enum class Open : uint8_t { create, write, read, immutable };

  // `vfs` may be empty: SQLite's own. Under a memory limit the connection counts as long as it is open.
  Database(const std::string& path, Open how, const std::string& vfs, const Resources& resources = Resources());
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  sqlite3* get() const { return db_; }

  void run(const std::string& sql);
  // A statement that is kept and used again.
  Statement prepare(std::string_view sql) const;
  int64_t number(const std::string& sql) const;  // the first column of the first row
  std::string text(const std::string& sql) const;
  int64_t changes() const { return sqlite3_changes64(db_); }
  // Whether its file was deleted, or is now under another name.
  bool was_moved() const;
  // Whether SQLite itself writes the files: another file system of tests has no temporary ones.
  bool uses_files() const { return own_files_; }
  bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

  // The connection's last error as one of Kith's.
  [[noreturn]] void fail(int code, std::string_view action) const;
  // In a forked child a parent's connection must not be closed.
  void abandon() { db_ = nullptr; }

 private:
  friend class DatabaseMemory;

  std::string path_;
  sqlite3* db_ = nullptr;
  bool own_files_;
  HostBuffer counted_;                        // for all calls
  std::shared_ptr<MemoryBudget> counted_by_;  // null: nobody
};

// Counts a connection against the limit of one call, and keeps it within that; then the connection gives its pages back.
// It does nothing without a limit, and where the connection counts against that limit already.
class DatabaseMemory {
 public:
  DatabaseMemory(Database& db, const Resources& resources);
  ~DatabaseMemory();
  DatabaseMemory(const DatabaseMemory&) = delete;
  DatabaseMemory& operator=(const DatabaseMemory&) = delete;

 private:
  Database* db_ = nullptr;  // null: nothing was counted
  HostBuffer counted_;
  std::shared_ptr<MemoryBudget> before_;
  int64_t pages_ = 0;       // SQLite's settings before
  int64_t temporary_ = -1;  // unchanged
};

class Statement {
 public:
  Statement() = default;
  Statement(const Database& db, std::string_view sql);
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(Statement&& other) noexcept { swap(other); }
  Statement& operator=(Statement&& other) noexcept {
    swap(other);
    return *this;
  }

  sqlite3_stmt* get() const { return statement_; }
  void abandon() { statement_ = nullptr; }  // as Database::abandon()

  // Parameters are numbered from 1. What is bound must stay until the statement was run.
  Statement& bind(int at, int64_t value);
  Statement& bind(int at, std::string_view text);
  Statement& bind_blob(int at, std::span<const std::byte> bytes);
  Statement& bind(int at, const ColumnValue& value);
  Statement& bind_null(int at);

  // Whether there is a row.
  bool step();
  // Runs it to its end and makes it ready to be run again.
  void run();
  // The same, and false where a unique index refuses a value.
  bool run_unless_taken();
  void reset() { sqlite3_reset(statement_); }

  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view text(int column) const;
  std::span<const std::byte> blob(int column) const;
  ColumnValue value(int column, ColumnType type) const;

 private:
  void swap(Statement& other) noexcept {
    std::swap(db_, other.db_);
    std::swap(statement_, other.statement_);
  }

  const Database* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

// Undone unless it is committed. A nested one undoes what came since.
class Transaction {
 public:
  explicit Transaction(Database& db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  const bool nested_;
  bool open_ = true;
};

}  // namespace kith
