"""What the tests of all heads share."""

import spacy

from ..util import head_config

# Everything that a head can write to a Doc.
TALKATIVE = {"crf_ner": {"scores": True, "n_best": 3}, "span_ner": {"nested": True}, "token_ner": {}}


def empty_pipeline(head, **settings):
    """A pipeline with a head that is not initialised, and the head."""
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe(head, config=head_config(head, **settings))
