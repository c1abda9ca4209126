"""Settings and storage."""

import pytest
import spacy

from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads.entities import EntityHead
from spacy_weakner.ty import TagScorer

from .util import LABELS, NAME, empty_pipeline


@pytest.mark.parametrize(
    "settings, name", [({"loss_weight": -1.0}, "loss_weight"), ({"head_learn_rate": -1.0}, "head")]
)
def test_settings_that_cannot_be(settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}"):
        empty_pipeline(**settings)


def test_settings_of_the_loading_config_win_and_cfg_holds_labels_only(category_path):
    pipe = spacy.load(category_path, config={"components": {NAME: {"loss_weight": 5.0}}}).get_pipe(NAME)
    assert pipe.loss_weight == 5.0
    assert pipe.cfg == {"labels": [*LABELS], "positive_label": None}


def test_protocols(nlp):
    """Stages that look for taggers do not find it."""
    pipe = nlp.get_pipe(NAME)
    assert callable(pipe.tick) and callable(pipe.on_next_update)
    assert not isinstance(pipe, (EntityHead, TagScorer))
