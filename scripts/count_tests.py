"""Prints how many tests passed, failed and were skipped in JUnit XML files, as written by ctest, pytest and gtest."""

import sys
import xml.etree.ElementTree as ElementTree


def count(paths: list[str]) -> tuple[int, int, int]:
    passed = failed = skipped = 0
    for case in (case for path in paths for case in ElementTree.parse(path).getroot().iter("testcase")):
        # pytest adds an element for what went wrong; ctest says it in an attribute as well.
        outcomes = {child.tag for child in case} | {case.get("status", "")}
        if outcomes & {"failure", "error", "fail"}:
            failed += 1
        elif outcomes & {"skipped", "notrun", "disabled"}:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    print(*count(sys.argv[1:]))
