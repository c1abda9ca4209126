import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Annotated, DefaultDict

from pydantic import Field

from spacy_weakner.labeling.report import LabelCounts, SourceCounts
from spacy_weakner.runtime.stage import Report, Statistics


@dataclass
class Own(Statistics):
    n: int = 0
    share: float = 0.0
    labels: "Counter[str]" = field(default_factory=Counter)


@dataclass
class Whole(Report):
    own: DefaultDict[str, Annotated[Own, Field(default_factory=Own)]] = field(default_factory=lambda: defaultdict(Own))


def make(n, *labels):
    whole = Whole(docs=n)
    whole.own["a"] = Own(n, n / 2, Counter(labels))
    return whole


def test_fields_are_summed_up_each_in_its_way():
    total = Whole()
    for part in (make(1, "y", "x"), make(2, "x"), Whole(own=defaultdict(Own, b=Own(7)))):
        total.add(part)
    assert total.docs == 3
    assert total.own == {"a": Own(3, 1.5, Counter(x=2, y=1)), "b": Own(7)}
    assert list(total.own["a"].labels) == ["x", "y"]


def test_zeros_stay():
    counts = Own(labels=Counter({"a": 0}))
    counts.add(Own(labels=Counter({"b": 0})))
    assert dict(counts.labels) == {"a": 0, "b": 0}


def test_json_there_and_back():
    whole = make(3, "x")
    assert Whole.from_json(json.loads(json.dumps(whole.to_json()))) == whole
    assert isinstance(Whole.from_json(whole.to_json()).own["new"], Own)


def test_what_all_shards_tell_of_a_file_is_not_summed_up():
    total = LabelCounts()
    for n in (1, 2):
        part = LabelCounts()
        part.by_source["s"] = SourceCounts(rows=9, repeated_rows=1, misaligned=1, docs_with_row=n)
        total.add(LabelCounts.from_json(part.to_json()))
    own = total.by_source["s"]
    assert (own.rows, own.repeated_rows, own.misaligned, own.docs_with_row) == (9, 1, 2, 3)
