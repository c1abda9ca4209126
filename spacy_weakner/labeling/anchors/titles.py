"""What a link of a wiki leads to, as far as its title tells."""

from typing import FrozenSet, Iterable, Sequence


def words(text: str) -> FrozenSet[str]:
    """The words of a text."""
    return frozenset(text.split())


ARTICLE = "article"
OTHER = "other"
HIDDEN = "hidden"

# Of files and categories. Dumps bring the names of their wiki; these are for single pages of some large ones.
_HIDDEN = words(
    "file image category datei bild kategorie fichier catégorie archivo imagen categoría immagine categoria "
    "bestand afbeelding categorie ficheiro imagem plik grafika kategoria файл изображение категория зображення "
    "категорія fil 文件 檔案 图像 圖像 分类 分類 ファイル 画像 カテゴリ 파일 분류 ملف تصنيف קובץ קטגוריה"
)
_OTHER = words(
    "media special talk user user_talk project project_talk wikipedia wikipedia_talk wp file_talk mediawiki "
    "mediawiki_talk template template_talk help help_talk category_talk portal portal_talk draft draft_talk "
    "module module_talk book timedtext topic"
)
_PROJECTS = words(
    "w wikt wiktionary s wikisource b wikibooks n wikinews q wikiquote v wikiversity voy wikivoyage species "
    "wikispecies d wikidata c commons m meta mw foundation simple doi hdl arxiv"
)
# Namespaces whose links show a picture, or nothing, in place of their text.
_HIDDEN_KEYS = ("6", "14")


class Titles:
    """Tells links to articles from others.

    namespaces (Iterable[Sequence[str]]): Keys and names of a wiki's namespaces, as in its dumps; the English ones are
        known on every wiki.
    """

    def __init__(self, namespaces: Iterable[Sequence[str]] = ()) -> None:
        named = [(key, _fold(name)) for key, name in namespaces if name.strip() and key != "0"]
        self._hidden = {*map(_fold, _HIDDEN), *(name for key, name in named if key in _HIDDEN_KEYS)}
        self._other = {*map(_fold, _OTHER), *(name for key, name in named if key not in _HIDDEN_KEYS)}

    def kind(self, title: str, named: bool = True) -> str:
        """The kind of page that a link leads to.

        title (str): Its title as it is written, perhaps with a namespace, a prefix of another wiki, or a section.
        named (bool): True if it has a text of its own, so that its title is not shown.
        RETURNS (str): "article"; "other", which is a link but not to an article; or "hidden", which shows no text:
            files, categories, and the same page in other languages.
        """
        title = title.strip()
        colon = title.startswith(":")  # a link to a file, category or language in place of the thing itself
        title = title[colon:].lstrip()
        if not title or title.startswith(("#", "/", "../")):
            return OTHER  # a section of the page, or pages below it
        prefix, found, rest = title.partition(":")
        if not found:
            return ARTICLE
        if _fold(prefix) in self._hidden:
            return OTHER if colon else HIDDEN
        if _fold(prefix) in self._other:
            return OTHER
        if _is_interwiki(prefix.strip(), rest):
            return OTHER if colon or named else HIDDEN
        return ARTICLE


def _is_interwiki(prefix: str, rest: str) -> bool:
    # No list of all prefixes is known here. They are written in lower case and without a blank, other than the titles
    # of articles that hold a colon ("Alien: Covenant", "Re:Zero").
    if not rest or rest[0].isspace() or not (prefix.isascii() and prefix.islower()):
        return False
    parts = prefix.split("-")
    return prefix in _PROJECTS or (2 <= len(parts[0]) <= 3 and all(map(str.isalpha, parts)))


def _fold(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()
