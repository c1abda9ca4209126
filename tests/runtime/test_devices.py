"""What stages predict on. The GPU of these tests is the CPU under another name, and its number is 1."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from thinc.api import NumpyOps, get_current_ops, set_current_ops
from thinc.compat import has_gpu

import spacy_weakner
from spacy_weakner.calibration.calibrate import calibrate
from spacy_weakner.calibration.confidence import calibrate_confidence
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.language import CorpusLanguage, record_language
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.compare import compare
from spacy_weakner.heads.head import TrainableHead
from spacy_weakner.labeling.label import label
from spacy_weakner.relabel.complete import complete
from spacy_weakner.relabel.pick import pick
from spacy_weakner.relabel.soft import predict_soft_labels
from spacy_weakner.runtime.devices import on_device
from spacy_weakner.runtime.executor import Executor

from ..command_line import trainings_by
from ..mrc_ner.util import mrc_pipeline
from ..util import SENTENCES, InThisProcess, crf_pipeline, make_doc

CONFIG = Path(spacy_weakner.__file__).parent.parent / "configs" / "crf_ner.cfg"
# Each from a folder, as `folder` makes it, to "out" in it.
STAGES = {
    "label": lambda to, **gpu: label(to / "gold", to / "out", pipeline=to / "crf", **gpu),
    "label with workers": lambda to, **gpu: label(to / "gold", to / "out", pipeline=to / "crf", workers=2, **gpu),
    "confidence": lambda to, **gpu: calibrate_confidence([(to / "crf", to / "gold")], **gpu),
    "complete": lambda to, **gpu: complete(to / "weak", to / "out", to / "crf", **gpu),
    "compare": lambda to, **gpu: compare(to / "gold", {"crf": to / "crf"}, **gpu),
    "calibrate": lambda to, **gpu: calibrate(to / "crf", to / "gold", to / "out", fit=["temperature"], **gpu),
    "pick": lambda to, **gpu: pick(to / "weak", to / "out", to / "mrc", **gpu),
    "soft": lambda to, **gpu: predict_soft_labels(to / "weak", to / "out", [to / "crf"], **gpu),
}
every_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


class GPU(NumpyOps):
    pass


@pytest.fixture
def ops_seen(monkeypatch):
    """Puts the GPU there; the ops under which pipelines are loaded and used."""

    def require_gpu(gpu_id):
        set_current_ops(GPU())
        if gpu_id != 1:
            raise RuntimeError("invalid device\nordinal")

    def watch(owner, name, where):
        function = getattr(owner, name)

        def watched(*args, **kwargs):
            where.append(type(get_current_ops()))
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    seen = {"load": [], "use": []}
    monkeypatch.setattr("spacy_weakner.runtime.devices.require_gpu", require_gpu)
    watch(spacy, "load", seen["load"])
    watch(Language, "pipe", seen["use"])
    watch(TrainableHead, "map_outputs", seen["use"])
    return seen


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    """Copy them; never write there."""
    path = tmp_path_factory.mktemp("pipelines")
    crf_pipeline().to_disk(path / "crf")
    mrc_pipeline().to_disk(path / "mrc")
    return path


@pytest.fixture
def folder(tmp_path, pipelines, monkeypatch):
    """Corpora and pipelines; workers and trainings run in this process."""

    def train(config, output, overrides, gpu_id):
        shutil.copytree(tmp_path / "crf", output / "model-last")

    monkeypatch.setattr(Executor, "_pool", lambda self, folder: nullcontext(InThisProcess()))
    trainings_by(train, monkeypatch)
    shutil.copytree(pipelines, tmp_path, dirs_exist_ok=True)
    docs = [make_doc(spacy.blank("xx"), text, entities) for text, entities in SENTENCES]
    for name in ("gold", "weak"):
        for doc in docs:
            weak.set_weak(doc, name == "weak")
        write_docs(tmp_path / name / "a.spacy", docs[:2])
        write_docs(tmp_path / name / "b.spacy", docs[2:])
        record_language(tmp_path / name, CorpusLanguage.make("xx"))
    return tmp_path


@every_stage
def test_pipelines_are_loaded_and_used_on_the_gpu(folder, ops_seen, stage):
    ops = get_current_ops()
    report = stage(folder, gpu_id=1)
    assert ops_seen["load"][-1] is GPU and {*ops_seen["use"]} == {GPU} and get_current_ops() is ops
    if hasattr(report, "skipped"):  # the result does not depend on it
        assert stage(folder).skipped == 2
    shutil.rmtree(folder / "out", ignore_errors=True)
    ops_seen["use"].clear()
    stage(folder)
    assert ops_seen["use"] and GPU not in ops_seen["use"]


@pytest.mark.skipif(has_gpu, reason="needs a machine without a GPU")
@every_stage
def test_a_gpu_that_is_not_there(folder, stage):
    ops, files = get_current_ops(), set(folder.rglob("*"))
    for gpu_id, message in ((0, "WK432.*GPU 0"), (-2, "WK005.*gpu_id")):
        with pytest.raises(WeaknerError, match=message):
            stage(folder, gpu_id=gpu_id)
    assert get_current_ops() is ops and set(folder.rglob("*")) == files


def test_another_gpu_than_is_there(ops_seen):
    ops = get_current_ops()
    with pytest.raises(WeaknerError, match=r"WK432.*GPU 2: invalid device ordinal"), on_device(2):
        pass
    assert get_current_ops() is ops


def test_the_ops_come_back(ops_seen):
    ops = get_current_ops()
    with pytest.raises(KeyboardInterrupt), on_device(1):
        assert type(get_current_ops()) is GPU
        with on_device(-1):
            assert type(get_current_ops()) is not GPU
        assert type(get_current_ops()) is GPU
        raise KeyboardInterrupt
    assert get_current_ops() is ops
