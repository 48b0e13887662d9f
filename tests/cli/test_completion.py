"""Completion scripts and the manual page."""

import re
import shutil
import subprocess

import pytest


def completed(kith, *words):
    """What bash offers for the last word."""
    program = f"""
      source <({kith.path} completion bash)
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      _kith
      printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program, "bash", *words], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_bash_completes_commands(kith):
    assert completed(kith, "kith", "k") == ["knn", "kmeans"]
    assert {"info", "head", "knn", "range", "index", "--help"} <= set(completed(kith, "kith", ""))
    assert completed(kith, "kith", "index", "bu") == ["build"]


def test_bash_completes_options_and_values(kith):
    assert completed(kith, "kith", "knn", "--out") == ["--out-ids", "--out-distances"]
    assert completed(kith, "kith", "index", "build", "--fac") == ["--factory"]
    assert completed(kith, "kith", "knn", "--base", "b.fbin", "--metric", "c") == ["cosine", "chi_square"]
    assert completed(kith, "kith", "knn", "--base", "") == []  # left to bash: names of files
    assert {"bash", "zsh", "fish"} < set(completed(kith, "kith", "completion", ""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_option(kith, shell):
    script = kith.ok("completion", shell).out
    for command in (["knn"], ["kmeans"], ["index", "build"]):
        for option in re.findall(r"--([a-z-]+)", kith.ok(*command, "--help").out.split("Example:")[0]):
            assert re.search(rf"(--|-l ){option}\b", script), option


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_can_be_read_by_their_shell(kith, shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(kith.ok("completion", shell).out)
    checked = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0 and checked.stderr == ""


def test_another_shell(kith):
    assert "known are: bash, zsh, fish" in kith.fails(2, "completion", "csh")


def test_manual_page(kith):
    page = kith.ok("manual").out
    assert page.startswith(".TH KITH 1")
    for command in ("info", "head", "knn", "range", "kmeans", "index build", "index search"):
        assert f'.SS "kith {command}"' in page
    assert "\\fB\\-\\-out\\-ids\\fR" in page and "kith knn \\-\\-base" in page


def test_manual_page_is_set_without_warnings(kith):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=kith.ok("manual").out, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert "--out-distances" in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
