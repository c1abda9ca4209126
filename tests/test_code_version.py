from spacy_weakner import __version__
from spacy_weakner.code_version import code_version, hash_sources


def test_every_source_counts(tmp_path):
    (tmp_path / "part").mkdir()
    hashes = []
    for name, text in (("a.py", "a"), ("a.py", "b"), ("part/c.cfg", "x"), ("part/d.jinja", "x"), ("a.py", "a")):
        (tmp_path / name).write_text(text)
        hashes.append(hash_sources(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "z.py")
    hashes.append(hash_sources(tmp_path))
    assert len(set(hashes)) == len(hashes)


def test_comments_do_not_count(tmp_path):
    hashes = []
    for text in ("a = 1\nb = 2\n", "# why\na = 1\n\n    # x\nb = 2\n", "a = 1\n# b = 2\n"):
        (tmp_path / "a.py").write_text(text)
        hashes.append(hash_sources(tmp_path))
    assert hashes[0] == hashes[1] != hashes[2]


def test_it_names_the_version():
    assert code_version().startswith(f"{__version__} ") and code_version() == code_version()
