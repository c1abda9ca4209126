"""Inputs of a project that its workflow does not name."""

from pathlib import Path
from typing import Optional

from ..files import write_text
from ..labeling.sources import read_sources
from ..runtime.hashes import hash_path


def stamp_inputs(path: Path, sources: Optional[Path], transformer: Optional[str]) -> None:
    """Write hashes of the files and pipelines that a declaration of sources names, and of the folder of a Transformer.
    Workflows depend on the written file, since they do not notice changes in files that they do not name."""
    declared = [] if sources is None else read_sources(sources)
    named = [*(str(path) for source in declared for path in (*source.files, source.path)), transformer]
    paths = {Path(name) for name in named if name}
    lines = [f"{hash_path(found)} {found}\n" for found in sorted(paths) if found.exists()]
    write_text(path, "".join(lines))
