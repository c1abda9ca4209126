"""All checks of files and settings before training."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from spacy.language import Language

from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import has_span_groups
from ..corpus.jsonl import MISALIGNED
from ..corpus.language import find_language
from ..errors import check_choice
from ..files import existing
from ..labeling.label import TERMS_SOURCE
from ..labeling.sources import TermSource
from ..pipelines import RULE, add_sentences
from .annotated import check_annotated, check_overlap, check_text
from .case import check_case
from .corpora import CheckedCorpus, read_annotated
from .findings import Finding, Findings
from .labels import Column, check_labels
from .language import check_language
from .matching import MatchedTexts
from .pieces import check_pieces
from .settings import check_configs, check_gpu, check_pipeline, check_size, check_transformer, model_folder
from .sources import check_sources
from .terms import check_terms
from .text import read_text, tell_size
from .tokens import check_misaligned, check_tokens

_ANNOTATED = ("gold", "dev", "test")
_TEXTS = 5_000  # texts in which matches of suspicious terms are counted


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


def check(
    *,
    text: Optional[Path] = None,
    terms: Optional[Path] = None,
    sources: Optional[Path] = None,
    gold: Optional[Path] = None,
    dev: Optional[Path] = None,
    test: Optional[Path] = None,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    size: Optional[str] = None,
    transformer: Optional[str] = None,
    gpu_id: int = -1,
    misaligned: str = "error",
    spans_key: Optional[str] = None,
    configs: Optional[Path] = None,
    columns: Tuple[int, int] = COLUMNS,
    sentences: str = RULE,
    abbreviations: str = "",
    **settings: Any,
) -> CheckReport:
    """Check files and settings before training, all at once, and compare their labels. Options that are not given are
    not checked; on the command line, an empty value or "null" counts as not given.

    text (Optional[Path]): Unlabeled text: .txt (one text per line), .jsonl, or a folder.
    terms (Optional[Path]): Term list: .csv .tsv .xlsx .jsonl .txt.
    sources (Optional[Path]): File that declares weak sources.
    gold (Optional[Path]): Annotated sentences to train with: .jsonl .conll .spacy.
    dev (Optional[Path]): Annotated sentences to choose models by.
    test (Optional[Path]): Annotated sentences for the final scores.
    lang, tokenizer: See `convert`.
    size (Optional[str]): Encoder: linear, linear-static, frozen, cnn, static, bilstm, transformer or gpu.
    transformer (Optional[str]): Folder or name of the Transformer.
    gpu_id (int): See `convert`.
    misaligned, spans_key, columns, sentences, abbreviations: See `convert`.
    configs (Optional[Path]): Folder of the project's configs, which must match these settings.
    **settings (Any): Settings of the term list, such as `term_label` and `term_columns`; see `TermSource`.
    RETURNS (CheckReport): What was found.
    RAISES (WeaknerError): If a setting of the check itself is out of range.
    """
    check_choice("misaligned", misaligned, MISALIGNED)
    findings = Findings()
    files = {"text": text, "terms": terms, "sources": sources, "gold": gold, "dev": dev, "test": test}
    given = {name: Path(path) for name, path in files.items() if path is not None}
    there = {name: path for name, path in given.items() if _exists(name, path, findings)}
    others = (configs, size, transformer, lang, tokenizer)
    if not given and gpu_id < 0 and all(value is None for value in others):
        findings.error("check", "There is nothing to check.", "Give files: --gold, --text, --terms, --sources, ...")
    with findings.guard("--lang, --tokenizer"):
        corpora = [path for name, path in there.items() if name not in ("terms", "sources")]
        lang, tokenizer = find_language(corpora, lang, tokenizer)
    lang = lang or "en"
    nlp = check_pipeline(lang, tokenizer, findings)
    with findings.guard("--sentences, --abbreviations"):
        add_sentences(nlp, (), sentences, abbreviations)
    check_size(size, transformer, findings)
    if configs is not None:
        check_configs(configs, lang, tokenizer, size, transformer, findings)
    check_gpu(gpu_id, size, findings)
    check_transformer(transformer, size, findings)
    raw = None
    if "text" in there:
        raw = read_text(there["text"], nlp, findings, columns=columns)
    annotated = _check_annotated(there, nlp, lang, misaligned, columns, spans_key, findings)
    found = [Column(c.name, c.where, c.labels(), is_part=bool(c.note)) for c in annotated]
    gold_sentences = [sentence for corpus in annotated if corpus.name == "gold" for sentence in corpus.sentences]
    if raw is not None:
        with findings.guard(raw.where):
            check_language(raw.texts, lang, raw.where, findings)
            check_text(raw.texts, raw.exact, gold_sentences, raw.where, findings)
            tell_size(raw, findings)
    case = {c.where: [s.text for s in c.sentences] for c in annotated}
    check_case({**case, **({} if raw is None else {raw.where: raw.texts})}, findings)
    longest = max([raw.longest if raw else 0, *(len(s.words) for c in annotated for s in c.sentences)])
    seen = MatchedTexts(nlp, longest, gold_sentences, [] if raw is None else raw.texts[:_TEXTS])
    if "terms" in there:
        where = f"--terms {there['terms']}"
        with findings.guard(where):
            source = TermSource(name=TERMS_SOURCE, path=str(there["terms"]), **settings)
            counts = check_terms(source, where, lang, seen, findings)
            found.append(Column("terms", where, counts, "term"))
    if "sources" in there:
        with findings.guard(f"--sources {there['sources']}"):
            found += check_sources(there["sources"], lang, seen, findings, there.get("text"))
    with findings.guard("labels"):
        check_labels(found, findings)
    if transformer is not None:
        texts = [*(s.text for c in annotated for s in c.sentences), *([] if raw is None else raw.texts)]
        check_pieces(model_folder(transformer), texts, f"--transformer {transformer}", findings)
    return CheckReport(findings.sorted(), found)


def _exists(name: str, path: Path, findings: Findings) -> bool:
    where = f"--{name} {path}"
    if path.exists():
        if path.is_dir() and name in ("terms", "sources"):
            findings.error(where, f"{path} is a folder, but --{name} needs a file.", "Give the path of a file.")
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
    there: Dict[str, Path],
    nlp: Language,
    lang: str,
    misaligned: str,
    columns: Tuple[int, int],
    spans_key: Optional[str],
    findings: Findings,
) -> List[CheckedCorpus]:
    corpora = []
    with findings.guard(f"--spans-key {spans_key}"):
        paths = [there[name] for name in _ANNOTATED if name in there]
        if spans_key is not None and paths and not any(map(has_span_groups, paths)):
            message = "None of gold, dev and test is a .spacy file or JSON of spaCy; other formats have no groups."
            findings.error(f"--spans-key {spans_key}", message, "Leave out this option.")
    for name in _ANNOTATED:
        if name not in there:
            continue
        corpus = read_annotated(name, there[name], nlp, findings, columns=columns, spans_key=spans_key)
        if corpus is None:
            continue
        corpora.append(corpus)
        with findings.guard(corpus.where):
            check_annotated(corpus, lang, findings)
            check_misaligned(corpus, misaligned, findings)
            if corpus is corpora[0]:  # the others are split in the same way
                check_tokens(corpus, nlp, findings)
            check_language([s.text for s in corpus.sentences], lang, corpus.where, findings)
    with findings.guard("gold, dev and test"):
        check_overlap(corpora, findings)
    return corpora
