"""Inputs of a project that its workflow does not name."""

from pathlib import Path
from typing import Optional

from ..files import write_text
from ..labeling.sources import read_sources
from ..runtime.hashes import hash_model


def stamp_inputs(path: Path, sources: Optional[Path], transformer: Optional[str]) -> None:
    """Write hashes of the files and pipelines that a declaration of sources names, and of the folder of a Transformer.
    Workflows depend on the written file, since they do not notice changes in files that they do not name."""
    declared = [] if sources is None else read_sources(sources)
    found = [str(name) for source in declared for name in (*source.files, source.path)]
    named = {str(Path(name)) for name in found if name}
    if transformer and Path(transformer).exists():  # others are names on Hugging Face
        named.add(transformer)
    write_text(path, "".join(f"{hash_model(name)} {name}\n" for name in sorted(named)))
