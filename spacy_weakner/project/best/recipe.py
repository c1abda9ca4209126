"""The recipe `best`, step by step. Each step keeps its place only if it pays where candidates are compared.

1. Heads that read what the term lists say beside the words, trained on the gold: a linear CRF and the encoder. And a
   head that knows the weak labels of the text alone.
2. A combiner that decides between lists and heads, learned from what they say of gold that they have not seen.
3. Where it beats the lists: it labels the text, softly; a student learns these labels and the gold. The student is one
   more head for the combiner. At most `ROUNDS` times, and no more once it does not gain.
"""

from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from ...files import atomic_path
from ...stages.runtime.trainings import Training
from ...stages.soften import soften
from ..arena import Arena
from ..lists import TermList
from ..rules import LINEARS, STATIC, WEAK_ALONE, WITH_PIECES, Rule
from ..workshop import Workshop, pipeline_of
from .assembling import COMBINER, assemble
from .calibrating import calibrate, judge
from .stacking import Member, Stack

COMBINED, STUDENT = "combined", "student"
ROUNDS = 2
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
    others (Sequence[str]): Weak sources beside them, which have labelled gold and text.
    say (Callable[[str], None]): Called with what each step brought.
    """

    def __init__(
        self,
        workshop: Workshop,
        arena: Arena,
        gold: Path,
        dev: Optional[Path],
        lists: Sequence[TermList],
        others: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self.workshop = workshop
        self.arena = arena
        self.gold = gold
        self.dev = dev
        self.lists = {each.source: each.pipeline for each in lists}
        self.titles = [each.title for each in lists]
        self.others = list(others)
        self.say = say
        self.rules: List[Rule] = []
        self.combinations: List[str] = []

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
        if not self.arena.folds:
            self.rules.append(Rule(COMBINED, False, "the gold cannot be split, so nobody has not seen it"))
            return
        stack = self._combine(COMBINED, members)
        if self._pays():
            self._teach(stack, members)

    def _plan(self, head: Head) -> Tuple[Member, List[Training]]:
        models, folds = self.workshop.models, self.arena.folds
        parts = [
            head.make(fold.rest, fold.rest, models / "folds" / f"{head.name}-{n}")
            for n, fold in enumerate(folds, start=1)
        ]
        whole = head.make(self.gold, self.dev or self.gold, models / head.name)
        member, trainings = self._member(head.name, head.title, whole, parts)
        return member._replace(reads=head.reads), trainings

    def _member(self, name: str, title: str, whole: Training, parts: List[Training]) -> Tuple[Member, List[Training]]:
        # No checkpoint may be chosen by a fold.
        paths = [pipeline_of(part, select=False) for part in parts]
        return Member(name, title, pipeline_of(whole, select=self.dev is not None), paths), [*parts, whole]

    def _enter(self, member: Member) -> None:
        """Let a head take part by itself, with the lists that it may read."""
        lists = self.lists if member.reads else {}
        pipeline = self.workshop.models / f"{member.name}-alone"
        nlp = assemble(lists, {member.name: member.whole}, decides=True)
        if self.dev is None:
            parts = [assemble(lists, {member.name: path}, decides=True) for path in member.folds]
            judged = [judge(part, fold.held_out) for part, fold in zip(parts, self.arena.folds, strict=True)]
        else:
            judged = [judge(nlp, self.dev)]
        calibrate(nlp, member.name, judged)
        with atomic_path(pipeline) as temporary:
            nlp.to_disk(temporary)
        self.arena.enter(member.title, pipeline, [doc for part in judged for doc in part.found])

    def _combine(self, title: str, members: Sequence[Member]) -> Stack:
        stack = Stack(self.lists, members, self.arena.folds)
        pipeline = stack.save(self.workshop.models / title.replace(" ", "-"))
        self.arena.enter(title, pipeline, None if self.dev is not None else stack.decide())
        self.combinations.append(title)
        self.rules.append(Rule(title, True, f"decides between {', '.join(member.title for member in members)}"))
        self.say(f"{title}: F1 {self.arena.f1(title):.1f}")
        return stack

    def _pays(self) -> bool:
        name = STUDENT
        if self.workshop.text is None:
            self.rules.append(Rule(name, False, "there is no text that could be labelled (--text)"))
            return False
        own, of_lists = self.arena.f1(COMBINED), max((self.arena.f1(title) for title in self.titles), default=0.0)
        if own <= of_lists:
            why = f"the combination's F1 {own:.1f} is not above that of the list, {of_lists:.1f}"
            self.rules.append(Rule(name, False, why))
            return False
        if self.workshop.size in LINEARS:
            other = STATIC if self.workshop.size in WITH_PIECES else "cnn"
            why = f"soft labels teach a linear CRF nothing that pays (--size {other})"
            self.rules.append(Rule(name, False, why))
            return False
        return True

    def _teach(self, stack: Stack, members: Sequence[Member]) -> None:
        """Students, as long as they make the combination better."""
        before = self.arena.f1(COMBINED)
        for n in range(1, ROUNDS + 1):
            student, trainings = self._student(n, stack)
            self.workshop.train(trainings)
            self.rules.append(Rule(student.title, True, "learns what the combination says of the text"))
            self._enter(student)
            title = f"{COMBINED} with student" if n == 1 else f"{COMBINED} with student {n}"
            stack = self._combine(title, [*members, student])
            now = self.arena.f1(title)
            if now <= before:
                self.say(f"'{student.title}' does not pay: F1 {now:.1f} with it, {before:.1f} without")
                return
            before = now

    def _student(self, n: int, stack: Stack) -> Tuple[Member, List[Training]]:
        """A student of what all know together; for each fold, of what those know who have not seen it."""
        name, models = f"student{n}", self.workshop.models
        folder, corpus = models / name, self.workshop.text
        assert corpus is not None  # or nothing is taught
        trainings = []
        for fold in (*range(len(self.arena.folds)), None):
            part = "whole" if fold is None else f"{fold + 1}"
            teacher = stack.save(folder / f"teacher-{part}", others=self.others, fold=fold)
            text = folder / f"text-{part}"
            soften(
                corpus,
                text,
                teacher,
                component=COMBINER,
                sources=self.others,
                exclude=[self.workshop.corpora.annotated],
                gpu_id=self.workshop.gpu_id,
                progress=self.workshop.progress,
            )
            gold, dev = (self.gold, self.dev or self.gold) if fold is None else (self._rest(fold), self._rest(fold))
            trainings.append(self.workshop.student(gold, text, dev, folder / f"model-{part}"))
        return self._member(name, STUDENT if n == 1 else f"{STUDENT} {n}", trainings[-1], trainings[:-1])

    def _rest(self, fold: int) -> Path:
        return self.arena.folds[fold].rest
