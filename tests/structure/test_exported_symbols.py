"""The check of what an installed library exports goes by declarations, not by words of a header."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "install"))

from exported_symbols import declared, not_public  # noqa: E402

HEADER = """
// This comment speaks of Hidden and secret().
class KITH_EXPORT Index {
 public:
  int64_t size() const { return count(rows); }
};
KITH_EXPORT void save(const Index& index, std::string_view path = "Quoted(");
bool operator==(const Index& a, const Index& b);
namespace kith::custom {
int search(int k);
}
"""
C_HEADER = "/* kith_secret() is none */\nKITH_C_API int kith_open(const char* path);"


def test_declarations_count_and_comments_do_not() -> None:
    found = declared(HEADER)
    assert {"Index", "size", "save", "operator"} <= found
    assert not {"Hidden", "secret", "Quoted", "count"} & found


def test_what_no_header_declares_is_found() -> None:
    symbols = ["kith::Index::size() const", "typeinfo for kith::Index", "kith::Hidden::~Hidden()", "kith::secret()",
               "kith_open", "kith_secret", "kith::operator==(kith::Index const&, kith::Index const&)",
               "kith::custom::search(int)", "kith::custom::hide(int)"]
    found = ["kith::Hidden::~Hidden()", "kith::secret()", "kith_secret", "kith::custom::hide(int)"]
    assert not_public(symbols, HEADER, C_HEADER) == found


def test_public_headers_declare_what_they_should() -> None:
    headers = "".join(path.read_text("utf-8") for path in (Path(__file__).parents[2] / "include" / "kith").iterdir())
    assert {"Index", "knn", "KMeans", "Collection", "save_graph"} <= declared(headers)
