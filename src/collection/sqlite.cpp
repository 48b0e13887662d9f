#include "collection/sqlite.hpp"

#include <kith/error.hpp>

#include "collection/host_limit.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace kith {
namespace {

constexpr int kBusyMilliseconds = 10'000;  // of readers and checkpoints, which are short

// Pages of a connection that counts, and where it sorts: in a file, of which SQLite holds 2 MB in memory.
constexpr const char* kCountedPages = "PRAGMA cache_size=-1024";
constexpr const char* kSortInFiles = "PRAGMA temp_store=FILE";

// A path as a URI, so that "immutable" can be said.
std::string uri_of(const std::string& path, bool immutable) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return immutable ? uri + "?immutable=1" : uri;
}

int errno_of(int code, int system) {
  switch (code & 0xff) {
    case SQLITE_FULL: return ENOSPC;
    case SQLITE_READONLY: return EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH: return EACCES;
    default: return system != 0 ? system : EIO;
  }
}

}  // namespace

Database::Database(const std::string& path, Open how, const std::string& vfs, const Resources& resources)
    : path_(path), own_files_(vfs.empty()) {
  const bool counts = is_limited(resources);
  if (counts) {
    counted_ = HostBuffer(kDatabaseMemory, "SQLite", resources);
    counted_by_ = resources.host_memory();
  }
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
  flags |= how == Open::immutable ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (how == Open::create) flags |= SQLITE_OPEN_CREATE;
  const std::string uri = uri_of(path, how == Open::immutable);
  const int code = sqlite3_open_v2(uri.c_str(), &db_, flags, vfs.empty() ? nullptr : vfs.c_str());
  try {
    if (code != SQLITE_OK) fail(code, "open");
    sqlite3_busy_timeout(db_, kBusyMilliseconds);
    int off = 0;
    sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, &off);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, &off);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, &off);
    if (how == Open::read || how == Open::immutable) {
      // Only the writer moves the log into the database.
      sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &off);
      run("PRAGMA query_only=1");
    }
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DML, 0, &off);
    run(counts && own_files_ ? kSortInFiles : "PRAGMA temp_store=MEMORY");
    if (counts) run(kCountedPages);
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

Database::~Database() { sqlite3_close_v2(db_); }

void Database::fail(int code, std::string_view action) const {
  const int extended = db_ != nullptr ? sqlite3_extended_errcode(db_) : code;
  const int kept = (extended & 0xff) == (code & 0xff) ? extended : code;
  const int system = db_ != nullptr ? sqlite3_system_errno(db_) : 0;
  const std::string words = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
  const std::string what = fmt::format("cannot {} '{}': {}", action, path_, words);
  switch (kept & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw CorruptFile(fmt::format("{}; restore it from a snapshot, or read what is sound of it with the program "
                                    "sqlite3 (.recover)", what), path_, 0);
    case SQLITE_FULL:
      throw IoError(fmt::format("{}: the disk is full; make room and try again", what), path_, ENOSPC);
    case SQLITE_IOERR: {
      const int error = errno_of(kept, system);
      const std::string full = fmt::format("{} ({})", what, std::generic_category().message(error));
      if (kept == SQLITE_IOERR_FSYNC || kept == SQLITE_IOERR_DIR_FSYNC) throw SyncFailed(full, path_, error);
      throw IoError(full, path_, error);
    }
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN: throw IoError(what, path_, errno_of(kept, system));
    case SQLITE_NOMEM: throw OutOfMemory(what, 0);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw InvalidState(fmt::format("{}: another program holds a transaction on it; end that, and try again", what));
    case SQLITE_INTERRUPT: throw Cancelled();
    case SQLITE_TOOBIG: throw InvalidArgument(fmt::format("{}: a value is larger than SQLite takes (1 GB)", what));
    default: throw InvalidState(what);
  }
}

bool Database::was_moved() const {
  int moved = 0;
  return sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, "use");
}

DatabaseMemory::DatabaseMemory(Database& db, const Resources& resources) {
  if (!is_limited(resources) || db.counted_by_ == resources.host_memory()) return;
  counted_ = HostBuffer(kDatabaseMemory, "SQLite", resources);
  pages_ = db.number("PRAGMA cache_size");
  // In a transaction nothing is sorted; a database that is not in files has none to sort in.
  const bool sorts = !db.in_transaction() && db.uses_files();
  const int64_t temporary = sorts ? db.number("PRAGMA temp_store") : -1;
  if (sorts) db.run(kSortInFiles);
  db.run(kCountedPages);
  temporary_ = temporary;
  db_ = &db;
  before_ = std::exchange(db.counted_by_, resources.host_memory());
}

DatabaseMemory::~DatabaseMemory() {
  if (db_ == nullptr) return;
  db_->counted_by_ = before_;
  const auto set = [&](const std::string& sql) { sqlite3_exec(db_->get(), sql.c_str(), nullptr, nullptr, nullptr); };
  if (temporary_ >= 0 && !db_->in_transaction()) set(fmt::format("PRAGMA temp_store={}", temporary_));
  sqlite3_db_release_memory(db_->get());
  set(fmt::format("PRAGMA cache_size={}", pages_));
}

Statement Database::prepare(std::string_view sql) const { return Statement(*this, sql); }

int64_t Database::number(const std::string& sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.number(0) : 0;
}

std::string Database::text(const std::string& sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? std::string(statement.text(0)) : std::string();
}

Statement::Statement(const Database& db, std::string_view sql) : db_(&db) {
  const int code = sqlite3_prepare_v3(db.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement_, nullptr);
  if (code != SQLITE_OK) db.fail(code, "use");
}

Statement& Statement::bind(int at, int64_t value) {
  sqlite3_bind_int64(statement_, at, value);
  return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
  const int code = sqlite3_bind_text64(statement_, at, text.data() == nullptr ? "" : text.data(), text.size(),
                                       SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) db_->fail(code, "use");
  return *this;
}

Statement& Statement::bind_blob(int at, std::span<const std::byte> bytes) {
  const void* const data = bytes.data() == nullptr ? static_cast<const void*>("") : bytes.data();
  const int code = sqlite3_bind_blob64(statement_, at, data, bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) db_->fail(code, "use");
  return *this;
}

Statement& Statement::bind_null(int at) {
  sqlite3_bind_null(statement_, at);
  return *this;
}

Statement& Statement::bind(int at, const ColumnValue& value) {
  switch (value.index()) {
    case 0: return bind_null(at);
    case 1: return bind(at, std::get<int64_t>(value));
    case 2: sqlite3_bind_double(statement_, at, std::get<double>(value)); return *this;
    case 3: return bind(at, int64_t{std::get<bool>(value)});
    default: return bind(at, std::string_view(std::get<std::string>(value)));
  }
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  try {
    db_->fail(code, "use");
  } catch (...) {
    sqlite3_reset(statement_);
    throw;
  }
}

void Statement::run() {
  while (step()) {
  }
  sqlite3_reset(statement_);
}

bool Statement::run_unless_taken() {
  if (sqlite3_step(statement_) == SQLITE_DONE) {
    sqlite3_reset(statement_);
    return true;
  }
  const int code = sqlite3_extended_errcode(db_->get());
  const bool taken = code == SQLITE_CONSTRAINT_UNIQUE;
  if (taken) {
    sqlite3_reset(statement_);
    return false;
  }
  try {
    db_->fail(code, "use");
  } catch (...) {
    sqlite3_reset(statement_);
    throw;
  }
}

std::string_view Statement::text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? std::string_view() : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

std::span<const std::byte> Statement::blob(int column) const {
  const auto* const bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {bytes, bytes == nullptr ? 0 : static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

ColumnValue Statement::value(int column, ColumnType type) const {
  if (is_null(column)) return {};
  switch (type) {
    case ColumnType::integer: return number(column);
    case ColumnType::boolean: return number(column) != 0;
    case ColumnType::real: return sqlite3_column_double(statement_, column);
    default: return std::string(text(column));
  }
}

Transaction::Transaction(Database& db) : db_(db), nested_(db.in_transaction()) {
  db_.run(nested_ ? "SAVEPOINT call" : "BEGIN IMMEDIATE");
}

void Transaction::commit() {
  db_.run(nested_ ? "RELEASE call" : "COMMIT");
  open_ = false;
}

Transaction::~Transaction() {
  if (!open_) return;
  // After some errors SQLite has undone it by itself.
  if (!db_.in_transaction()) return;
  sqlite3_exec(db_.get(), nested_ ? "ROLLBACK TO call; RELEASE call" : "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace kith
