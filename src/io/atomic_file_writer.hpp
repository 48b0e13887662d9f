// Writes a file so that its path only ever shows the whole of the old or the whole of the new one: the bytes go to a
// temporary file in the same directory, which commit() syncs and renames. Anything else removes it. A file that is
// replaced hands on its permissions.
//
// A symbolic link is followed, and the file it names replaced. What is no regular file is refused: a rename would take
// the place of a device or a fifo instead of writing to it.
#pragma once

#include "io/posix_file.hpp"

#include <cstddef>
#include <cstdint>
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

  // After an error of these the temporary file is gone, and every further call is InvalidState.
  void write(const void* data, int64_t bytes);
  // Over bytes that were written before: a header that is known last.
  void overwrite(int64_t offset, const void* data, int64_t bytes);
  // Brings everything to the disk: what is left for commit() is the rename.
  void sync();
  void commit();
  // Renames what may not be on the disk yet: for a file that only this process will read.
  void commit_unsynced();

 private:
  void create_temporary();
  void keep_permissions();
  void check_open() const;
  void flush() { write_through(buffer_.get(), std::exchange(buffered_, 0)); }
  void rename_into_place();
  void write_through(const void* data, int64_t bytes);
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

// Locks a new temporary file for as long as it is open, so that remove_left_behind() sees that its writer lives. False: it
// was taken for one left behind before it was locked, and is gone.
bool lock_while_open(const FileDescriptor& file);
// Removes the temporary files that killed writers left in a folder. Those of writers that live are locked, and stay.
void remove_left_behind(const std::string& folder);
// In the folder of that path, where it can be seen.
void remove_left_beside(const std::string& path);

}  // namespace kith
