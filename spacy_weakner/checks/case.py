"""Check that gold and text have the same case: a model trained on one case finds little in the other."""

from typing import Dict, Mapping, Sequence

from .findings import Findings

_FEW = 20  # texts with cased letters; fewer are not enough for a comparison
_DIFFERENT = 0.3  # minimum difference between shares that is reported


def check_case(files: Mapping[str, Sequence[str]], findings: Findings) -> None:
    """Compare the shares of lower-case and all-capitals texts in some files, given by option."""
    shares: Dict[str, Dict[str, float]] = {"in lower case": {}, "in capitals": {}}
    for where, texts in files.items():
        lower = sum(text == text.lower() != text.upper() for text in texts)
        upper = sum(text == text.upper() != text.lower() for text in texts)
        n = sum(text.lower() != text.upper() for text in texts)
        if n >= _FEW:
            shares["in lower case"][where], shares["in capitals"][where] = lower / n, upper / n
    for name, found in shares.items():
        if found and max(found.values()) - min(found.values()) > _DIFFERENT:
            listed = ", ".join(f"{round(100 * share)} % of {where}" for where, share in found.items())
            cure = "Annotate gold that looks like the text. Projects also train on copies of the gold in other case "
            cure += "(lower_case and upper_case in project.yml), but some labels depend on case alone."
            findings.warning(next(iter(found)), f"The files differ in case. Texts {name}: {listed}.", cure)
