#include "core/system_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace kith {

std::string system_text(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char some[4096];
  while (true) {
    const ssize_t count = read(file, some, sizeof some);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(some, static_cast<size_t>(count));
  }
  close(file);
  return text;
}

}  // namespace kith
