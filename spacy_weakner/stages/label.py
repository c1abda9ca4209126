"""Lets a weak source label a corpus: a term list, or any pipeline that finds entities."""

from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Sequence, Set, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.weak import doc_entities, group_entities, set_group, weak_group
from ..errors import Errors, WeaknerError
from ..files import existing
from .formats import read_corpus
from .hashes import hash_path
from .pipelines import blank_pipeline, load_pipeline
from .shards import run_shards

Labeller = Callable[[Iterable[Doc]], Iterable[Doc]]


class LabelReport(NamedTuple):
    """What was labelled.

    docs (int): Docs written.
    excluded (int): Docs left out because an excluded corpus holds the same sentence.
    unmatched (int): Docs without a match; they are written too, unless `only_matched` is set.
    spans (Dict[str, int]): Spans per label.
    skipped (int): Shards that were finished already.
    """

    docs: int
    excluded: int
    unmatched: int
    spans: Dict[str, int]
    skipped: int


def label(
    input_path: Path,
    output_path: Path,
    *,
    terms: Optional[Path] = None,
    pipeline: Optional[Union[Path, str]] = None,
    source: str = "gazetteer",
    attr: str = "LOWER",
    acronym_length: int = 5,
    term_label: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    exclude: Sequence[Path] = (),
    only_matched: bool = False,
    progress: bool = False,
) -> LabelReport:
    """Write the span group `weak:<source>` to every Doc of a corpus. Other groups and `doc.ents` stay as
    they are.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    terms (Optional[Path]): A term list, looked up by a `gazetteer_ruler`.
    pipeline (Optional[Union[Path, str]]): Or a pipeline: its folder or name. It gets the bare tokens of each
        Doc.
    source (str): Name of the source.
    attr (str): Token attribute that terms are compared by.
    acronym_length (int): Terms up to this length with inner upper case must match in exact case.
    term_label (Optional[str]): Label of terms that come without one.
    lang (str): Language of the text; for terms.
    tokenizer (Optional[str]): Name of the registered tokenizer that splits the terms; should be that of the
        corpus.
    exclude (Sequence[Path]): Corpora in any format, such as dev and test, whose sentences are to be left out.
        Sentences are equal if they differ only in case and white space.
    only_matched (bool): Leave out Docs without a match.
    progress (bool): Show a bar, if the output is a terminal.
    RETURNS (LabelReport): What was labelled.
    RAISES (WeaknerError): For malformed, empty or missing input, and for unusable settings.
    """
    if (terms is None) == (pipeline is None):
        raise WeaknerError(Errors.WK303)
    if not source:
        raise WeaknerError(Errors.WK005.format(setting="source", value="''", expected="a name"))
    settings: Dict[str, Any] = {"stage": "label", "source": source, "only_matched": only_matched}
    settings["exclude"] = [hash_path(existing(Path(path))) for path in exclude]
    if terms is not None:
        settings["terms"] = hash_path(existing(Path(terms)))
        settings.update(attr=attr, acronym_length=acronym_length, term_label=term_label)
        settings.update(lang=lang, tokenizer=tokenizer)
        nlp = blank_pipeline(lang, tokenizer)
        labeller = make_term_labeller(nlp, Path(terms), source, attr, acronym_length, term_label)
    elif pipeline is not None:
        nlp = load_pipeline(pipeline)
        settings["pipeline"] = _pipeline_key(pipeline, nlp)
        labeller = make_pipeline_labeller(nlp, source)
    counts: Counter[str] = Counter()
    known = sentence_keys(exclude, nlp)
    group = weak_group(source)

    def keep(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            if known and sentence_key(doc.text) in known:
                counts["excluded"] += 1
            else:
                yield doc

    def transform(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in labeller(keep(docs)):
            found = group_entities(doc, group)
            counts["unmatched"] += not found
            if found or not only_matched:
                counts.update(f"label:{label_}" for _, _, label_ in found)
                yield doc

    report = run_shards(input_path, output_path, transform, settings, nlp.vocab, progress=progress, counts=counts)
    spans = {key[len("label:") :]: n for key, n in sorted(report.counts.items()) if key.startswith("label:")}
    return LabelReport(
        docs=report.docs_out,
        excluded=report.counts["excluded"],
        unmatched=report.counts["unmatched"],
        spans=spans,
        skipped=report.skipped,
    )


def make_term_labeller(
    nlp: Language, terms: Path, source: str, attr: str, acronym_length: int, term_label: Optional[str]
) -> Labeller:
    """Create a function that looks terms up. The component is added to the pipeline.

    nlp (Language): The pipeline; its tokenizer splits the terms.
    terms (Path): The term list.
    source, attr, acronym_length, term_label: See `label`.
    RETURNS (Labeller): Writes the span group to Docs.
    """
    from ..gazetteer_ruler.terms import make_term_list

    config = {"source": source, "attr": attr, "acronym_length": acronym_length}
    ruler: Any = nlp.add_pipe("gazetteer_ruler", config=config)
    ruler.initialize(lambda: [], nlp=nlp, terms=make_term_list(terms, label=term_label))

    def run(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            yield ruler(doc)

    return run


def make_pipeline_labeller(nlp: Language, source: str) -> Labeller:
    """Create a function that writes a pipeline's entities as a weak source.

    nlp (Language): The pipeline.
    source (str): Name of the source.
    RETURNS (Labeller): Writes the span group to Docs.
    """

    def run(docs: Iterable[Doc]) -> Iterator[Doc]:
        # A bare copy, since components respect entities that are there, so that gold would come back as a
        # prediction.
        pairs = ((_bare(doc), doc) for doc in docs)
        for predicted, doc in nlp.pipe(pairs, as_tuples=True):
            set_group(doc, weak_group(source), doc_entities(predicted))
            yield doc

    return run


def sentence_key(text: str) -> str:
    """What makes sentences equal: the text without case and white space."""
    return "".join(text.casefold().split())


def sentence_keys(paths: Iterable[Path], nlp: Language) -> Set[str]:
    """Keys of all sentences of some corpora. Of Docs with several sentences, both the whole and the parts
    count.

    paths (Iterable[Path]): The corpora, in any format.
    nlp (Language): Reads them.
    RETURNS (Set[str]): The keys.
    """
    keys = set()
    for path in paths:
        for doc in read_corpus(Path(path), nlp, misaligned="drop"):
            keys.add(sentence_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(sentence_key(sentence.text) for sentence in doc.sents)
    return keys


def _bare(doc: Doc) -> Doc:
    return Doc(doc.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])


def _pipeline_key(pipeline: Union[Path, str], nlp: Language) -> str:
    path = Path(pipeline)
    return hash_path(path) if path.exists() else f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
