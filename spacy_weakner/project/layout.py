"""Names of the files in a project's folders, which one command writes and another reads."""

import json
from pathlib import Path
from typing import Any, Mapping

from ..corpus.docbin import found_files
from ..files import parse_json, reading_made


class Corpora:
    """The files in the folder of a project's corpora."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # All gold: its sentences are removed from the text.
        self.annotated = folder / "annotated"
        self.gold = self.annotated / "gold.spacy"
        self.dev = self.annotated / "dev.spacy"
        self.test = self.annotated / "test.spacy"
        self.text = folder / "text"
        # Sizes of all these corpora, from `prepare`.
        self.splits = folder / "splits.json"
        # Scores of the weak labels, from `analyze --worst-terms`.
        self.labels = folder / "labels.json"
        # The gold together with weak labels; the text with aggregated labels, in which all other tokens are missing.
        self.gold_labeled = folder / "gold-labeled.spacy"
        self.weak = folder / "weak"
        # Vectors of the words of the text, for linear heads.
        self.vectors = folder / "vectors"
        # Subword vectors, for the size "linear-static".
        self.pieces = folder / "pieces"


def has_docs(path: Path) -> bool:
    """Return True if the path is a `.spacy` file, or a folder that contains some, even if it is incomplete."""
    return bool(found_files(path)) if path.is_dir() else path.exists()


def has_vectors(path: Path) -> bool:
    """Return True if there is a pipeline with word vectors. A text without frequent words yields none."""
    meta = path / "meta.json"
    if not meta.exists():
        return False
    with reading_made(meta, "encoder vectors"):
        return int(parse_json(meta.read_bytes())["vectors"]["vectors"]) > 0


def render_template(template: str, values: Mapping[str, Any]) -> str:
    """Render the template of a file in a project or package."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    # jinja2's own filter escapes for HTML.
    environment.filters["tojson"] = _to_json
    # In a config, a single dollar sign begins a variable.
    environment.filters["setting"] = lambda value: _to_json(value).replace("$", "$$")
    return environment.get_template(template).render(**values)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
