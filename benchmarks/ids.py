"""What a term list knows beside its terms: abbreviations that texts define, and ids of concepts.

    python benchmarks/best.py --data DIR --size linear --columns bc5cdr-half --gold 250 --seeds 0
    python benchmarks/ids.py --data DIR --project FOLDER

Writes docs/evidence/ids.md: entities of the term list alone, and of the candidates of a project, with
and without the component `abbreviations`, and how many mentions `term_linker` gives the right id.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import spacy
from common import EVIDENCE, find
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_weakner.files import read_lines, write_text
from spacy_weakner.pipelines import load_pipeline
from spacy_weakner.project.rules import TERM_LIST
from spacy_weakner.project.selection import Selection

# Sentences of a data set that are put together where it does not tell which belong to one document.
BLOCK = 10
THRESHOLDS = (0.0, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0)
SETS = (
    ("bc5cdr", "test", "half"),
    ("bc5cdr", "test", "gazetteer"),
    ("bc5cdr", "test", "gazetteer-bio"),
    ("conll03", "test", "gazetteer"),
    ("oa-mine", "test", "gazetteer"),
    ("ec", "test", "gazetteer"),
)
Rows = List[Dict[str, Any]]


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--project", type=Path, required=True, help="a project of benchmarks/best.py on bc5cdr-half")
    arguments = parser.parse_args()
    data = arguments.data
    rows = [*abbreviation_rows(data), *candidate_rows(data, arguments.project)]
    page = PAGE.format(abbreviations="\n".join(rows), links="\n".join(link_rows(data)), block=BLOCK)
    write_text(EVIDENCE / "ids.md", page)


def abbreviation_rows(data: Path) -> Iterator[str]:
    """A line of the table for each data set."""
    for folder, split, terms in SETS:
        rows = read(data / folder, split)
        lang = "zh" if folder == "ec" else "en"
        yield abbreviation_row(f"{folder}, {terms}", pipeline(read_terms(data, folder, terms), lang), blocks(rows))
    rows = read(data / "bc5cdr-linking", "abstracts")
    nlp = pipeline(read(data / "bc5cdr-linking", "terms"), "en")
    gold = []
    for row in rows:
        doc = nlp.make_doc(row["text"])
        spans = [doc.char_span(start, end, label) for start, end, label in row["ents"]]
        doc.ents = spacy.util.filter_spans([span for span in spans if span is not None])
        gold.append(doc)
    yield abbreviation_row("bc5cdr-linking, whole abstracts", nlp, gold)


def candidate_rows(data: Path, project: Path) -> Iterator[str]:
    """A line of the table for each candidate of a project that has the list and a head, made without abbreviations."""
    gold = blocks(read(data / "bc5cdr", "test"))
    for candidate in Selection.load(project / "training" / "selection.json").candidates:
        nlp = load_pipeline(candidate.path)
        if "gazetteer_ruler" in nlp.pipe_names and candidate.name != TERM_LIST:
            nlp.add_pipe("abbreviations")
            yield abbreviation_row(f"bc5cdr, {candidate.name}", nlp, gold)


def abbreviation_row(name: str, nlp: Language, gold: List[Doc]) -> str:
    """Scores of the list without and with abbreviations, and what is added."""
    wanted = [entities(doc) for doc in gold]
    bare = [Doc(nlp.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc]) for doc in gold]
    for doc, other in zip(bare, gold, strict=True):
        for token, same in zip(doc, other, strict=True):
            token.is_sent_start = same.is_sent_start
    with nlp.select_pipes(disable=["abbreviations"]):
        plain = [entities(doc) for doc in nlp.pipe(doc.copy() for doc in bare)]
    found = [entities(doc) for doc in nlp.pipe(bare)]
    added = sum(len(some - before) for some, before in zip(found, plain, strict=True))
    right = sum(len((some - before) & expected) for some, before, expected in zip(found, plain, wanted, strict=True))
    cells = [name, scores(wanted, plain), scores(wanted, found), str(added), f"{right}"]
    return f"| {' | '.join(cells)} |"


def scores(wanted: List[set], found: List[set]) -> str:
    """Precision, recall and F1."""
    hits = sum(len(a & b) for a, b in zip(wanted, found, strict=True))
    given, there = sum(map(len, found)), sum(map(len, wanted))
    return f"{100 * hits / max(given, 1):.1f} / {100 * hits / there:.1f} / **{200 * hits / (given + there):.1f}**"


def link_rows(data: Path) -> Iterator[str]:
    """A line of the table for each threshold: mentions given an id, right ones, and precision."""
    terms = read(data / "bc5cdr-linking", "terms")
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("term_linker", config={"threshold": 0.0})
    linker.initialize(nlp=nlp, terms=terms)  # type: ignore[attr-defined]
    linked: List[Tuple[float, bool]] = []
    docs = []
    for row in read(data / "bc5cdr-linking", "abstracts"):
        doc = nlp.make_doc(row["text"])
        pairs = zip(row["ents"], row["kb_ids"], strict=True)
        for (start, end, label), ids in pairs:  # mentions may overlap, so each has a copy of the document
            copy = doc.copy()
            span: Any = copy.char_span(start, end, label, alignment_mode="expand")
            copy.ents = [span]
            docs.append((copy, set(ids)))
    begin = time.perf_counter()
    for doc, ids in nlp.pipe(docs, as_tuples=True):
        candidates = doc.ents[0]._.weakner_ids
        linked.append((candidates[0][1], candidates[0][0] in ids) if candidates else (-1.0, False))
    speed = len(linked) / (time.perf_counter() - begin)
    for threshold in THRESHOLDS:
        given = [right for score, right in linked if score >= threshold]
        yield f"| {threshold} | {len(given)} | {sum(given)} | {100 * sum(given) / len(given):.1f} |"
    yield f"\n{len(linked)} mentions, {len(terms):,} terms, {speed:.0f} mentions per second."


def pipeline(terms: Rows, lang: str) -> Language:
    """A term list as a pipeline, with abbreviations."""
    nlp = spacy.blank(lang)
    nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True}).add_terms(terms)  # type: ignore[attr-defined]
    nlp.add_pipe("abbreviations")
    return nlp


def blocks(rows: Rows) -> List[Doc]:
    """Consecutive sentences together."""
    vocab, docs = spacy.blank("xx").vocab, []
    for begin in range(0, len(rows), BLOCK):
        words: List[str] = []
        starts: List[Any] = []
        ents = []
        for row in rows[begin : begin + BLOCK]:
            ents += [(len(words) + start, len(words) + end, label) for start, end, label in row["ents"]]
            words += row["tokens"]
            starts += [i == 0 for i in range(len(row["tokens"]))]
        doc = Doc(vocab, words=words, sent_starts=starts)
        doc.ents = [Span(doc, *entity) for entity in ents]
        docs.append(doc)
    return docs


def entities(doc: Doc) -> set:
    """Start, end and label of the entities."""
    return {(ent.start, ent.end, ent.label_) for ent in doc.ents}


def read_terms(data: Path, folder: str, terms: str) -> Rows:
    """The list of a data set, every second term of it, or lists that were made elsewhere."""
    if terms.startswith("gazetteer-"):
        names = sorted({path.name.split(".")[0] for path in (data / terms).glob("gazetteer-*.jsonl*")})
        return [row for name in names for row in read(data / terms, name)]
    rows = read(data / folder, "gazetteer")
    return rows[::2] if terms == "half" else rows


def read(folder: Path, name: str) -> Rows:
    """Read JSONL."""
    return [json.loads(line) for line in read_lines(find(folder, name))]


PAGE = """# Abbreviations and ids

The abbreviations that texts define add 2 to 3 points to a medical list, and nothing to other lists. With its default
threshold, `term_linker` gives ids to four in five mentions, and 84 % of them are right.

    python benchmarks/best.py --data DIR --size linear --columns bc5cdr-half --gold 250 --seeds 0
    python benchmarks/ids.py --data DIR --project FOLDER

## Abbreviations

Precision, recall and F1 of a term list without and with the component `abbreviations`, the number of entities that the
component adds, and how many of them are right. `bc5cdr-linking` has 50 whole abstracts and a list of 80,378 terms. The
other data sets do not record which sentences belong to one document, so every {block} consecutive sentences are treated
as one document. `half`: every second term of the list; `gazetteer-bio`: MeSH, DrugBank and Disease Ontology, which were
not compiled from the corpus. `linear with list` and `list and head` are candidates of a project with half of the list
and 250 gold sentences.

| data, list | without | with | added | right |
|---|---|---|---|---|
{abbreviations}

## Ids

`bc5cdr-linking`: the mentions of 50 abstracts, with their boundaries and labels given. The table shows, for each
threshold of `term_linker`, to how many mentions it gives an id, and how many of these MeSH ids are right. 98 of the 925
mentions have ids that the list lacks, or no id.

| threshold | ids given | right | precision |
|---|---|---|---|
{links}
"""


if __name__ == "__main__":
    main()
