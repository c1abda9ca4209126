"""Texts of which spaCy's tokenizer would take very long."""

from spacy.language import Language
from spacy.tokenizer import Tokenizer

# Signs that are neither letters nor digits, without white space between them. It strips them one by one, and looks at
# all that is left each time: 2,000 take about a second, 20,000 minutes.
LONGEST_RUN = 2000


def longest_run(text: str, nlp: Language) -> int:
    """How many signs in a text stand without white space between them, if they are too many.

    text (str): The text.
    nlp (Language): Its tokenizer would be used.
    RETURNS (int): The highest number; 0 if it is not above `LONGEST_RUN`, or the tokenizer strips none.
    """
    tokenizer = nlp.tokenizer
    strips = isinstance(tokenizer, Tokenizer) and (tokenizer.prefix_search or tokenizer.suffix_search) is not None
    if len(text) <= LONGEST_RUN or not strips:
        return 0
    runs = (run for run in text.split() if len(run) > LONGEST_RUN)
    found = max((sum(not char.isalnum() for char in run) for run in runs), default=0)
    return found if found > LONGEST_RUN else 0
