"""What a start-up failure is about, by the object that was asked: its name where it raised."""

from __future__ import annotations

import re

_LACKS = re.compile(r"'(?:NoneType|module)' object has no attribute '(\w{1,80})'")
_LIBRARIES = frozenset(
    ("tf", "tfp", "keras", "torch", "nn", "jax", "jnp", "np", "scipy", "cv2", "pd", "wandb",
     "tfds", "nltk", "spacy", "cp", "cupy", "mx", "pl", "dgl")
)  # fmt: skip
"""Names that modules go by: one that is None was not installed, one that lacks something is of
another version."""
_WORDS = re.compile(r"(?i)(?:tokeni[sz]er|processor|feature_extractor|sp_?model|vocab)$")
"""What comes with a pretrained model, and is None where it could not be loaded."""
_OF_WEIGHTS = re.compile(
    r"(?i)\b\w*(?:checkpoint|ckpt|state_dict|pre_?trained)\w*\[(?!.{0,40}(?:epoch|step|optim))"
)
_PASSED_ON = re.compile(r"\bsuper\([^)]{0,80}\)\.__init__\(")
UNEXPECTED = "__init__() got an unexpected keyword argument"
_LINES = re.compile(
    r"\blines?\w{0,12}(?:\.\w{1,8}\(\))*\.split\("
    r"|\.split\([^)]{0,20}\)\[-?\d\][^#]{0,40}\bfor \w+ in "
    r"\w*(?:line|row|list|file|data|f|fp|reader)\w*\b"
)
_SETTINGS = re.compile(r"\b(?:args|opts?|cfg|config|environ|hparams|FLAGS)\b")
_AS_MANY = re.compile(
    r"\bassert (?:len\([^)]{1,80}\) *== *len\("
    r"|[\w.]{1,60}\.shape(?:\[0\])? *== *\(?(?:self\.)?(?:N|n|num|Num)_?"
    r"(?:im(?:a?ge?)?|sample|particle|example|record|frame|utterance|row)s?\b)"
)
"""As many as something else of the data; a model's shapes begin with classes, heads, a batch."""
_UNREAD = re.compile(
    r"\b_?(?:im|ims|imgs?|images?|imread|wav|audio|x_?train|train_x)(?:_\w+)?\b",
    re.IGNORECASE,
)
_NO_MOLECULE = re.compile(
    r"\brdkit\.Chem\.\w+(?:\.\w+)?\(NoneType|'NoneType' object has no attribute 'Get"
    r"(?:Num|Atom|Bond|Conformer|Ring|Mol|Substruct)"
)
"""What RDKit gives for a text that is no molecule."""
_OTHER_SPACES = re.compile(r"\.spaces\.\w+\.(\w+)'>.{0,400} but \1\(")
"""Gym's and gymnasium's classes have the same names (stable-baselines3)."""

_PATH = (
    r"['\"]?[\w.-]{0,80}/(?![^\s'\"]{1,400}\.(?:pth?|ckpt|safetensors|bin)\b)[^\s'\"]{1,400}['\"]?"
)
_AT_ODDS = re.compile(
    r"(?i)\b(?:keys|utt(?:erance)?s?|ids|lengths|(?:number|count)s? of \w{3,20}) (?:are |is )?"
    r"(?:mis-?match\w*|differ\w*|do(?:es)?(?:n[o']t| not) match) (?:between|in) "
    rf"{_PATH} (?:and|!=|vs\.?) {_PATH}"
)
"""Two files, neither of weights, that should list the same."""


def by_object(exception: str, said: str, code: str) -> str | None:
    """data, config, env or asset; None where neither name nor operation tells."""
    unread = "'NoneType' object " in said and _UNREAD.search(code)
    if unread or _NO_MOLECULE.search(said) or _AT_ODDS.search(said):
        return "data"
    if found := _LACKS.search(said):
        return _lacking(found[1], "'NoneType'" in found[0], code)
    if _OTHER_SPACES.search(said):
        return "env"
    if exception.endswith("KeyError") and _OF_WEIGHTS.search(code):
        return "asset"
    if exception.endswith("TypeError") and UNEXPECTED in said and _PASSED_ON.search(code):
        return "env"  # what the library's class took before
    taken_apart = exception.endswith(("IndexError", "ValueError")) and _LINES.search(code)
    if (taken_apart and not _SETTINGS.search(code)) or _AS_MANY.search(code):
        return "data"
    return None


def _lacking(attribute: str, none: bool, code: str) -> str | None:
    for owner in re.findall(rf"\b(\w{{1,80}})\.{attribute}\b", code):
        if owner in _LIBRARIES:
            return "env"
        if none and _WORDS.search(owner):
            return "asset"
    return None
