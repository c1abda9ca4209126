"""How far an update goes: per head, the files of the package that one `nlp.update` enters, and how deep its calls are.

    python benchmarks/depth.py [-v]

Counted is the second update on a small CNN, by `sys.setprofile`: the files of `spacy_weakner` in which a function is
called, and the functions of it that are on the stack at once, at most: `update` of the component is the first. Those of
spaCy, Thinc and numpy between them do not count, nor do comprehensions. `-v` prints the files and the functions.
"""

import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any, List, Set, Tuple

import spacy
from spacy.training import Example
from spacy.util import fix_random_seed

import spacy_weakner

PACKAGE = str(Path(spacy_weakner.__file__).parent)
COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
TEXTS = [
    ("We met Ann Lee in Bonn .", [(2, 4, "PER"), (5, 6, "LOC")]),
    ("Rome is far from Bonn .", [(0, 1, "LOC"), (4, 5, "LOC")]),
    ("Nobody knows .", []),
]
QUERIES = {"PER": "persons", "LOC": "places"}


def measure(head: str) -> Tuple[Set[str], List[str]]:
    """RETURNS (Tuple[Set[str], List[str]]): The files, and the deepest chain."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe(head)
    if head == "mrc_ner":
        nlp.config["initialize"]["components"] = {head: {"queries": QUERIES}}
    optimizer = nlp.initialize(lambda: examples(nlp))
    nlp.update(examples(nlp), sgd=optimizer)
    batch = examples(nlp)
    files: Set[str] = set()
    deepest: List[str] = []
    stack: List[str] = []

    def trace(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name in (
            "<listcomp>",
            "<genexpr>",
            "<dictcomp>",
            "<setcomp>",
        ):
            return
        if event == "call":
            path = str(Path(code.co_filename).relative_to(PACKAGE))
            files.add(path)
            stack.append(f"{path}:{code.co_name}")
            deepest = max(deepest, list(stack), key=len)
        elif event == "return":
            stack.pop()

    sys.setprofile(trace)
    try:
        nlp.update(batch, sgd=optimizer)
    finally:
        sys.setprofile(None)
    return files, deepest


def examples(nlp: Any) -> List[Example]:
    """RETURNS (List[Example]): Three annotated sentences."""
    result = []
    for text, entities in TEXTS:
        doc = nlp.make_doc(text)
        doc.cats = {"with": float(bool(entities)), "without": float(not entities)}
        doc.set_ents([spacy.tokens.Span(doc, *entity) for entity in entities])
        result.append(Example(nlp.make_doc(text), doc))
    return result


def main() -> None:
    """Print a line for each head."""
    warnings.filterwarnings("ignore")
    for head in ("sentence_category", "token_ner", "crf_ner", "span_ner", "mrc_ner"):
        files, chain = measure(head)
        print(f"{head:18} {len(files):3} files {len(chain):3} calls deep")
        if "-v" in sys.argv:
            print("   ", *sorted(files), "\n    ", "\n     ".join(chain))


if __name__ == "__main__":
    main()
