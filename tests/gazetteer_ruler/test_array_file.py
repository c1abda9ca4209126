"""Files of arrays: round trip, and every kind of damage."""

import copy
import json
import struct
import zlib

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from hypothesis.extra.numpy import arrays as numpy_arrays

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.array_file import DTYPES, MAGIC, ArrayFile, dump_arrays, open_arrays, write_arrays

META = {"labels": ["A", "Ä", "品牌"], "n": 3, "nested": {"x": [None, 1.5]}}
ARRAYS = {
    "bytes": numpy.arange(100, dtype="uint8"),
    "none": numpy.zeros(0, dtype="uint64"),
    "shorts": numpy.arange(7, dtype="uint16"),
    "ints": numpy.arange(33, dtype="uint32"),
    "ids": numpy.asarray([0, 2**64 - 1, 2**63], dtype="uint64"),
}


def read_all(file_):
    return {name: file_[name].tolist() for name in ARRAYS}


def read(data):
    return read_all(ArrayFile(data, "the file"))


def parts(data):
    """The header as parsed, and what is behind it."""
    length = struct.unpack_from("<I", data, len(MAGIC))[0]
    start = len(MAGIC) + 8
    return json.loads(data[start : start + length]), data[start + length :]


def with_header(header, data):
    """The same contents under another header, whose checksum is right."""
    old = struct.unpack_from("<I", data, len(MAGIC))[0]
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    text = text.ljust(old)
    rest = data[len(MAGIC) + 8 + old :]
    return MAGIC + struct.pack("<II", len(text), zlib.crc32(text)) + text + rest


def refused(data):
    with pytest.raises(WeaknerError, match=r"WK210.*the file") as error:
        read(data)
    assert str(error.value).count("WK210") == 1
    return str(error.value)


def test_round_trip(tmp_path):
    path = tmp_path / "a" / "arrays"
    write_arrays(path, META, ARRAYS)
    assert path.read_bytes() == dump_arrays(META, ARRAYS)
    expected = {name: array.tolist() for name, array in ARRAYS.items()}
    for file_ in (open_arrays(path), ArrayFile(path.read_bytes(), "x")):
        assert file_.meta == META
        assert read_all(file_) == expected
        assert [file_[name].dtype for name in ARRAYS] == [array.dtype for array in ARRAYS.values()]
    assert [entry.name for entry in path.parent.iterdir()] == ["arrays"]


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: numpy_arrays(dtype.replace("<", ""), array_shapes(max_dims=1, min_side=0, max_side=40))
        ),
        max_size=5,
    ),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_round_trip_of_any_arrays(arrays, meta):
    file_ = ArrayFile(dump_arrays(meta, arrays), "x")
    assert file_.meta == meta
    for name, array in arrays.items():
        assert file_[name].dtype == array.dtype
        assert file_[name].tolist() == array.tolist()


def test_no_arrays():
    assert ArrayFile(dump_arrays({}, {}), "x").meta == {}


def test_arrays_that_are_not_contiguous_or_little_endian():
    stored = {"a": numpy.arange(10, dtype="uint32")[::3], "b": numpy.arange(5, dtype=">u8")}
    file_ = ArrayFile(dump_arrays({}, stored), "x")
    assert file_["a"].tolist() == [0, 3, 6, 9]
    assert file_["b"].tolist() == [0, 1, 2, 3, 4]


def test_long_header():
    meta = {"labels": ["label" * 10_000] * 400}  # 20 MB
    file_ = ArrayFile(dump_arrays(meta, ARRAYS), "x")
    assert file_.meta == meta
    assert file_["ids"].tolist() == ARRAYS["ids"].tolist()


def test_arrays_are_views_that_cannot_be_written(tmp_path):
    write_arrays(tmp_path / "a", META, ARRAYS)
    for file_ in (open_arrays(tmp_path / "a"), ArrayFile(dump_arrays(META, ARRAYS), "x")):
        array = file_["ints"]
        assert not array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


def test_arrays_lie_at_multiples_of_64():
    header, _ = parts(dump_arrays(META, ARRAYS))
    assert {item["offset"] % 64 for item in header["arrays"]} == {0}


def test_file_may_be_replaced_or_removed_while_it_is_mapped(tmp_path):
    path = tmp_path / "a"
    write_arrays(path, META, ARRAYS)
    file_ = open_arrays(path)
    write_arrays(path, {}, {"ids": numpy.zeros(9, dtype="uint8")})
    again = open_arrays(path)
    path.unlink()
    assert file_["ids"].tolist() == ARRAYS["ids"].tolist()
    assert again["ids"].tolist() == [0] * 9


def test_copies_share_the_contents(tmp_path):
    write_arrays(tmp_path / "a", META, ARRAYS)
    file_ = open_arrays(tmp_path / "a")
    assert copy.deepcopy(file_) is file_


def test_types():
    file_ = ArrayFile(dump_arrays(META, ARRAYS), "the file")
    assert file_.typed("ints", "<u4").tolist() == list(range(33))
    for name, dtype in (("ints", "<u8"), ("ids", "<u4"), ("nothing", "<u4")):
        with pytest.raises(WeaknerError, match=f"WK210.*the file.*{name}"):
            file_.typed(name, dtype)


def test_unknown_name():
    with pytest.raises(WeaknerError, match=r"WK210.*no array 'x'"):
        ArrayFile(dump_arrays(META, ARRAYS), "the file")["x"]


# Damage


def test_truncated_anywhere():
    data = dump_arrays(META, ARRAYS)
    for length in range(len(data)):
        refused(data[:length])


def test_longer_than_it_should_be():
    assert "instead of" in refused(dump_arrays(META, ARRAYS) + b"\0")


def test_flipped_bit_anywhere():
    data = dump_arrays(META, ARRAYS)
    header, _ = parts(data)
    start = struct.unpack_from("<I", data, len(MAGIC))[0] + len(MAGIC) + 8
    used = set(range(start))
    for item in header["arrays"]:
        used.update(range(item["offset"], item["offset"] + item["size"] * int(item["dtype"][2:])))
    for place in sorted(used):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        refused(bytes(damaged))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_any_other_file(data, begins_well):
    refused(MAGIC + data if begins_well else data)


@pytest.mark.parametrize("length", [0, 2**31, 2**32 - 1])
def test_absurd_length_of_the_header(length):
    data = dump_arrays(META, ARRAYS)
    refused(MAGIC + struct.pack("<I", length) + data[len(MAGIC) + 4 :])


@pytest.mark.parametrize("data", [b"", b"label,term\nA,b\n", b"{}", MAGIC, MAGIC + b"\0" * 8, b"\0" * 100])
def test_files_of_another_kind(tmp_path, data):
    path = tmp_path / "the file"
    path.write_bytes(data)
    with pytest.raises(WeaknerError, match=r"WK210.*the file"):
        open_arrays(path)


def test_missing_file(tmp_path):
    with pytest.raises(WeaknerError, match=r"WK100.*copy the pipeline again, or initialise it anew"):
        open_arrays(tmp_path / "a")


@pytest.mark.parametrize(
    "header",
    [
        None,
        5,
        [],
        "text",
        {},
        {"meta": {}, "arrays": []},
        {"meta": None, "arrays": [], "length": 0},
        {"meta": "text", "arrays": [], "length": 0},
        {"meta": {}, "arrays": None, "length": 0},
        {"meta": {}, "arrays": [1], "length": 0},
        {"meta": {}, "arrays": [{}], "length": 0},
        {"meta": {}, "arrays": [{"name": []}], "length": 0},
        {"meta": {}, "arrays": [], "length": "long"},
        b"not JSON",
        b"\xff\xfe\xfd",
        b"[" * 100_000,
        b"9" * 100_000,
    ],
)
def test_header_of_another_form(header):
    refused(with_header(header, dump_arrays(META, ARRAYS)))


@pytest.mark.parametrize(
    "field, value",
    [
        *(("dtype", value) for value in ("<u4", "<f8", "<i8", "|O", "<u16", "", None, 8, ["<u8"])),
        *(("size", value) for value in (2, 4, -1, 2**62, 10**30, 1.5, "3", None, True, [3])),
        *(("offset", value) for value in (0, 64, 1, -64, 2**62, 10**30, 0.0, "0", None)),
        *(("crc32", value) for value in (0, -1, 2**40, "0", None, 1.5)),
        *(("name", value) for value in ("other", None, 5, [], {})),
        ("unknown", 1),
    ],
)
def test_wrong_field_of_an_array(field, value):
    data = dump_arrays(META, ARRAYS)
    header, _ = parts(data)
    header["arrays"][-1][field] = value  # "ids", three times <u8
    refused(with_header(header, data))


@pytest.mark.parametrize("field", ["name", "dtype", "size", "offset", "crc32"])
def test_missing_field_of_an_array(field):
    data = dump_arrays(META, ARRAYS)
    header, _ = parts(data)
    del header["arrays"][-1][field]
    refused(with_header(header, data))


def test_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    write_arrays(path, META, ARRAYS)
    with pytest.raises(TypeError):
        write_arrays(path, {"x": object()}, ARRAYS)
    assert open_arrays(path).meta == META
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
