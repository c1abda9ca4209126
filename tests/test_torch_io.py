"""Torch modules as bytes."""

import pytest
import torch

from spacy_weakner.torch_io import module_from_bytes, module_to_bytes


def make(size):
    module = torch.nn.Linear(size, 2)
    module.kwargs = {"size": size}
    return module


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_any_type_come_back(dtype):
    module = make(3).to(dtype)
    loaded = module_from_bytes(module_to_bytes(module), make, "cpu")
    for name, tensor in module.state_dict().items():
        assert loaded.state_dict()[name].dtype == dtype and torch.equal(loaded.state_dict()[name], tensor)


def test_tied_weights():
    module = make(2)
    module.tied = module.weight

    def make_tied(size):
        other = make(size)
        other.tied = other.weight
        return other

    assert torch.equal(module_from_bytes(module_to_bytes(module), make_tied, "cpu").tied, module.weight)


def test_nothing_stays_nothing_and_other_sizes_are_refused():
    assert module_to_bytes(None) == b"" and module_from_bytes(b"", make, "cpu") is None
    with pytest.raises(ValueError, match="sizes differ"):
        module_from_bytes(module_to_bytes(make(3)), make, "cpu", {"size": 4})
