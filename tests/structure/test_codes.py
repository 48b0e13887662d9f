"""A code is easy to add: RaBitQ is known to five files beside its own.

Each of the five holds a line or a branch for it: the format's bytes, the reader that all who read codes share, the table of
encoders, the GPU's encoder, and the tables of FAISS's kinds. Lists of sources and documentation name it, too.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN = re.compile(r"(?:^|/)(?:sign_code\w*|rabitq_encoder|sign_list_product|faiss_rabitq)\.\w+$")
KNOWS = re.compile(
    r"RaBitQ|rabitq|Ixrq|Iwrq|kSignCode|kFaissSign|CodeKind::signs|\.has_signs\(\)|\bsigns? codes?\b"
    r"|\bsign_(?:code|step|value|square|table|list)|SignReader|launch_encode_signs"
)
KNOWN_TO = {
    "src/interop/faiss_kinds.cpp",
    "src/kernels/codes/code_format.hpp",
    "src/kernels/codes/own_code.hpp",
    "src/quantize/code_table.cpp",
    "src/quantize/device_codec_cuda.cpp",
}


def test_rabitq_is_known_to_five_files() -> None:
    files = {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for folder in ("src", "cli", "python/src")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".hpp", ".cpp", ".cu"}
    }
    own = {file for file in files if OWN.search(file)}
    assert len(own) == 8, sorted(own)
    assert all(KNOWS.search(files[file]) for file in own)
    assert {file for file, text in files.items() if KNOWS.search(text)} - own == KNOWN_TO
