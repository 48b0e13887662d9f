// The lines that a benchmark prints, on the terminal and, where one is named, in a file.
#pragma once

#include <kith/error.hpp>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>

// A figure as a column of so many characters; "-" where it was not measured.
inline std::string column(std::optional<double> figure, int width, int decimals) {
  char text[64];
  if (figure) {
    std::snprintf(text, sizeof text, "%*.*f", width, decimals, *figure);
  } else {
    std::snprintf(text, sizeof text, "%*s", width, "-");
  }
  return text;
}

class Table {
 public:
  explicit Table(const std::string& path) : file_(path.empty() ? nullptr : std::fopen(path.c_str(), "w")) {
    if (!path.empty() && file_ == nullptr) throw kith::IoError("cannot write " + path, path, errno);
  }
  ~Table() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void line(const std::string& text) const {
    std::puts(text.c_str());
    std::fflush(stdout);
    if (file_ != nullptr) std::fprintf(file_, "%s\n", text.c_str());
  }

 private:
  std::FILE* file_;
};
