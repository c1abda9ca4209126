"""Which candidate should a project package? Rules of choice, judged on projects whose candidates were scored on test.

    python benchmarks/choosing.py

It trains nothing: the rows are in docs/evidence/choosing.jsonl, those of `best.py` before the combination was always
packaged.
"""

from typing import Any, Callable, Dict, Iterator, List, NamedTuple

from common import EVIDENCE, Evidence

from spacy_weakner.project.rules import COMBINED
from spacy_weakner.project.selection import CLEARLY

WORSE = 0.5  # points of F1 below the best candidate
Scores = Dict[str, float]


class Project(NamedTuple):
    """A project.

    where_chosen (Scores): F1 of its candidates in cross-validation.
    test (Scores): F1 of the same candidates on test.
    packaged (str): The one that was packaged.
    """

    where_chosen: Scores
    test: Scores
    packaged: str


def by_f1(project: Project, students: bool = True) -> str:
    """The highest F1 in cross-validation."""
    scores = project.where_chosen
    return max((name for name in scores if students or "student" not in name), key=lambda name: scores[name])


def unless_better(project: Project, margin: float) -> str:
    """The combination, unless another candidate is better by a margin."""
    best = by_f1(project, students=False)
    return best if project.where_chosen[best] > project.where_chosen[COMBINED] + margin else COMBINED


RULES: Dict[str, Callable[[Project], str]] = {
    "highest F1 in cross-validation": by_f1,
    "highest F1, but the combination if it is less than one point behind": lambda project: project.packaged,
    "highest F1, without students": lambda project: by_f1(project, students=False),
    "always the combination": lambda project: COMBINED,
    "the combination, unless another is more than 3 points better": lambda project: unless_better(project, CLEARLY),
}


def projects(rows: List[Dict[str, Any]]) -> Iterator[Project]:
    """YIELDS (Project): Projects that had a combination, and were compared by cross-validation."""
    groups: Dict[Any, Dict[str, Dict[str, Any]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("dataset", "encoder", "strong", "seed"))
        groups.setdefault(key, {})["term list" if row["method"] == "match" else row["method"]] = row
    for methods in groups.values():
        chosen = {name: f1 for name, f1 in methods["best"]["chosen_f1"].items() if f1 is not None and name in methods}
        if COMBINED in chosen:
            yield Project(chosen, {name: methods[name]["f1"] for name in chosen}, methods["best"]["chosen"])


def table(rows: List[Dict[str, Any]]) -> str:
    """RETURNS (str): A line per rule."""
    found = list(projects(rows))
    lines = [
        "| rule | mean F1 on test | mean regret (best candidate - packaged) | largest regret | "
        f"projects with a regret of more than {WORSE} |",
        "|---" * 5 + "|",
    ]
    for name, rule in RULES.items():
        packaged = [project.test[rule(project)] for project in found]
        regret = [max(project.test.values()) - f1 for project, f1 in zip(found, packaged, strict=True)]
        means = f"{sum(packaged) / len(found):.1f} | {sum(regret) / len(found):.2f} | {max(regret):.1f}"
        lines.append(f"| {name} | {means} | {sum(each > WORSE for each in regret)} of {len(found)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Evidence(EVIDENCE / "choosing.jsonl").rows()))
