"""The extension that writes the reference, which lies beside the site and not in the package."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("not in a source tree", allow_module_level=True)
sys.path.insert(0, str(DOCS / "_ext"))
