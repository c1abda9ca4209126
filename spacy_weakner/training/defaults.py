"""What the heads are made of where a config does not say."""

from typing import Any, Dict, Optional

from thinc.api import Config

_TOK2VEC = """
[tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 96
depth = 4
embed_size = 2000
window_size = 1
maxout_pieces = 3
subword_features = true
"""


def default_config(text: str, layer: Optional[str] = None) -> Dict[str, Any]:
    """Default settings of a head.

    text (str): A config with a section `model`, which gets a convolutional encoder that needs no download.
    layer (Optional[str]): Section of the model that gets it; None: the model itself.
    RETURNS (Dict[str, Any]): The settings.
    """
    config: Dict[str, Any] = Config().from_str(text)
    section = config["model"] if layer is None else config["model"][layer]
    section["tok2vec"] = Config().from_str(_TOK2VEC)["tok2vec"]
    return config
