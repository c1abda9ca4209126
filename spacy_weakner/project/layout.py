"""Names of the files in a project's folders: what one command writes and another reads."""

import json
from pathlib import Path
from typing import Any, Mapping

from ..corpus.docbin import corpus_files
from ..errors import WeaknerError
from ..files import parse_json, reading_made

# Names of packages.
IMPORTABLE = "letters from a to z, digits and underscores, with a letter first"


class Corpora:
    """The folder of a project's corpora."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # All gold: no text may hold its sentences.
        self.annotated = folder / "annotated"
        self.gold = self.annotated / "gold.spacy"
        self.dev = self.annotated / "dev.spacy"
        self.test = self.annotated / "test.spacy"
        self.text = folder / "text"
        # Sizes of all of these, from `prepare`.
        self.splits = folder / "splits.json"
        # Scores of the weak labels, from `analyze --tune-terms`.
        self.labels = folder / "labels.json"
        # The gold with weak labels beside it; the text with aggregated ones, all other tokens being missing.
        self.gold_labeled = folder / "gold-labeled.spacy"
        self.weak = folder / "weak"
        # Vectors of the words of the text, for the size "linear".
        self.vectors = folder / "vectors"
        # Subword vectors, for the size "linear-static".
        self.pieces = folder / "pieces"


def has_docs(path: Path) -> bool:
    """True if there is a `.spacy` file, or a folder with some."""
    try:
        return path.exists() and bool(corpus_files(path))
    except WeaknerError:
        return False


def has_vectors(path: Path) -> bool:
    """True if there is a pipeline with word vectors: of a text without frequent words it has none."""
    meta = path / "meta.json"
    if not meta.exists():
        return False
    with reading_made(meta, "encoder vectors"):
        return int(parse_json(meta.read_bytes())["vectors"]["vectors"]) > 0


def render(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a template of a file in a project or package."""
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
    # In a config, one dollar is the begin of a variable.
    environment.filters["setting"] = lambda value: _to_json(value).replace("$", "$$")
    return environment.get_template(template).render(**values)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
