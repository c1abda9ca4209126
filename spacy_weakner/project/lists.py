"""Makes pipelines of term lists, and handles their matches on gold."""

import random
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..abbreviations.expansion import expand_documents
from ..corpus.docbin import bare_copy, copy_with_groups, read_docs, write_docs
from ..corpus.language import CorpusLanguage
from ..corpus.weak import copy_group, doc_entities, group_entities, group_ids, keep_entities, set_group, weak_group
from ..evaluation.terms.collected import LeakedLabel, SourceLabel
from ..files import atomic_path, existing
from ..gazetteer_ruler.entities import annotate_entities
from ..labeling.label import TERMS_SOURCE
from ..labeling.sources import TermSource, read_sources
from ..pipelines import TOKENIZER, load_pipeline

RULER, ABBREVIATIONS, LINKER = "gazetteer_ruler", "abbreviations", "term_linker"
BINDING = "binding_terms"
# Component of a list's pipeline that adds short forms to its span group.
SHORT_FORMS = "short_forms"


class TermList(NamedTuple):
    """A term list with its pipeline."""

    source: str
    title: str  # name of the candidate
    pipeline: Path


def term_sources(terms: Optional[Path], sources: Optional[Union[Path, str]]) -> List[TermSource]:
    """Return the sources that are term lists: a given list, or those in a file that declares sources."""
    if sources is not None:
        return [source for source in read_sources(sources) if isinstance(source, TermSource)]
    return [] if terms is None else [TermSource(name=TERMS_SOURCE, path=str(existing(Path(terms))))]


def make_lists(lists: List[TermSource], folder: Path, language: CorpusLanguage) -> List[TermList]:
    """Write a pipeline for each term list: its matches are the entities; where they overlap, the longest one."""
    made = []
    for n, source in enumerate(lists, start=1):
        title = "term list" if len(lists) == 1 else f"term list '{source.name}'"
        nlp = language.blank()
        names = None if source.labels is None else dict(source.labels)
        settings = {**source.ruler_settings(), "label_names": names, "reliability": source.reliability}
        ruler: Any = nlp.add_pipe(RULER, config={**settings, "annotate_ents": True})
        ruler.initialize(lambda: [], nlp=nlp, terms=source.every)
        if source.abbreviations:
            nlp.add_pipe(ABBREVIATIONS, name=SHORT_FORMS, config={"source": source.name})
            nlp.add_pipe(ABBREVIATIONS)
        linked = [term for term in source.read() if term.id] if ruler.has_ids else []
        binding = source.binding()
        if names is not None:
            linked, binding = (
                [term._replace(label=names[term.label]) for term in terms if term.label in names]
                for terms in (linked, binding)
            )
        if binding:
            config = {key: settings[key] for key in ("attr", "acronym_length")}
            rules: Any = nlp.add_pipe(BINDING, config=config, after=RULER)
            rules.initialize(nlp=nlp, terms=binding)
        if linked:
            linker: Any = nlp.add_pipe(LINKER)
            linker.initialize(nlp=nlp, terms=linked)
        # Score it like trained pipelines.
        nlp.config["training"]["score_weights"] = {"ents_f": 1.0}
        path = folder / f"list-{n}"  # a name may have characters that are invalid in paths
        with atomic_path(path) as temporary:
            nlp.to_disk(temporary)
        made.append(TermList(source.name, title, path))
    return made


def matched_docs(term_list: TermList, docs: Iterable[Doc]) -> Iterator[Doc]:
    """Yield copies of Docs in which the span group with a list's matches is set as the entities."""
    group = weak_group(term_list.source)
    for doc in docs:
        copy = copy_with_groups(doc, [group])
        annotate_entities(copy, list(copy.spans.get(group, ())), True)
        yield copy


def label_with(lists: List[TermList], corpus: Path, output: Path) -> Path:
    """Write a corpus with its gold and the matches of term lists as span groups."""
    docs = list(read_docs(corpus, Vocab()))
    for term_list in lists:
        nlp = load_pipeline(term_list.pipeline, TOKENIZER)
        group = weak_group(term_list.source)
        for doc, matched in zip(docs, nlp.pipe([bare_copy(doc, nlp.vocab) for doc in docs]), strict=True):
            copy_group(matched, doc, group)
        if nlp.has_pipe(SHORT_FORMS):
            found = [{**dict.fromkeys(group_entities(doc, group), ()), **group_ids(doc, group)} for doc in docs]
            for doc, entities in zip(docs, expand_documents(docs, found), strict=True):
                set_group(doc, group, list(entities), ids=entities, attrs=doc.spans[group].attrs)
    write_docs(output, docs)
    return output


def hide(gold: Path, output: Path, collected: Dict[SourceLabel, LeakedLabel], seed: int = 0) -> Path:
    """Write the gold without some of the right matches of lists that were collected from it. A model that is trained
    with such a list trusts it far too much, so right matches are hidden at random until the list matches as often in
    the gold as in the text."""
    rng = random.Random(seed)
    docs = list(read_docs(gold, Vocab()))
    for doc in docs:
        entities = {*doc_entities(doc)}
        for source in sorted({source for source, _ in collected}):
            group = weak_group(source)
            if group in doc.spans:
                kept = [
                    entity
                    for entity in group_entities(doc, group)
                    if entity not in entities
                    or (source, entity[2]) not in collected
                    or rng.random() < collected[source, entity[2]].kept
                ]
                keep_entities(doc, group, kept)
    write_docs(output, docs)
    return output


def hidden_note(key: SourceLabel, found: LeakedLabel) -> str:
    """Return a note on hidden matches."""
    source, label = key
    return (
        f"With the label {label}, '{source}' matches {found.ratio:.1f} times as often in the gold as in the text, as "
        f"if it had been collected from the gold: {1 - found.kept:.0%} of its right matches were hidden for training "
        "and comparison"
    )
