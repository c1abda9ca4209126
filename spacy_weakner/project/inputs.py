"""What a project is made from beside the files that its workflow names."""

from pathlib import Path
from typing import Optional

from ..files import write_text
from ..labeling.sources import read_sources
from ..runtime.hashes import hash_path


def stamp_inputs(path: Path, sources: Optional[Path], transformer: Optional[str]) -> None:
    """Write hashes of the files and pipelines that a declaration of sources names, and of the folder of a Transformer,
    to a file that workflows depend on: they note no change in what they do not name themselves."""
    declared = [] if sources is None else read_sources(sources)
    named = [*(str(path) for source in declared for path in (*source.files, source.path)), transformer]
    paths = {Path(name) for name in named if name}
    lines = [f"{hash_path(found)} {found}\n" for found in sorted(paths) if found.exists()]
    write_text(path, "".join(lines))
