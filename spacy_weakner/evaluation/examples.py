"""Sentences with errors, rendered by displaCy with gold and prediction side by side."""

from html import escape
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from spacy.tokens import Doc

from ..ty import Entities, Entity
from .tables import mask, shorten_line

# displaCy's own templates do not escape labels; values for this one are escaped.
_ENTITY = (
    '<mark class="entity {status}" style="background: {bg}">{text} <span class="label">{label}{kb_link}</span></mark>'
)
_WRONG = "\N{NO-BREAK SPACE}✗"
# Keeps hues far apart for any number of labels; the first is blue.
_FIRST_HUE, _GOLDEN_ANGLE = 205, 137.5


class Example(NamedTuple):
    """A sentence: its number in the test set, from 1 on, and its number of false and missed entities."""

    number: int
    errors: int
    text: str
    offsets: Tuple[Tuple[int, int], ...]  # start and end (exclusive) character of each token
    gold: Tuple[Entity, ...]
    predicted: Tuple[Entity, ...]
    gold_ids: Mapping[Entity, str] = {}
    predicted_ids: Mapping[Entity, str] = {}


class FirstSentences:
    """A collector of the first sentences with entities in a test set."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen = 0
        self._found: List[Example] = []

    def add(self, doc: Doc, gold: Entities, predicted: Entities, ids: Sequence[Mapping[Entity, str]] = ()) -> None:
        """Add a sentence with its gold and predicted entities."""
        self._seen += 1
        if self._is_wanted(set(gold), set(predicted)):
            offsets = tuple((token.idx, token.idx + len(token)) for token in doc)
            actual, found = (tuple(sorted(set(entities))) for entities in (gold, predicted))
            errors = len(set(gold) ^ set(predicted))
            self._found.append(Example(self._seen, errors, doc.text, offsets, actual, found, *ids))
            if len(self._found) > 2 * self._limit:
                self._found = self.result()

    def _is_wanted(self, gold: Set[Entity], predicted: Set[Entity]) -> bool:
        return len(self._found) < self._limit and bool(gold or predicted)

    def result(self) -> List[Example]:
        """Return the sentences."""
        return self._found


class WorstSentences(FirstSentences):
    """A collector of the sentences with the most errors in a test set."""

    def _is_wanted(self, gold: Set[Entity], predicted: Set[Entity]) -> bool:
        return gold != predicted

    def result(self) -> List[Example]:
        """Return the sentences with the most errors; of equals, the first ones."""
        return sorted(self._found, key=lambda example: -example.errors)[: self._limit]


def label_colors(labels: Iterable[str]) -> Dict[str, str]:
    """Return a light background color, for dark text, for every label."""
    return {
        label: f"hsl({(_FIRST_HUE + i * _GOLDEN_ANGLE) % 360:.0f}, 75%, 82%)"
        for i, label in enumerate(sorted(set(labels)))
    }


def render_example(example: Example, colors: Dict[str, str]) -> Tuple[str, str]:
    """Render the gold and the prediction of a sentence as HTML with displaCy. False and missed entities get a cross.
    Spans that overlap others are rendered below. Labels have colors."""
    right = set(example.gold) & set(example.predicted)
    return (
        _render(example, example.gold, example.gold_ids, right, colors),
        _render(example, example.predicted, example.predicted_ids, right, colors),
    )


def _render(
    example: Example, entities: Sequence[Entity], ids: Mapping[Entity, str], right: Set[Entity], colors: Dict[str, str]
) -> str:
    from spacy.displacy import EntityRenderer

    renderer = EntityRenderer(options={"template": _ENTITY})

    def draw(entities: Sequence[Entity], start: int, end: int) -> str:
        spans = []
        for entity in entities:
            first, last = example.offsets[entity[0]][0] - start, example.offsets[entity[1] - 1][1] - start
            # In `params`, since displaCy looks colors up by the label in upper case, which may be a different label.
            params = {"bg": colors[entity[2]], "status": "right" if entity in right else "wrong"}
            label = escape(shorten_line(entity[2])) + ("" if entity in right else _WRONG)
            label += f" {escape(shorten_line(ids[entity]))}" if ids.get(entity) else ""
            spans.append({"start": first, "end": last, "label": label, "params": params})
        return renderer.render([{"text": mask(example.text[start:end]), "ents": spans, "title": None}]).strip()

    # displaCy's style for overlapping spans places labels by pixels: on a narrow screen they cover each other.
    shown: List[Entity] = []
    hidden: List[Entity] = []
    for entity in sorted(entities, key=lambda span: (span[0], -span[1], span[2])):
        (hidden if shown and entity[0] < shown[-1][1] else shown).append(entity)
    html = draw(shown, 0, len(example.text))
    for entity in hidden:
        html += "\n" + draw([entity], example.offsets[entity[0]][0], example.offsets[entity[1] - 1][1])
    return html
