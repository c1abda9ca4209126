"""Makes a corpus of the links in wikis and web pages: a first task for the recognition of entities (CoFEE)."""

from itertools import chain, islice
from pathlib import Path
from typing import Iterable, Iterator, Optional, Sequence

from spacy.tokens import Doc

from ..annotations.corpus import SUFFIX, write_docs
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from ..formats.reading import input_files
from ..pipelines import blank_pipeline
from ..progress import Progress
from .anchoring import hypertext, wikitext
from .anchoring.limits import MAX_PAGE, MAX_SECONDS, PageReader
from .anchoring.pages import DUMP, HTML, SUFFIXES, WIKITEXT, page_format, read_pages
from .anchoring.sentences import AnchorsReport, Sentences
from .runtime.lock import holding
from .runtime.output import SHARD_SIZE, check_there, is_folder, write_shards

LABEL = "Entity"
MIN_ANCHORS = 4
MAX_LENGTH = 250


@holding("output_path")
def anchors(
    inputs: Sequence[Path],
    output_path: Path,
    *,
    format: Optional[str] = None,
    label: str = LABEL,
    min_anchors: int = MIN_ANCHORS,
    max_length: int = MAX_LENGTH,
    max_page: int = MAX_PAGE,
    max_seconds: float = MAX_SECONDS,
    limit: Optional[int] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    shard_size: int = SHARD_SIZE,
    overwrite: bool = False,
    progress: bool = False,
) -> AnchorsReport:
    """Write the sentences of wikis and web pages with their links to articles as entities of one label (Xue et al.
    2020, Section 4.1): in `doc.ents`, where all other tokens are "O", and in the span group "weak:anchors". The Docs
    are marked as weak. The output is written whole or not at all.

    Templates, tables, references and comments are left out; headings and list items end a sentence. Of HTML only
    paragraphs (`<p>`) are read. Links to files, categories and talk, to other wikis and the web count as text, if they
    show any. Of equal sentences the first one is written.

    inputs (Sequence[Path]): Files, or folders of them: XML exports of MediaWiki (`.xml`), wikitext (`.wiki`, `.txt`)
        and HTML (`.html`, `.htm`), one page each, and `.jsonl` with "wikitext" or "html" in each row; all also as `.gz`
        or `.bz2`.
    output_path (Path): A `.spacy` file, which is made in memory, or a folder (no suffix) that takes `.spacy` shards.
    format (Optional[str]): Format of the input: "dump", "wikitext", "html", "jsonl". None: the suffixes tell.
    label (str): The label.
    min_anchors (int): Leave out sentences with fewer anchors. (In the paper: with three or fewer.)
    max_length (int): Leave out sentences with more tokens.
    max_page (int): Skip pages with more characters.
    max_seconds (float): Skip pages of wikitext that take the parser more CPU seconds. (The parser of HTML takes time
        that is linear in a page's length.) Pages that are nested too deeply are skipped, too; the report counts all.
    limit (Optional[int]): Stop after so many sentences. None: read everything.
    lang (str): Language of the text.
    tokenizer (Optional[str]): Name of a registered tokenizer; None is the language's own.
    shard_size (int): Docs per shard, if the output is a folder.
    overwrite (bool): Replace an output that exists: the file, or all shards in the folder.
    progress (bool): Show how far it has come.
    RETURNS (AnchorsReport): What was made.
    RAISES (WeaknerError): For malformed or missing input, for unusable settings, if a package is missing or no sentence
        is left, and if the output would overwrite the input, or anything at all without `overwrite`.
    """
    for setting, value, low in (
        ("min_anchors", min_anchors, 0),
        ("max_length", max_length, 1),
        ("max_page", max_page, 1),
    ):
        check_range(setting, value, low, None)
    check_range("shard_size", shard_size, 1, None)
    check_range("max_seconds", max_seconds, 0.01, 1e6)
    if limit is not None:
        check_range("limit", limit, 1, None)
    if not label.strip():
        raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a name"))
    paths, output = [Path(path) for path in inputs], Path(output_path)
    if output.is_file() if is_folder(output) else output.suffix != SUFFIX:
        expected = f"a {SUFFIX} file, or a folder (a name without suffix)"
        raise WeaknerError(Errors.WK305.format(path=output, expected=expected))
    found = [file_ for path in paths for file_ in input_files(path, format, suffixes=SUFFIXES, tell=page_format)]
    files = list(dict.fromkeys(found))
    check_output([*paths, *(file_ for file_, _ in files)], [output])
    check_there(output, overwrite)
    for _, format_ in files:
        if format_ in (DUMP, WIKITEXT):
            wikitext.require_parser()
        elif format_ == HTML:
            hypertext.require_parser()
    report = AnchorsReport()
    pages = chain.from_iterable(read_pages(file_, format_, report, max_page) for file_, format_ in files)
    with PageReader(max_page, max_seconds) as reader:
        sentences = Sentences(blank_pipeline(lang, tokenizer), reader, label, min_anchors, max_length, report)
        docs = _checked(islice(sentences.of_pages(pages), limit), paths, report)
        docs = iter(Progress(docs, desc=f"anchors {output.name}", unit="doc", enabled=progress))
        if is_folder(output):
            report.files = write_shards(docs, output, shard_size)
        else:
            write_docs(output, docs)
    return report


def _checked(docs: Iterable[Doc], paths: Sequence[Path], report: AnchorsReport) -> Iterator[Doc]:
    yield from docs
    # Raised before the writers end, so that no empty file is left.
    if not report.docs:
        names = ", ".join(map(str, paths)) or "nothing"
        raise WeaknerError(Errors.WK441.format(path=names, pages=report.pages, few=report.few, long=report.long))
