#!/usr/bin/env python3
"""Compares two lists of kith_hashes or float64.py, and tells what differs by entry point.

    check.py OLD NEW [--cuda expected_cuda.txt] [--only PREFIX] [--differences]

`--cuda`: NEW comes from a GPU; the cases in that file are expected to have its hashes instead of OLD's.
`--differences`: prints the lines of NEW that differ from OLD, and nothing else: what expected_cuda.txt holds.

Exits with 1 if anything differs or is in one list alone.
"""

import argparse
import sys
from collections import defaultdict

SHOWN = 5  # cases of an entry point that are named


def read(path: str) -> dict[str, str]:
    """The hash of each case. Further columns, which --explain prints, are no part of it."""
    hashes: dict[str, str] = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                case, value = line.split()[:2]
                if case in hashes:
                    sys.exit(f"{path} has two lines of {case}")
                hashes[case] = value
    return hashes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--cuda", help="cases that differ on a GPU")
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--differences", action="store_true", help="print the differing lines of NEW alone")
    arguments = parser.parse_args()
    old, new = read(arguments.old), read(arguments.new)
    if arguments.cuda:
        old.update(read(arguments.cuda))
    old, new = ({case: value for case, value in one.items() if case.startswith(arguments.only)} for one in (old, new))

    if arguments.differences:
        for case, value in new.items():
            if old.get(case) != value:
                print(case, value)
        return 0

    differing: dict[str, list[str]] = defaultdict(list)
    for case in sorted(old.keys() | new.keys()):
        if case not in new:
            differing[case.split("/")[0]].append(f"{case} is in {arguments.old} alone")
        elif case not in old:
            differing[case.split("/")[0]].append(f"{case} is in {arguments.new} alone")
        elif old[case] != new[case]:
            differing[case.split("/")[0]].append(f"{case}: {old[case]} became {new[case]}")
    for entry_point, lines in sorted(differing.items()):
        calls = sum(case.split("/")[0] == entry_point for case in old)
        print(f"{entry_point}: {len(lines)} differ of {calls}")
        for line in lines[:SHOWN]:
            print(f"  {line}")
        if len(lines) > SHOWN:
            print(f"  and {len(lines) - SHOWN} more")
    total = sum(map(len, differing.values()))
    print(f"{len(new)} calls, {total} differ")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
