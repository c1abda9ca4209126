"""The site is built without a warning, and what is broken is one."""

import re
import shutil
import subprocess
import sys

import pytest

from .reference import DOCS, ROOT

pytest.importorskip("sphinx")
pytestmark = pytest.mark.docs
BROKEN = ["[a](gone.md)", "[a](b.md#gone)", "[a](#gone)", "![a](gone.svg)", "[a](../gone.py)", "```{factory} gone\n```"]


def build(source, output):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(output)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)


def test_the_site_has_no_warning(tmp_path):
    result = build(DOCS, tmp_path / "site")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "site" / "reference" / "errors.html").read_text(encoding="utf-8")
    assert 'id="wk001"' in page


def test_what_is_broken_is_an_error(tmp_path):
    source = tmp_path / "docs"
    shutil.copytree(DOCS / "_ext", source / "_ext")
    shutil.copy(DOCS / "conf.py", source)
    (source / "b.md").write_text("---\norphan: true\n---\n# B\n")
    (source / "index.md").write_text("# A\n\n[fine](b.md#b)\n\n" + "\n\n".join(BROKEN) + "\n")
    result = build(source, tmp_path / "site")
    lines = [int(line) for line in re.findall(r"index\.md:(\d+): (?:WARNING|ERROR)", result.stderr)]
    assert result.returncode == 1 and sorted(lines) == [5 + 2 * i for i in range(len(BROKEN))], result.stderr
