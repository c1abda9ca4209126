"""The recipe `best`, step by step.

1. Heads that read what the term lists say beside the words, trained on the gold: a linear CRF and the encoder. And a
   head that knows the weak labels of the text alone.
2. A combiner that decides between lists and heads, learned from what they say of gold that they have not seen.
"""

from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from ...files import atomic_path
from ...runs.training import Training
from ..arena import Arena
from ..lists import TermList
from ..rules import COMBINED, LIST_AND_HEAD, WEAK_ALONE, Rule
from ..workshop import Workshop, pipeline_of
from .assembling import assemble
from .blind import list_and_head
from .calibrating import calibrate, judge
from .stacking import Member, Stack

# From a gold, what is evaluated on, and a folder.
Maker = Callable[[Path, Path, Path], Training]


class Head(NamedTuple):
    """A head that is trained on gold.

    name (str): Name of the component.
    title (str): What it is called among the candidates.
    make (Maker): Makes a training of it.
    reads (bool): Whether it reads what the lists say.
    combined (bool): Whether it is combined with others, or only compared.
    """

    name: str
    title: str
    make: Maker
    reads: bool = True
    combined: bool = True


class Best:
    """The recipe.

    workshop (Workshop): Where is trained.
    arena (Arena): Where candidates are compared; lists are in it already.
    gold (Path): All gold, with what sources say of it.
    dev (Optional[Path]): Other gold to choose checkpoints by, labelled by the lists.
    lists (Sequence[TermList]): The term lists.
    """

    def __init__(
        self,
        workshop: Workshop,
        arena: Arena,
        gold: Path,
        dev: Optional[Path],
        lists: Sequence[TermList],
    ) -> None:
        self.workshop = workshop
        self.arena = arena
        self.gold = gold
        self.dev = dev
        self.lists = {each.source: each.pipeline for each in lists}
        self.rules: List[Rule] = []

    def run(self, heads: Sequence[Head], weak: Optional[Training], others: Sequence[Training] = ()) -> None:
        """Train, combine and compare.

        heads (Sequence[Head]): What is trained on gold.
        weak (Optional[Training]): A training on the weak labels of the text alone.
        others (Sequence[Training]): Trainings for other uses, which run beside these.
        """
        planned = [self._plan(head) for head in heads]
        trainings = [training for _, own in planned for training in own]
        self.workshop.train([*([] if weak is None else [weak]), *trainings, *others])
        members = []
        for head, (member, _) in zip(heads, planned, strict=True):
            self._enter(member)
            members += [member] if head.combined else []
        if weak is not None:
            path = pipeline_of(weak, select=self.dev is not None)
            members.append(Member("weak", WEAK_ALONE, path, [path] * len(self.arena.folds), reads=False))
            self._enter(members[-1])
            if self.lists:
                # What is packaged where there is no gold.
                self.arena.enter(LIST_AND_HEAD, list_and_head(self.lists, path, self.workshop.models / "list-and-head"))
        if not self.arena.folds:
            self.rules.append(Rule(COMBINED, False, "the gold cannot be split, so nobody has not seen it"))
            return
        stack = Stack(self.lists, members, self.arena.folds)
        pipeline = stack.save(self.workshop.models / COMBINED)
        self.arena.enter(COMBINED, pipeline, None if self.dev is not None else stack.decide())
        self.rules.append(Rule(COMBINED, True, f"decides between {', '.join(member.title for member in members)}"))

    def _plan(self, head: Head) -> Tuple[Member, List[Training]]:
        models, folds = self.workshop.models, self.arena.folds
        parts = [
            head.make(fold.rest, fold.rest, models / "folds" / f"{head.name}-{n}")
            for n, fold in enumerate(folds, start=1)
        ]
        whole = head.make(self.gold, self.dev or self.gold, models / head.name)
        # No checkpoint may be chosen by a fold.
        paths = [pipeline_of(part, select=False) for part in parts]
        path = pipeline_of(whole, select=self.dev is not None)
        return Member(head.name, head.title, path, paths, head.reads), [*parts, whole]

    def _enter(self, member: Member) -> None:
        """Let a head take part by itself, with the lists that it may read."""
        lists = self.lists if member.reads else {}
        pipeline = self.workshop.models / f"{member.name}-alone"
        nlp = assemble(lists, {member.name: member.whole}, decides=True)
        if self.dev is None:
            parts = [assemble({}, {member.name: path}, decides=True) for path in member.folds]
            judged = [judge(part, fold.held_out) for part, fold in zip(parts, self.arena.folds, strict=True)]
        else:
            judged = [judge(nlp, self.dev)]
        calibrate(nlp, member.name, judged)
        with atomic_path(pipeline) as temporary:
            nlp.to_disk(temporary)
        self.arena.enter(member.title, pipeline, [doc for part in judged for doc in part.found])
