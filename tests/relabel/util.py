"""What the commands that change labels have in common."""

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.errors import WeaknerError


def nested_is_refused(doc, run, output):
    """Labels of `aggregate --nested` would stay as they are."""
    weak.set_group(doc, "sc", [(0, 1, "PER")], attrs={"weak": True})
    with pytest.raises(WeaknerError, match=r"WK345.*'sc'.*--nested"):
        run()
    assert not output.exists()
    # Gold of another component is none of its business.
    doc.spans["sc"].attrs.clear()
    run()
