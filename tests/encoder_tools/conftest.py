import gc
import random

import pytest

from spacy_weakner.encoders.transformer import load_encoder_tokenizer

from .util import run


@pytest.fixture(scope="package", autouse=True)
def fewer_objects():
    """A `Trainer` collects garbage at its begin, which takes long where as much is imported as here."""
    import spacy_weakner.encoder_tools.trainer  # noqa: F401

    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="package")
def model(tiny_bert, tmp_path_factory):
    """A BERT of two layers with a head."""
    import transformers

    path = tmp_path_factory.mktemp("masked-lm")
    tokenizer = load_encoder_tokenizer(tiny_bert)
    config = transformers.AutoConfig.from_pretrained(tiny_bert, num_hidden_layers=2)
    transformers.set_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="package")
def text(tmp_path_factory):
    """80 sentences, each on a line."""
    draw = random.Random(0)
    names = ["anna", "bob", "smith", "zoe"]
    lines = [f"{draw.choice(names)} likes {draw.choice(names)}" + " at york" * draw.randrange(4) for _ in range(80)]
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture(scope="package")
def finished(model, text, tmp_path_factory):
    """An encoder adapted without disturbance, and the report. Never write there."""
    output = tmp_path_factory.mktemp("finished") / "out"
    return output, run(text, output, model, max_steps=20)
