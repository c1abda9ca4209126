"""The reader of every format that is not ours, by its name."""

from typing import Dict

from .brat import BRAT
from .dataturks import DATATURKS
from .doccano import DOCCANO
from .gliner import GLINER
from .huggingface import HUGGINGFACE
from .label_studio import LABEL_STUDIO
from .prodigy import PRODIGY
from .records import Tool
from .spacy_json import SPACY_JSON

TOOLS: Dict[str, Tool] = {
    "prodigy": PRODIGY,
    "label-studio": LABEL_STUDIO,
    "doccano": DOCCANO,
    "dataturks": DATATURKS,
    "brat": BRAT,
    "huggingface": HUGGINGFACE,
    "gliner": GLINER,
    "spacy-json": SPACY_JSON,
}
