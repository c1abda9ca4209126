"""Train spaCy entity recognizers from raw text, term lists, noisy labels and a little gold.

Everything is registered through entry points: after installation, configs can name the components, architectures,
losses, readers and callbacks of this package without `--code`.
"""

from .about import __version__

__all__ = ["__version__"]
