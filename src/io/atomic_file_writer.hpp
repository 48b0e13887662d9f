// Writes a file atomically: its path shows either the complete old or the complete new file. The bytes go to a
// temporary file in the same directory, which commit() syncs and renames; without commit() it is removed. A replaced
// file passes on its permissions.
//
// A symbolic link is followed, and the file it names is replaced. Targets that are not regular files are refused: a
// rename would replace a device or a fifo instead of writing to it.
#pragma once

#include "io/posix_file.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kith {

class AtomicFileWriter {
 public:
  explicit AtomicFileWriter(const std::string& path);
  ~AtomicFileWriter() { discard(); }
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  const std::string& path() const { return path_; }

  // After an error in one of these the temporary file is removed, and every further call is InvalidState.
  // Some megabytes are written by several threads: one copies to the file system's memory at 1 to 2 GB a second.
  void write(const void* data, int64_t bytes);
  // The same of bytes that fill(offset, bytes, out) makes, some at a time, on any thread.
  using Fill = std::function<void(int64_t offset, int64_t bytes, std::byte* out)>;
  void write_made(int64_t bytes, const Fill& fill);
  // Overwrites bytes that were written before, for headers that become known last.
  void overwrite(int64_t offset, const void* data, int64_t bytes);
  // Syncs everything to the disk, so that commit() only renames.
  void sync();
  void commit();
  // Renames without a sync, for a file that only this process will read.
  void commit_unsynced();

 private:
  void create_temporary();
  void keep_permissions();
  void check_open() const;
  void flush() { write_through(buffer_.get(), std::exchange(buffered_, 0)); }
  void rename_into_place();
  void write_through(const void* data, int64_t bytes);
  // put(offset, bytes, file offset) for pieces of all bytes, on some threads; 0 or an error of the system.
  void write_pieces(int64_t bytes, const std::function<int(int64_t, int64_t, int64_t)>& put);
  void discard() noexcept;
  [[noreturn]] void fail(std::string_view action, int code);

  std::string path_;       // as it was given
  std::string name_;       // of the target in its directory
  std::string temporary_;  // of the temporary file there
  FileDescriptor directory_;
  FileDescriptor file_;
  std::unique_ptr<std::byte[]> buffer_;
  int64_t buffered_ = 0;
};

// Locks a new temporary file for as long as it is open, so that remove_left_behind() sees that its writer lives. False
// if another process removed it as stale before it was locked.
bool lock_while_open(const FileDescriptor& file);
// Removes the temporary files of killed writers from a folder. Those of living writers are locked, and stay.
void remove_left_behind(const std::string& folder);
// The same in the folder of that path, if it can be listed.
void remove_left_beside(const std::string& path);

}  // namespace kith
