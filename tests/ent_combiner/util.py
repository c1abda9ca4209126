"""Made-up worlds, and slow twins."""

import itertools
import random

import numpy
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus.weak import set_group
from spacy_weakner.ent_combiner.span_partition import SpanPartition

NLP = spacy.blank("en")  # it has stop words


def doc_of(words, gold=None, **groups):
    """A Doc with gold, and groups "weak__a" as "weak:a"; entities may have a score as their fourth item."""
    doc = Doc(NLP.vocab, words=words)
    if gold is not None:
        doc.set_ents([Span(doc, *entity) for entity in gold], default="outside")
    for name, entities in groups.items():
        scores = [entity[3] for entity in entities if len(entity) > 3]
        set_group(doc, name.replace("__", ":"), [entity[:3] for entity in entities], scores or None)
    return doc


def without_gold(doc):
    """The same with its groups alone."""
    groups = {}
    for name, group in doc.spans.items():
        scores = group.attrs.get("scores", [None] * len(group))
        spans = [(span.start, span.end, span.label_) for span in group]
        groups[name.replace(":", "__")] = [
            (*span, score) if score is not None else span for span, score in zip(spans, scores, strict=True)
        ]
    return doc_of([token.text for token in doc], **groups)


def borders(n, seed=0):
    """A list that knows the nouns of what are entities with the word before them, unless that is "the"."""
    rng, docs = random.Random(seed), []
    for _ in range(n):
        before, noun = rng.choice(["renal", "acute", "the"]), rng.choice(["failure", "pain", "injury"])
        words = ["we", "saw", before, noun, rng.choice(["today", "again"])]
        docs.append(doc_of(words, [(2 + (before == "the"), 4, "D")], weak__list=[(3, 4, "D")]))
    return docs


def labels(n):
    """Two sources: the one is right in what it calls A, the other in what it calls B."""
    kinds = [(source, label) for source in "ab" for label in "AB"] * n
    return [
        doc_of(["x", "it"], [(1, 2, label)] * (source == label.lower()), **{f"weak__{source}": [(1, 2, label)]})
        for source, label in kinds
    ]


def noisy(n, seed=0):
    """A predictor whose probabilities say too much, and a list that is right in three of four matches."""
    rng, docs = numpy.random.default_rng(seed), []
    for number in range(n):
        gold, listed, said = [], [], []
        for i in range(1, 8, 3):
            logit = rng.normal(0.0, 1.5)
            if rng.random() < 1 / (1 + numpy.exp(-logit)):
                gold.append((i, i + 1, "X"))
            said.append((i, i + 1, "X", float(1 / (1 + numpy.exp(-2.5 * logit)))))
            if rng.random() < (0.6 if (i, i + 1, "X") in gold else 0.2):
                listed.append((i, i + 1, "X"))
        docs.append(doc_of([*"abcdefghi", str(number)], gold, weak__list=listed, pred__crf=said))
    return docs


def all_sets(entities):
    """All sets of candidates without overlaps, as tuples of their numbers."""
    for size in range(len(entities) + 1):
        for chosen in itertools.combinations(range(len(entities)), size):
            pairs = itertools.combinations([entities[i] for i in chosen], 2)
            if all(a[1] <= b[0] or b[1] <= a[0] for a, b in pairs):
                yield chosen


def random_entities(rng, n_tokens, n):
    """Different candidates, sorted as the component sorts them."""
    every = [(a, b, label) for a in range(n_tokens) for b in range(a + 1, n_tokens + 1) for label in "XY"]
    return sorted(rng.sample(every, n), key=lambda entity: (entity[1], entity[0], entity[2]))


def partition_of(entities):
    """The partition of each Doc's candidates; no Doc has more than 1,000 tokens."""
    spans = [(1000 * row + start, 1000 * row + end) for row, own in enumerate(entities) for start, end, _ in own]
    rows = numpy.repeat(numpy.arange(len(entities)), [len(own) for own in entities])
    return SpanPartition.of(rows, numpy.array(spans, dtype="int64").reshape(-1, 2), len(entities))


def split(entities, values):
    """Values of all candidates, by Doc."""
    return numpy.split(values, numpy.cumsum([len(own) for own in entities])[:-1])


def f1(docs, found):
    """F1 of found entities, in [0, 1]."""
    gold = [{(ent.start, ent.end, ent.label_) for ent in doc.ents} for doc in docs]
    right = sum(len(own & set(entities)) for own, entities in zip(gold, found, strict=True))
    return 2 * right / max(1, sum(map(len, gold)) + sum(map(len, found)))
