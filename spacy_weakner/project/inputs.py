"""Hashes of the inputs of a project, by which a repeated run is recognized."""

import json
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence

from ..about import __title__
from ..code_version import code_version
from ..files import visible_files, write_text
from ..labeling.sources import TermSource, read_sources
from ..pipelines import SPLITTERS
from ..runtime.hashes import hash_model, hash_path, hash_settings, hash_text
from .layout import Corpora


def stamp_inputs(
    path: Path,
    sources: Optional[Path],
    transformer: Optional[str],
    sentences: Optional[str],
    corpora: Iterable[Path] = (),
) -> None:
    """Write hashes of the files and pipelines that a declaration of sources names, of the folder of a Transformer, of
    the pipeline that splits texts, and of the names of the files in folders of corpora. Workflows depend on the written
    file, since they do not notice changes in files that they do not name, or new names of files."""
    declared = [] if sources is None else read_sources(sources)
    found = [str(name) for source in declared for name in (*source.files, source.path)]
    named = {str(Path(name)) for name in found if name}
    if transformer and Path(transformer).exists():  # others are names on Hugging Face
        named.add(transformer)
    if sentences is not None and sentences not in SPLITTERS:
        named.add(sentences)
    lines = [f"{hash_model(name)} {name}\n" for name in sorted(named)]
    for folder in filter(Path.is_dir, corpora):
        names = [file_.relative_to(folder).as_posix() for file_ in visible_files(folder)]
        lines.append(f"{hash_text(json.dumps(names))} names in {folder}\n")
    write_text(path, f"# {__title__}\n" + "".join(lines))


def hash_inputs(corpora: Corpora, configs: Path, lists: Sequence[TermSource], **settings: Any) -> str:
    """Return a hash of everything that the result of `fit` depends on."""
    parts = (corpora.annotated, corpora.text, corpora.splits, corpora.labels, corpora.gold_labeled)
    paths = (*parts, corpora.weak, corpora.vectors, corpora.pieces, configs)
    contents = [hash_path(path) if path.exists() else None for path in paths]
    declared = [term_list.settings() for term_list in lists]
    return hash_settings({"contents": contents, "lists": declared, "code": code_version(), **settings})
