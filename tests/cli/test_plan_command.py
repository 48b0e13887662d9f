"""kith plan: what a graph or an index will take."""


def test_plan(kith):
    report = kith.ok("plan", "--rows", "1e9", "--cols", 96, "--dtype", "u8", "-k", 10, "--memory-limit", "16G", "--gpu", "--json").json
    assert report["result"]["method"] == "cells" and report["result"]["from_disk"]
    assert [phase["name"] for phase in report["result"]["phases"]][:3] == ["sample", "centres", "buckets"]
    more = ("--ids-only", "--int32-ids")
    small = kith.ok("plan", "--rows", "1e9", "--cols", 96, "--dtype", "u8", "--memory-limit", "16G", "--gpu", "--json", *more).json
    assert small["result"]["result_bytes"] * 3 == report["result"]["result_bytes"]
    assert "join" in kith.ok("plan", "--rows", "1e7", "--cols", 128, "--factory", "IVF4096,PQ32", "--memory-limit", "256M").out
    question = ("plan", "--rows", "1e7", "--cols", 128, "--dtype", "u8", "--memory-limit", "256M", "--threads", 2)
    seconds = [kith.ok(*question, "--json", "--instruction-set", name).json["result"]["seconds"] for name in ("VNNI", "NEON")]
    assert seconds[0] < seconds[1]
    here = kith.ok("info", "--json").json["result"]["cpu"]["instruction_set"]
    assert kith.ok(*question, "--json").json["result"]["instruction_set"] == here
    assert "instruction_set = 'vnni'" in kith.fails(2, *question, "--instruction-set", "vnni")
    assert "--rows and --cols" in kith.fails(2, "plan", "--rows", 5)
