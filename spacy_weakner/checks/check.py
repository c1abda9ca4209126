"""Everything that can be wrong with files and settings, found before anything is trained."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language

from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import has_span_groups
from ..corpus.jsonl import MISALIGNED
from ..corpus.language import find_language
from ..errors import check_choice
from ..files import existing
from ..labeling.label import TERMS_SOURCE
from ..labeling.sources import TermSource
from .annotated import check_annotated, check_overlap, check_text
from .case import check_case
from .corpora import CheckedCorpus, read_annotated
from .findings import Finding, Findings
from .labels import Column, check_labels
from .language import check_language
from .matching import Seen
from .settings import check_configs, check_gpu, check_pipeline, check_size, check_transformer
from .sources import check_sources
from .terms import check_terms
from .text import read_text, tell_size
from .tokens import check_misaligned, check_tokens

_ANNOTATED = ("gold", "dev", "test")
_TEXTS = 5_000  # in which matches of suspicious terms are counted


@dataclass(frozen=True)
class CheckedFiles:
    """The files to check; each may be left out.

    text (Optional[Path]): Text without labels: .txt (one text a line), .jsonl, or a folder.
    terms (Optional[Path]): Term list: .csv .tsv .jsonl .txt.
    sources (Optional[Path]): File that declares weak sources.
    gold (Optional[Path]): Annotated sentences to train with: .jsonl .conll .spacy.
    dev (Optional[Path]): Annotated sentences to choose models by.
    test (Optional[Path]): Annotated sentences for the final scores.
    """

    text: Optional[Path] = None
    terms: Optional[Path] = None
    sources: Optional[Path] = None
    gold: Optional[Path] = None
    dev: Optional[Path] = None
    test: Optional[Path] = None


@dataclass(frozen=True)
class CheckedSettings:
    """The settings to check: those of the project, or of the commands that read the files.

    lang, tokenizer: See `convert`.
    size (Optional[str]): Encoder: linear, linear-static, cnn, static, bilstm, transformer or gpu.
    transformer (Optional[str]): Folder or name of the Transformer.
    gpu_id (int): See `convert`.
    labels (Sequence[str]): Label to learn; none: those of the gold.
    term_label (Optional[str]): Label of terms that come without one.
    misaligned, spans_key, columns: See `convert`.
    configs (Optional[Path]): Folder of the project's configs, which have to fit these settings.
    """

    lang: Optional[str] = None
    tokenizer: Optional[str] = None
    size: Optional[str] = None
    transformer: Optional[str] = None
    gpu_id: int = -1
    labels: Sequence[str] = ()
    term_label: Optional[str] = None
    misaligned: str = "error"
    spans_key: Optional[str] = None
    configs: Optional[Path] = None
    columns: Tuple[int, int] = COLUMNS


class CheckReport(NamedTuple):
    """The findings, errors first, and the labels of each file."""

    findings: List[Finding]
    labels: List[Column]

    @property
    def errors(self) -> int:
        return sum(finding.level == "error" for finding in self.findings)

    def to_json(self) -> Dict[str, Any]:
        return {
            "findings": [finding._asdict() for finding in self.findings],
            "labels": {column.name: dict(column.counts) for column in self.labels},
        }


def examine(files: CheckedFiles, settings: CheckedSettings = CheckedSettings()) -> CheckReport:
    """Check files and settings, and compare their labels.

    RAISES (WeaknerError): If a setting of the check itself is out of range.
    """
    check_choice("misaligned", settings.misaligned, MISALIGNED)
    findings = Findings()
    given = {name: Path(path) for name, path in vars(files).items() if path is not None}
    there = {name: path for name, path in given.items() if _exists(name, path, findings)}
    with findings.guard("--lang, --tokenizer"):
        lang, tokenizer = find_language(
            [path for name, path in there.items() if name not in ("terms", "sources")],
            settings.lang,
            settings.tokenizer,
        )
        settings = replace(settings, lang=lang, tokenizer=tokenizer)
    lang = settings.lang or "en"
    nlp = check_pipeline(lang, settings.tokenizer, findings)
    check_size(settings.size, findings)
    if settings.configs is not None:
        check_configs(settings.configs, lang, settings.tokenizer, settings.size, settings.transformer, findings)
    check_gpu(settings.gpu_id, settings.size, findings)
    check_transformer(settings.transformer, settings.size, findings)
    text = None
    if "text" in there:
        text = read_text(there["text"], nlp, findings, columns=settings.columns)
    corpora = _check_annotated(there, nlp, settings, findings)
    columns = [Column(c.name, c.where, c.labels(), is_part=bool(c.note)) for c in corpora]
    gold = [sentence for corpus in corpora if corpus.name == "gold" for sentence in corpus.sentences]
    if text is not None:
        with findings.guard(text.where):
            check_language(text.texts, lang, text.where, findings)
            check_text(text.texts, gold, text.where, findings)
            tell_size(text, findings)
    case = {c.where: [s.text for s in c.sentences] for c in corpora}
    check_case({**case, **({} if text is None else {text.where: text.texts})}, findings)
    longest = max([text.longest if text else 0, *(len(s.words) for c in corpora for s in c.sentences)])
    seen = Seen(nlp, longest, gold, [] if text is None else text.texts[:_TEXTS])
    if "terms" in there:
        where = f"--terms {there['terms']}"
        with findings.guard(where):
            source = TermSource(name=TERMS_SOURCE, path=str(there["terms"]), term_label=settings.term_label)
            counts = check_terms(source, where, lang, seen, findings)
            columns.append(Column("terms", where, counts, "term"))
    if "sources" in there:
        with findings.guard(f"--sources {there['sources']}"):
            columns += check_sources(there["sources"], lang, seen, findings, there.get("text"))
    with findings.guard("labels"):
        check_labels(columns, settings.labels, findings)
    return CheckReport(findings.sorted(), columns)


def _exists(name: str, path: Path, findings: Findings) -> bool:
    where = f"--{name} {path}"
    if path.exists():
        if path.is_dir() and name in ("terms", "sources"):
            findings.error(where, f"{path} is a folder, but --{name} needs a file.", "Give the file itself.")
            return False
        return True
    with findings.guard(where):
        existing(path, f"it was given as --{name}{_near(path)}")
    return False


def _near(path: Path) -> str:
    from difflib import get_close_matches

    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    if near:
        return f"; did you mean '{path.with_name(near[0])}'?"
    return "" if path.parent.is_dir() else f"; there is no folder {path.parent} either"


def _check_annotated(
    there: Dict[str, Path], nlp: Language, settings: CheckedSettings, findings: Findings
) -> List[CheckedCorpus]:
    corpora = []
    with findings.guard(f"--spans-key {settings.spans_key}"):
        paths = [there[name] for name in _ANNOTATED if name in there]
        if settings.spans_key is not None and paths and not any(map(has_span_groups, paths)):
            message = "None of gold, dev and test is a .spacy file, and others have no span groups."
            findings.error(f"--spans-key {settings.spans_key}", message, "Leave it out.")
    for name in _ANNOTATED:
        if name not in there:
            continue
        columns, key = settings.columns, settings.spans_key
        corpus = read_annotated(name, there[name], nlp, findings, columns=columns, spans_key=key)
        if corpus is None:
            continue
        corpora.append(corpus)
        with findings.guard(corpus.where):
            check_annotated(corpus, findings)
            check_misaligned(corpus, settings.misaligned, findings)
            if corpus is corpora[0]:  # the others are split in the same way
                check_tokens(corpus, nlp, findings)
            check_language([s.text for s in corpus.sentences], settings.lang or "en", corpus.where, findings)
    with findings.guard("gold, dev and test"):
        check_overlap(corpora, findings)
    return corpora
