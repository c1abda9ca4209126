import json
import shutil

import pytest


@pytest.fixture(scope="package")
def still_bert(tiny_bert, tmp_path_factory):
    """The tiny BERT without its own dropout, so that training and prediction give the same vectors."""
    folder = tmp_path_factory.mktemp("still") / "bert"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    (folder / "config.json").write_text(json.dumps(config))
    return folder
