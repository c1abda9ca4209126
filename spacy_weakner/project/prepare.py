"""Makes the corpora of a project: gold, dev, test and text."""

import json
from pathlib import Path
from typing import Any, Dict, Final, List, Mapping, Optional, Tuple

from spacy.tokens import Doc

from ..conversion.convert import ConvertReport, convert, converted_docs
from ..corpus.conll import COLUMNS
from ..corpus.docbin import found_files, receipt_path, write_docs
from ..corpus.documents import LONGEST, document_of, group_documents
from ..corpus.formats.reading import Reading, has_span_groups, input_files
from ..corpus.gold import missing_tokens
from ..corpus.jsonl import MISALIGNED
from ..corpus.language import corpus_language, record_language
from ..corpus.sentences import INNER_END, SHORT, is_divided_name, sentence_key
from ..corpus.weak import get_id
from ..errors import Errors, WeaknerError, check_choice
from ..files import check_output, existing, parse_json, reading_made, write_text
from ..pipelines import NO_SENTENCES
from ..progress import Progress
from ..runs.groups import without_copies
from ..runtime.lock import holding
from ..scores import Strict
from .layout import Corpora
from .lists import term_sources
from .rules import ChosenBy
from .splitting import split_gold

DEV: Final = "dev"
CROSS_VALIDATION: Final = "cross-validation"
NOTHING: Final = "nothing"
_CHECK = "Check that its annotations are under 'ents' or 'spans'"


class Preparation(Strict):
    """The numbers of sentences of a project."""

    gold: int = 0
    dev: int = 0
    test: int = 0
    text: int = 0
    chosen_by: ChosenBy
    notes: List[str]  # what was split off, and what was not


@holding("output")
def prepare(
    output: Path,
    *,
    text: Optional[Path] = None,
    gold: Optional[Path] = None,
    dev: Optional[Path] = None,
    test: Optional[Path] = None,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    sentences: Optional[str] = None,
    abbreviations: Optional[str] = None,
    misaligned: str = "error",
    columns: Tuple[int, int] = COLUMNS,
    spans_key: Optional[str] = None,
    terms: Optional[Path] = None,
    sources: Optional[Path] = None,
    seed: int = 0,
    progress: bool = False,
) -> Preparation:
    """Convert the given files; split dev and test off the gold if they are not given.

    With fewer than 2,000 gold sentences, no dev is split off, and candidates are compared by cross-validation of the
    gold; with fewer than 400, no test is split off.

    output (Path): Folder of the corpora; those of an earlier run are replaced.
    text (Optional[Path]): Text without labels.
    gold, dev, test (Optional[Path]): Complete annotations. Sentences with missing tokens are left out, except in the
        gold if a dev is given. If the gold has a sentence several times, annotated differently, the last one counts.
        Sentences of dev and test are left out of the gold.
    lang, tokenizer, sentences, abbreviations, misaligned, columns: See `convert`.
    spans_key (Optional[str]): Span group of gold, dev and test that is read as the gold, if they are `.spacy` files.
    terms (Optional[Path]): Term list: as in pipelines, no sentence ends inside a term ("Yahoo! Inc."), or an entity of
        the gold.
    sources (Optional[Path]): File that declares the sources, instead of a term list.
    seed (int): Seed of the split.
    progress (bool): Show progress bars if the output is a terminal.
    RETURNS (Preparation): Sizes of the corpora.
    RAISES (WeaknerError): If there is neither gold nor text, a file is malformed, or gold, dev or test is given and has
        no entity.
    """
    if gold is None and text is None:
        raise WeaknerError(Errors.WK680.format(where=""))
    corpora = Corpora(Path(output))
    inputs = [Path(path) for path in (gold, text, dev, test) if path is not None]
    language = corpus_language(inputs[0], lang, tokenizer, sentences, abbreviations)
    check_output(inputs, [*_outputs(corpora), corpora.text])
    check_choice("misaligned", misaligned, MISALIGNED)
    for given_path in inputs:
        input_files(given_path)  # raises an error if there are none
        corpus_language(given_path, *language)  # raises an error if another one is recorded
    _forget(corpora, text is None)
    counts: Dict[str, int] = {}
    notes: List[str] = []
    listed = (term.text for source in term_sources(terms, sources) for term in source.read())
    names = [name for name in listed if INNER_END.search(name)]
    splits = language.sentences != NO_SENTENCES
    held_out: Dict[str, List[Doc]] = {}
    given = (("gold", gold, corpora.gold), ("dev", dev, corpora.dev), ("test", test, corpora.test))
    for name, path, target in given:  # gold first, since it has names
        if path is None:
            continue
        key = spans_key if spans_key and has_span_groups(path) else None
        reading = Reading(splits, misaligned=misaligned, columns=columns, spans_key=key, documents=True)
        report = ConvertReport()
        read = converted_docs(path, language, reading, report, names=names)
        docs = list(Progress(read, desc=f"convert {Path(path).name}", unit="doc", enabled=progress))
        notes += [f"{name}: {remark}" for remark in (*report.remarks, *report.suspicion)]
        if name == "gold":
            _note_divided(docs, notes)
            gold_docs = _last(docs, notes)
            names += [ent.text for doc in gold_docs for ent in doc.ents if is_divided_name(ent)]
            continue
        docs = _complete(docs, path, name, True, notes)
        if not any(doc.ents for doc in docs):
            # Without entities, the scores of all candidates are equal.
            use = "compare candidates" if name == "dev" else "measure the result"
            what = f"entity in its {report.docs} sentences, so it cannot be used to {use}"
            cure = f"{_CHECK}, give other sentences for --{name}, or leave it out"
            raise WeaknerError(Errors.WK407.format(path=path, what=what, cure=cure))
        counts[name] = write_docs(target, docs)
        record_language(target, language)
        held_out[name] = docs
    if text is not None:
        options: Dict[str, Any] = {**language._asdict(), "columns": columns, "documents": True, "names": names}
        report = convert(text, corpora.text, misaligned="drop", overwrite=True, progress=progress, **options)
        counts["text"] = report.docs
        notes += [f"text: {remark}" for remark in report.remarks]
    if gold is not None:
        annotated = _apart(_complete(gold_docs, gold, "gold", dev is None, notes), gold, held_out, notes)
        if not any(doc.ents for doc in annotated):
            what = f"entity in its {len(gold_docs)} sentences"
            raise WeaknerError(Errors.WK407.format(path=gold, what=what, cure=_CHECK))
        complete = [doc for doc in annotated if not missing_tokens(doc)]
        split = split_gold(complete, dev=dev is None, test=test is None, seed=seed)
        notes += split.notes
        trained_on = [*split.gold, *(doc for doc in annotated if missing_tokens(doc))]
        for path, part in ((corpora.gold, trained_on), (corpora.dev, split.dev), (corpora.test, split.test)):
            if part:
                counts[path.stem] = write_docs(path, part)
                record_language(path, language)
    chosen_by: ChosenBy = DEV if counts.get("dev") else CROSS_VALIDATION if gold is not None else NOTHING
    result = Preparation(**counts, chosen_by=chosen_by, notes=notes)
    write_text(corpora.splits, json.dumps(result.model_dump(), indent=2) + "\n")
    return result


def _forget(corpora: Corpora, no_text: bool) -> None:
    """Remove the corpora of an earlier run, and the files that were made from them."""
    for path in _outputs(corpora):
        path.unlink(missing_ok=True)
    for path in (corpora.gold, corpora.dev, corpora.test):
        record_language(path, None)
    # Only the corpora: a folder of this name may contain other files.
    for path in found_files(corpora.text) if no_text else ():
        path.unlink()


def _outputs(corpora: Corpora) -> List[Path]:
    """Return the files that `_forget` removes."""
    annotated = [corpora.gold, corpora.dev, corpora.test]
    made = [*annotated, corpora.gold_labeled]
    return [corpora.splits, corpora.labels, *made, *map(receipt_path, made)]


def read_preparation(corpora: Corpora) -> Preparation:
    """Read the output of `prepare`."""
    path = existing(corpora.splits, "or create it with 'spacy weakner prepare'")
    with reading_made(path, "prepare"):
        return Preparation.model_validate(parse_json(path.read_bytes()))


def _last(docs: List[Doc], notes: List[str]) -> List[Doc]:
    """Leave out sentences that are annotated again, differently: the last annotation counts. Short sentences, which
    occur in several documents by chance, are the same only if their ids are."""

    def annotation(doc: Doc) -> List[Tuple[int, str, str]]:
        """Return the entities independently of white space and tokens."""
        return [(len(sentence_key(doc[: ent.start].text)), sentence_key(ent.text), ent.label_) for ent in doc.ents]

    last: Dict[Tuple[str, Optional[str]], List[Tuple[int, str, str]]] = {}
    kept: List[Doc] = []
    for doc in reversed(docs):
        key = sentence_key(doc.text), get_id(doc) if len(doc) <= SHORT else ""
        n_missing = len(missing_tokens(doc))
        if None in key or key not in last or n_missing == len(doc) or annotation(doc) == last[key]:
            kept.append(doc)
        if not n_missing:
            last.setdefault(key, annotation(doc))
    if len(kept) < len(docs):
        notes.append(
            f"gold: sentences that are annotated again later, with other entities, left out: {len(docs) - len(kept)}"
        )
    return kept[::-1]


def _note_divided(docs: List[Doc], notes: List[str]) -> None:
    """Note how many sentences are annotated again, but are now parts of longer ones of their document."""
    earlier: Dict[str, List[str]] = {}
    n = 0
    for group in group_documents(docs):
        if (name := document_of(get_id(group[0]))) is None:
            continue
        known, keys = earlier.setdefault(name, []), [sentence_key(doc.text) for doc in group]
        if 0 < len(known) <= LONGEST:
            again = [key for key, doc in zip(keys, group, strict=True) if len(doc) > SHORT and not missing_tokens(doc)]
            n += sum(key not in known and any(key in other for other in known) for key in again)
        known += keys
    if n:
        notes.append(
            "gold: sentences that are annotated again, but are now parts of longer ones, so both annotations count "
            f"(were 'sentences' or 'abbreviations' changed?): {n}"
        )


def _complete(docs: List[Doc], path: Path, name: str, compared: bool, notes: List[str]) -> List[Doc]:
    """Return the annotated sentences or, if candidates are compared on them, only those without missing tokens."""
    kept, unknown, partly = [], 0, 0
    for doc in filter(len, docs):
        missing = len(missing_tokens(doc))
        if missing == len(doc):
            unknown += 1
        elif missing and compared:
            partly += 1
        else:
            kept.append(doc)
    for n, what in ((unknown, "without any annotation"), (partly, "with some tokens without annotation")):
        if n:
            notes.append(f"{name}: sentences {what}, left out: {n}")
    if partly and not kept:
        what = f"sentence that is completely annotated: {partly} have tokens without annotation"
        cure = "Annotate some sentences completely (for spans that do not fit the tokens, see 'misaligned')"
        raise WeaknerError(Errors.WK407.format(path=path, what=what, cure=cure))
    return kept


def _apart(docs: List[Doc], path: Path, held_out: Mapping[str, List[Doc]], notes: List[str]) -> List[Doc]:
    """Leave sentences out of the gold that dev or test hold out, so that their scores are those of new sentences."""
    for other, sentences in held_out.items():
        kept = without_copies(docs, sentences)
        if any(doc.ents for doc in docs) and not any(doc.ents for doc in kept):
            what, cure = f"entity in sentences that are not also in {other}", f"Give other sentences for --{other}"
            raise WeaknerError(Errors.WK407.format(path=path, what=what, cure=cure))
        if len(kept) < len(docs):
            notes.append(f"gold: sentences that are also in {other}, left out: {len(docs) - len(kept)}")
        docs = kept
    return docs
