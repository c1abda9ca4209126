"""Term lists that were collected from the gold. What is learned beside such a list trusts it far too much: so in the
gold as many of its right matches are hidden at random as make it match as often as in the text."""

import random
from pathlib import Path
from typing import Dict, List

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ...corpus.docbin import read_docs, write_docs
from ...corpus.weak import doc_entities, group_entities, set_spans, weak_group
from ...evaluation.terms.collected import Collected, Key


def hide(gold: Path, output: Path, collected: Dict[Key, Collected], seed: int = 0) -> Path:
    """Write the gold without some of the right matches.

    gold (Path): The gold, with what the sources say of it.
    output (Path): Another file.
    collected (Dict[Key, Collected]): Which sources and labels, and what is kept of them.
    seed (int): Chooses the matches.
    RETURNS (Path): The output.
    """
    rng = random.Random(seed)
    docs: List[Doc] = []
    for doc in read_docs(gold, Vocab()):
        entities = {*doc_entities(doc)}
        for source in sorted({source for source, _ in collected}):
            if weak_group(source) in doc.spans:
                left = [
                    entity
                    for entity in group_entities(doc, weak_group(source))
                    if entity not in entities
                    or (source, entity[2]) not in collected
                    or rng.random() < collected[source, entity[2]].kept
                ]
                spans = [Span(doc, start, end, label=label) for start, end, label in left]
                set_spans(doc, weak_group(source), spans, dict(doc.spans[weak_group(source)].attrs))
        docs.append(doc)
    write_docs(output, docs)
    return output


def hidden_note(key: Key, found: Collected) -> str:
    """RETURNS (str): What was found and done, in words."""
    source, label = key
    return (
        f"'{source}' matches {found.ratio:.1f} times as often in the gold as in the text, with the label {label}, as a "
        f"list that was collected from the gold does: {1 - found.kept:.0%} of its right matches were hidden where "
        "heads learn and candidates are compared"
    )
