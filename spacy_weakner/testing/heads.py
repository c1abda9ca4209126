"""What every head of entities guarantees, as checks that are run on a head of one's own:

HEAD = Head("softmax_ner", {"model": {...}})

@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_softmax_ner(check):
    check(HEAD)
"""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from ..corpus.weak import doc_entities, group_entities, group_scores
from ..errors import WeaknerError
from ..ty import Entity

SENTENCES: List[Tuple[str, List[Entity]]] = [
    ("Anna went to New York", [(0, 1, "PER"), (3, 5, "LOC")]),
    ("Paris likes Bob Smith", [(0, 1, "LOC"), (2, 4, "PER")]),
    ("nothing here at all", []),
    ("Bob", [(0, 1, "PER")]),
]
TEXTS = [text for text, _ in SENTENCES]
GOLD = [entities for _, entities in SENTENCES]


@dataclass
class Head:
    """A head to check. It must be able to learn the four sentences by heart.

    factory (str): Name of its factory.
    config (Dict[str, Any]): Settings, such as a small model; those that make it write everything it can.
    initialize (Dict[str, Any]): What `initialize` needs beside the sentences, by argument.
    steps (int): Number of updates in which it learns the sentences.
    learn_rate (float): Learning rate.
    seed (int): Seed of the weights.
    """

    factory: str
    config: Dict[str, Any] = field(default_factory=dict)
    initialize: Dict[str, Any] = field(default_factory=dict)
    steps: int = 40
    learn_rate: float = 0.02
    seed: int = 0
    _trained: Optional[bytes] = None

    def blank(self, **settings: Any) -> Language:
        """Return a pipeline with the head, which is not initialized."""
        fix_random_seed(self.seed)
        nlp = spacy.blank("xx")
        nlp.add_pipe(self.factory, config={**self.config, **settings})
        nlp.config["initialize"]["components"][self.factory] = self.initialize
        return nlp

    def trained(self, **settings: Any) -> Language:
        """Return a pipeline that has learned the sentences, perhaps with other settings."""
        if self._trained is None:
            nlp = self.blank()
            examples = [Example(_doc(nlp, text), _doc(nlp, text, entities)) for text, entities in SENTENCES]
            optimizer = nlp.initialize(lambda: examples)
            optimizer.learn_rate = self.learn_rate
            for _ in range(self.steps):
                nlp.update(examples, sgd=optimizer)
            self._trained = nlp.to_bytes()
        return self.blank(**settings).from_bytes(self._trained)


def learns_the_sentences(head: Head) -> None:
    nlp = head.trained()
    assert [doc_entities(doc) for doc in nlp.pipe(_doc(nlp, text) for text in TEXTS)] == GOLD
    scores = [ent._.weakner_score for text in TEXTS for ent in nlp(_doc(nlp, text)).ents]
    assert all(score is None or 0.0 <= score <= 1.0 for score in scores)


def finds_nothing_in_nothing(head: Head) -> None:
    nlp = head.trained()
    for texts in ([], [""], ["", ""], [" "], ["  \n "], ["", "Bob", ""], ["\n\n", "Bob"]):
        found = [(doc_entities(doc), doc.cats) for doc in nlp.pipe(texts)]
        assert found == [([(0, 1, "PER")] if text == "Bob" else [], {}) for text in texts]


def must_be_initialized(head: Head) -> None:
    nlp = head.blank()
    pipe: Any = nlp.get_pipe(head.factory)
    for use in (lambda: nlp("Bob"), lambda: pipe.update([])):
        try:
            use()
        except WeaknerError as error:
            assert "WK008" in str(error)
        else:
            raise AssertionError("used without initialization")


def is_stored_whole(head: Head) -> None:
    nlp = head.trained()
    pipe: Any = nlp.get_pipe(head.factory)
    pipe.set_temperature(2.0)
    pipe.set_bias(0.1)
    other = head.blank().from_bytes(nlp.to_bytes())
    stored: Any = other.get_pipe(head.factory)
    assert (stored.cfg, stored.labels) == (pipe.cfg, pipe.labels)
    for text in TEXTS:
        assert _found(other(_doc(other, text))) == _found(nlp(_doc(nlp, text)))


def predicts_without_changing_docs(head: Head) -> None:
    nlp = head.trained()
    pipe: Any = nlp.get_pipe(head.factory)
    docs = [_doc(nlp, text) for text in TEXTS]
    for doc in docs:
        doc.cats = {"mine": 0.5}
    predictions = pipe.predict(iter(docs))
    assert not any(doc.has_annotation("ENT_IOB") or doc.spans for doc in docs)
    pipe.set_annotations(docs, predictions)
    assert list(map(doc_entities, docs)) == GOLD
    assert all(doc.cats == {"mine": 0.5} for doc in docs)


def keeps_entities_that_are_there(head: Head) -> None:
    nlp = head.trained()
    doc = _doc(nlp, TEXTS[0])
    doc.ents = [Span(doc, 4, 5, "ORG", kb_id="Q1")]
    found = nlp(doc)
    assert (4, 5, "ORG") in doc_entities(found)
    assert (0, 1, "PER") in doc_entities(found)
    assert found.ents[-1].kb_id_ == "Q1"


def leaves_nothing_to_predict_where_entities_are(head: Head) -> None:
    nlp, preset = head.trained(), [(0, 2, "X"), (2, 3, "Y")]
    doc = nlp(_doc(nlp, "a b c", preset))
    assert doc_entities(doc) == preset
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


def overwrites_if_asked(head: Head) -> None:
    nlp = head.trained(overwrite=True)
    assert doc_entities(nlp(_doc(nlp, TEXTS[0], [(1, 5, "ORG")]))) == GOLD[0]


def keeps_blocked_tokens(head: Head) -> None:
    for overwrite in (False, True):
        nlp = head.trained(overwrite=overwrite)
        doc = _doc(nlp, TEXTS[0], [])
        doc.set_ents([], blocked=[doc[:1]], default="missing")
        doc = nlp(doc)
        assert doc_entities(doc) == GOLD[0][0 if overwrite else 1 :]
        assert (doc[0].ent_iob_, doc[0].ent_type_) == ("B", "PER" if overwrite else "")


def changes_nothing_the_second_time(head: Head) -> None:
    nlp = head.trained()
    doc = nlp(_doc(nlp, TEXTS[1]))
    before = _found(doc)
    nlp.get_pipe(head.factory)(doc)
    assert before and _found(doc) == before


def writes_candidates_instead_of_entities(head: Head) -> None:
    """With `annotate_ents = false`."""
    nlp, writer, group = head.trained(annotate_ents=False), head.trained(), f"pred:{head.factory}"
    for text in TEXTS:
        doc, written = nlp(text), writer(text)
        expected = group_entities(written, group) if group in written.spans else doc_entities(written)
        assert group_entities(doc, group) == expected and not doc.has_annotation("ENT_IOB")
        assert all(score is not None and 0.0 <= score <= 1.0 for score in group_scores(doc, group))
        # What stands in the Doc already suppresses no candidate: nothing is written over it.
        preset = nlp.make_doc(text)
        preset.set_ents([Span(preset, 0, 1, "OTHER")])
        assert group_entities(nlp(preset), group) == expected and doc_entities(preset) == [(0, 1, "OTHER")]
        examples = [Example(nlp.make_doc(text), written)]
        assert "ents_f" in writer.evaluate(examples) and "ents_f" not in nlp.evaluate(examples)


def ends_sentences_at_blank_lines(head: Head) -> None:
    nlp = head.trained()
    for first, expected in SENTENCES:
        for second, more in SENTENCES:
            doc = nlp(Doc(nlp.vocab, words=[*first.split(), "\n\n", *second.split()]))
            offset = len(first.split()) + 1
            assert doc_entities(doc) == [*expected, *((s + offset, e + offset, label) for s, e, label in more)]


def is_calibrated_on_gold(head: Head) -> None:
    nlp = head.trained()
    pipe: Any = nlp.get_pipe(head.factory)
    examples = [Example(_doc(nlp, text), _doc(nlp, text, entities)) for text, entities in SENTENCES]
    assert numpy.isfinite([pipe.held_out_loss(examples)(temperature) for temperature in (0.5, 1.0, 2.0)]).all()
    found = pipe.entities_under([eg.predicted for eg in examples], [0.0, 1e6])
    assert found == [[entities, []] for entities in GOLD]


CHECKS: List[Callable[[Head], None]] = [
    learns_the_sentences,
    finds_nothing_in_nothing,
    must_be_initialized,
    is_stored_whole,
    predicts_without_changing_docs,
    keeps_entities_that_are_there,
    leaves_nothing_to_predict_where_entities_are,
    overwrites_if_asked,
    keeps_blocked_tokens,
    changes_nothing_the_second_time,
    writes_candidates_instead_of_entities,
    ends_sentences_at_blank_lines,
    is_calibrated_on_gold,
]


def _doc(nlp: Language, text: str, entities: Optional[Sequence[Entity]] = None) -> Doc:
    """Make a Doc of the words of a text, annotated if there are entities or none."""
    doc = Doc(nlp.vocab, words=text.split())
    if entities is not None:
        doc.set_ents([Span(doc, *entity) for entity in entities], default="outside")
    return doc


def _found(doc: Doc) -> List[Tuple[Any, ...]]:
    return [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents]
