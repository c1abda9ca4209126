"""Docs with sources, written short."""

from typing import Any, Dict, List, Sequence

import numpy
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.aggregation.observations import ObservedSource
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.tags import TagScheme

NLP = spacy.blank("xx")


def make_doc(words, sources, gold=None, complete=(), reliability=None):
    """A Doc of the words in a text; `sources` gives the entities of each."""
    doc = Doc(NLP.vocab, words=words.split())
    for name, entities in sources.items():
        weak.set_source(doc, name, entities, reliability=(reliability or {}).get(name), complete=name in complete)
    if gold is not None:
        doc.set_ents([Span(doc, *entity) for entity in gold], default="outside")
    return doc


def make_source(name: str, labels: str = "A", complete: bool = True, **settings: Any) -> ObservedSource:
    found = {"reliability": None, "labels": tuple(labels), "docs": 1, "entities": 1, **settings}
    return ObservedSource(name=name, complete=complete, **found)


def draw_docs(
    scheme: TagScheme, n_docs: int, qualities: Sequence[Dict[str, float]], seed: int = 0, length: int = 12
) -> List[Dict[str, Any]]:
    """Docs of a world where each source finds a true entity with the chance `recall`, mistakes its label with `wrong`,
    and opens a false one at any other token with `false`. Gives "gold" tags and what the sources "say"."""
    rng = numpy.random.default_rng(seed)
    docs = []
    for _ in range(n_docs):
        gold = numpy.zeros(length, dtype="int64")
        spans = []
        t = 0
        while t < length:
            size = int(rng.integers(1, 4))
            if rng.random() < 0.15 and t + size <= length:
                label = int(rng.integers(len(scheme.labels)))
                gold[t : t + size] = scheme.span_tags(scheme.labels[label], size)
                spans.append((t, t + size, label))
                t += size
            else:
                t += 1
        votes = numpy.zeros((length, len(qualities)), dtype="int64")
        for s, quality in enumerate(qualities):
            for start, end, label in spans:
                if rng.random() < quality["recall"]:
                    if rng.random() < quality.get("wrong", 0.0):
                        label = (label + 1) % len(scheme.labels)
                    votes[start:end, s] = scheme.span_tags(scheme.labels[label], end - start)
            for t in numpy.flatnonzero(gold == 0):
                if rng.random() < quality["false"]:
                    votes[t, s] = scheme.span_tags(scheme.labels[int(rng.integers(len(scheme.labels)))], 1)[0]
        docs.append({"gold": gold, "votes": votes})
    return docs
