"""Files of arrays: round trip, and damage."""

import json

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from hypothesis.extra.numpy import arrays as numpy_arrays
from safetensors.numpy import load_file

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.array_file import ArrayFile, dump_arrays, open_arrays, write_arrays

META = {"labels": ["A", "Ä", "品牌"], "n": 3, "nested": {"x": [None, 1.5]}}
ARRAYS = {
    "bytes": numpy.arange(101, dtype="uint8"),
    "none": numpy.zeros(0, dtype="uint64"),
    "shorts": numpy.arange(7, dtype="uint16"),
    "ints": numpy.arange(33, dtype="uint32"),
    "ids": numpy.asarray([0, 2**64 - 1, 2**63], dtype="uint64"),
}


def read_all(file_, arrays=ARRAYS):
    return {name: file_.get(name, f"<u{array.itemsize}").tolist() for name, array in arrays.items()}


def refused(data):
    with pytest.raises(WeaknerError, match=r"WK206.*the file") as error:
        read_all(ArrayFile(data, "the file"))
    assert str(error.value).count("WK206") == 1
    return str(error.value)


def test_round_trip(tmp_path):
    path = tmp_path / "a" / "arrays"
    write_arrays(path, META, ARRAYS)
    assert path.read_bytes() == dump_arrays(META, ARRAYS)
    expected = {name: array.tolist() for name, array in ARRAYS.items()}
    for file_ in (open_arrays(path), ArrayFile(path.read_bytes(), "x")):
        assert file_.meta == META
        assert read_all(file_) == expected
        # Views that cannot be written.
        array = file_.get("ints", "<u4")
        assert not array.flags.owndata
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    # Memory is mapped at the borders of pages.
    assert all(open_arrays(path).get(name, f"<u{a.itemsize}").flags.aligned for name, a in ARRAYS.items())
    # Others can read it.
    assert {name: array.tolist() for name, array in load_file(path).items()} == expected
    # A write that fails leaves the old file.
    with pytest.raises(TypeError):
        write_arrays(path, {"x": object()}, ARRAYS)
    assert open_arrays(path).meta == META
    assert [entry.name for entry in path.parent.iterdir()] == ["arrays"]
    # Neither contiguous nor little endian.
    stored = {"a": numpy.arange(10, dtype="uint32")[::3], "b": numpy.arange(5, dtype=">u8")}
    file_ = ArrayFile(dump_arrays({}, stored), "x")
    assert read_all(file_, stored) == {"a": [0, 3, 6, 9], "b": [0, 1, 2, 3, 4]}


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5).map("_{}".format),
        st.sampled_from(["u1", "u2", "u4", "u8"]).flatmap(
            lambda dtype: numpy_arrays(dtype, array_shapes(max_dims=1, min_side=0, max_side=40))
        ),
        max_size=5,
    ),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_round_trip_of_any_arrays(arrays, meta):
    file_ = ArrayFile(dump_arrays(meta, arrays), "x")
    assert file_.meta == meta
    assert read_all(file_, arrays) == {name: array.tolist() for name, array in arrays.items()}


def test_file_may_be_replaced_or_removed_while_it_is_mapped(tmp_path):
    path = tmp_path / "a"
    write_arrays(path, META, ARRAYS)
    file_ = open_arrays(path)
    write_arrays(path, {}, {"ids": numpy.zeros(9, dtype="uint64")})
    again = open_arrays(path)
    path.unlink()
    assert file_.get("ids", "<u8").tolist() == ARRAYS["ids"].tolist()
    assert again.get("ids", "<u8").tolist() == [0] * 9


# Damage


def test_truncated_anywhere_or_longer():
    data = dump_arrays(META, ARRAYS)
    for length in range(len(data)):
        refused(data[:length])
    assert "instead of" in refused(data + b"\0")


def test_flipped_bit_anywhere():
    data = dump_arrays(META, ARRAYS)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        try:  # of the header not all is read
            file_ = ArrayFile(bytes(damaged), "the file")
            assert file_.meta == META
            assert read_all(file_) == {name: array.tolist() for name, array in ARRAYS.items()}
        except WeaknerError as error:
            assert "WK206" in str(error)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_any_other_file(data, begins_well):
    refused(len(data).to_bytes(8, "little") + data if begins_well else data)


def test_files_of_another_kind(tmp_path):
    path = tmp_path / "the file"
    with pytest.raises(WeaknerError, match=r"WK100.*copy the pipeline again, or initialize it again"):
        open_arrays(path)
    for data in (b"", b"label,term\nA,b\n", b"{}", b"\0" * 100, b"\xff" * 100):
        path.write_bytes(data)
        with pytest.raises(WeaknerError, match=r"WK206.*the file"):
            open_arrays(path)


@pytest.mark.parametrize(
    "field, value",
    [
        *(("dtype", value) for value in ("U32", "F64", "", None, 8, ["U64"])),
        *(("data_offsets", value) for value in ([0, 8], [-8, 16], [0, 2**70], [8], [], None, "0", ["a", "b"])),
    ],
)
def test_wrong_field_of_an_array(field, value):
    data = dump_arrays(META, ARRAYS)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["ids"][field] = value
    text = json.dumps(header).encode()
    refused(len(text).to_bytes(8, "little") + text + data[8 + length :])
