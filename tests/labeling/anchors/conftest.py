"""The parser of wikitext is an extra, which not every Python has."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("mwparserfromhell") else ["test_*.py"]
