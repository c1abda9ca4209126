"""The site is built without a warning, and what is broken is one."""

import shutil
import subprocess
import sys

import pytest

from .reference import DOCS, ROOT

pytest.importorskip("sphinx")
pytestmark = pytest.mark.docs


def build(source, output):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(output)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)


def test_the_site_has_no_warning(tmp_path):
    result = build(DOCS, tmp_path / "site")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "site" / "reference" / "errors.html").read_text(encoding="utf-8")
    assert 'id="wk001"' in page


@pytest.mark.parametrize(
    "link",
    ["[a](gone.md)", "[a](b.md#gone)", "[a](#gone)", "![a](gone.svg)", "[a](../gone.py)", "```{factory} gone\n```"],
)
def test_what_is_broken_is_an_error(tmp_path, link):
    source = tmp_path / "docs"
    shutil.copytree(DOCS / "_ext", source / "_ext")
    shutil.copy(DOCS / "conf.py", source)
    (source / "b.md").write_text("---\norphan: true\n---\n# B\n")
    (source / "index.md").write_text("# A\n\n[fine](b.md#b)\n")
    assert build(source, tmp_path / "fine").returncode == 0
    (source / "index.md").write_text(f"# A\n\n{link}\n")
    result = build(source, tmp_path / "broken")
    assert result.returncode != 0 and "index.md:3" in result.stderr.replace("\n", " ")
