// A piece of a list of additive codes by lookup tables, for few queries: m lookups, and one for the norm, where decoding
// would add up m codewords.
//
//   |q|^2 - 2 q x + norm   with x = c + sum of codewords: tables have -2 q w, the norm's table its levels
//   -q x                   tables have -q w
//
// A query's tables are the same in every list; they stay while it is searched. To a lookup an additive code of 8 bits a
// book is a product code of as many parts, with its byte for the norm a further one. Codes without a norm have none for
// distances, which need it of every vector.
#pragma once

#include "ivf/list_product.hpp"

namespace kith {

// Whether such codes are searched so by such a key.
bool has_sum_tables(const CodeFormat& format, KeyKind kind);
// Parts of codes, as tables see them.
CodeFormat sum_table_format(const CodeFormat& format);

std::unique_ptr<ListProduct> make_sum_list_product(const ListTables& tables, const ListProductShape& shape,
                                                   const Resources& resources);
int64_t sum_list_product_bytes(const ListProductShape& shape, const CodeFormat& format);

}  // namespace kith
