"""kith plan: what a graph or an index will take."""


def test_plan(kith):
    report = kith.ok("plan", "--rows", "1e9", "--cols", 96, "--dtype", "u8", "-k", 10, "--memory-limit", "16G", "--gpu", "--json").json
    assert report["result"]["method"] == "cells" and report["result"]["from_disk"]
    assert [phase["name"] for phase in report["result"]["phases"]][:3] == ["sample", "centres", "buckets"]
    assert "join" in kith.ok("plan", "--rows", "1e7", "--cols", 128, "--factory", "IVF4096,PQ32", "--memory-limit", "256M").out
    assert "--rows and --cols" in kith.fails(2, "plan", "--rows", 5)
