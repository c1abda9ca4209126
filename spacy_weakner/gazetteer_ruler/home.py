"""Where a component stands."""

import weakref
from typing import Any, Dict, Optional, Tuple

from spacy.language import Language


class Home:
    """The pipeline that a component was created in, while it lives. It is not pickled with the component; in a copy of
    the pipeline it is the copy.

    nlp (Optional[Language]): The pipeline.
    """

    def __init__(self, nlp: Optional[Language] = None) -> None:
        self._nlp = None if nlp is None else weakref.ref(nlp)

    def __call__(self) -> Optional[Language]:
        """RETURNS (Optional[Language]): The pipeline, if there is one."""
        return None if self._nlp is None else self._nlp()

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Home":
        nlp = self()
        return Home(memo.get(id(nlp), nlp))

    def __reduce__(self) -> Tuple[Any, ...]:
        return Home, ()
