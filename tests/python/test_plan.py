"""What a graph or an index will take."""

from __future__ import annotations

import pytest

import kith


def test_a_plan() -> None:
    plan = kith.plan(10**9, 96, "u8", memory_limit="16G")
    assert plan.method == "cells" and plan.from_disk and max(phase.blocks for phase in plan.phases) > 4
    assert plan.seconds == pytest.approx(sum(phase.seconds for phase in plan.phases))
    assert not kith.plan(10**5, 32, factory="IVF,PQ8", threads=2).from_disk
    names = ("VNNI", "NEON", "")
    quick, slow, any_small = (kith.plan(10**7, 128, "u8", memory_limit="256M", instruction_set=name).seconds for name in names)
    assert quick < slow == any_small
    with pytest.raises(ValueError, match="instruction_set = 'vnni'"):
        kith.plan(10**7, 128, instruction_set="vnni")
    with pytest.raises(ValueError, match="rows = 0"):
        kith.plan(0, 4)
