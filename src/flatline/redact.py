"""
Secrets are masked at the door: before a line is shown, stored or compared.

`mask` keeps the line count; twice is the same as once, so that `verify` can mask what it re-reads
and compare; its time grows with the length of the text and no faster.  A secret is told by its
shape, which its issuer documents, or by the name before it: a value after `password=`,
`--api-key` or `export X_TOKEN=` is masked, a count, a special token or a switch after such a name
(`tokens=4096`, `eos_token: </s>`, `api_key=None`) is not.  Hexadecimal digests have no shape of
their own: a commit stays, a wandb key is masked where its name or `wandb login` stands before it.
"""

from __future__ import annotations

import base64
import re

MASK = "[masked]"
_MASKED = re.compile(re.escape(MASK) + r"(?:~\d{1,7})?")
EXCERPT_FROM = 8
"""How many times its length an excerpt is masked from, so that no secret is cut before it is."""
WHOLE = 1 << 16
"""Characters of a line that are looked through for the part that is shown."""

_ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?")
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:hf_|api_org_)(?=[a-z0-9]{0,40}[A-Z]|[a-z0-9]{30})[A-Za-z0-9]{16,}+"  # Hugging Face
    r"|sk-(?=[A-Za-z_-]{0,80}+[0-9])[A-Za-z0-9_-]{16,}+"  # OpenAI, Anthropic, OpenRouter
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}+|gsk_[A-Za-z0-9]{20,}+"  # Stripe, Groq
    r"|(?:xai|nvapi|pplx)-[A-Za-z0-9_-]{20,}+|r8_[A-Za-z0-9]{30,}+"  # xAI, NVIDIA, Replicate
    r"|tgp_v\d_[A-Za-z0-9_-]{20,}+"  # Together
    r"|fw_(?=[a-z]*+[A-Z0-9])[A-Za-z0-9]{22,}+(?!_)"  # Fireworks
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+"  # GitHub
    r"|gl(?:pat|rt|dt|ptt|cbt|soat|agent)-[A-Za-z0-9_.-]{16,}+"  # GitLab
    r"|(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}+"  # Slack
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS key ids
    r"|AIza[A-Za-z0-9_-]{30,}+|ya29\.[A-Za-z0-9_.-]{20,}+|GOCSPX-[A-Za-z0-9_-]{20,}+"  # Google
    r"|wandb_v\d_[A-Za-z0-9_]{20,}+|lsv2_[a-z]{2}_[a-z0-9_]{20,}+"  # W&B, LangSmith
    r"|KGAT_[0-9a-f]{20,}+|(?<!-)(?:as|ak)-(?=[a-z]*+[A-Z0-9])[A-Za-z0-9]{22}(?![\w-])"
    # ^ Kaggle, Modal
    r"|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{30,}+|dckr_pat_[A-Za-z0-9_-]{20,}+"  # registries
    r"|dapi[0-9a-f]{32}(?![0-9a-f])|hv[sb]\.[A-Za-z0-9_-]{20,}+"  # Databricks, Vault
    r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"  # SendGrid
    r"|do[opr]_v1_[0-9a-f]{40,}+|lin_api_[A-Za-z0-9]{30,}+|pul-[0-9a-f]{40}"
    # ^ DigitalOcean, Linear, Pulumi
    r"|glsa_[A-Za-z0-9]{20,}+_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{30,}+"  # Grafana
    r"|shp(?:at|ca|pa|ss)_[0-9a-f]{32}|tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,}+"  # Shopify, Tailscale
    r"|PMAK-[0-9a-f]{20,}+-[0-9a-f]{20,}+|(?<!-)key-[0-9a-f]{32}(?![0-9a-f])"  # Postman, Mailgun
    r"|ATATT3[A-Za-z0-9_=-]{40,}+|AGE-SECRET-KEY-1[A-Z0-9]{40,}+"  # Atlassian, age
    r"|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}+"  # Terraform
    r"|secret_[A-Za-z0-9_]{20,200}+\.[A-Za-z0-9]{20,}+"  # Lambda
    r"|2[A-Za-z0-9]{26}_[A-Za-z0-9]{20,22}(?![A-Za-z0-9_])"  # ngrok
    r"|[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}+"  # Microsoft Entra
    r"|MUNGE:[A-Za-z0-9+/=]{20,}+:?"  # what munged gives to authenticate a user
    r"|eyJ(?:[A-Za-z0-9_-]{8,200}+|(?<![_-]eyJ)[A-Za-z0-9_-]{200,}+)"  # JSON Web Tokens
    r"\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)*+"
    r"|MII[A-Za-z0-9+/]{40,}+={0,2}"  # the first line of a key or certificate
    r"|[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])"  # Azure storage keys: 64 bytes
    r")|(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{32,}+"  # Telegram
    r"|hf_(?=[a-z0-9]{0,33}[A-Z])(?=[A-Za-z]{0,33}[0-9])[A-Za-z0-9]{34}(?![A-Za-z0-9])"
    # ^ Hugging Face behind a letter: `V` of a pickle's text, what a damaged file holds
)
_HOOKS = re.compile(
    r"(hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/"
    r"|webhook\.office\.com/webhookb2/)[A-Za-z0-9@_/-]{8,}+"
)
_URL_USER = re.compile(r"(://)(?:([^\s/:@'\"]{0,100}:)[^\s/'\"]{1,400}|[A-Za-z0-9_-]{20,200})(@)")
_URL_SIGNATURE = re.compile(
    r"(?i)([?&;](?:x-[a-z]{2,8}-(?:signature|credential|security-token)|signature|sig)=)"
    r"(?!\[masked\])[^\s&'\"<>]++"
)
_HEADER = re.compile(
    r"(?i)((?:authorization|cookie)['\"]?\s{0,3}[:=]\s{0,3}(?:b(?=['\"]))?['\"]?"
    r"(?:(?:basic|bearer|token|digest|negotiate|apikey)\s{1,3})?+)(?!\[masked\])"
    r"(?!(?:basic|bearer|token|digest|negotiate|apikey)\b)[^\s'\",]{4,}+"
)
_BEARER = re.compile(
    r"(?i)\b(bearer\s{1,3})(?=[a-z+/._~=-]{0,60}[0-9]|\S{20})[A-Za-z0-9+/=._~-]{12,}+"
    r"|(\bbasic\s|['\"]auth['\"]\s{0,3}:\s{0,3}['\"])([A-Za-z0-9+/]{8,1000}+={0,2})"
)
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s:,.\\]|-(?!----)){0,20000}+(?:-----END [A-Z0-9 ]{0,40}-----)?"
)
_PRIVATE_LINE = re.compile(
    r"(?m)(^|[\]:|\s])(?=\S{0,69}[g-zG-Z+/])(?=\S{0,69}[A-Z])(?=\S{0,69}[a-z])(?=\S{0,69}[0-9])"
    r"(?:[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{20,69}={1,2})(?=\r|$)"
)  # what lies within a PEM (64) or OpenSSH (70) block, a line at a time, and its last one
_COMMANDS = re.compile(
    r"(?i)(\bsshpass\s{1,3}-p\s{0,3}"
    r"|\bwandb\s{1,3}login\s{1,3}(?:--(?:relogin|cloud|verify|host[= ]\S{1,200})\s{1,3}){0,4}"
    r"|\bwandb\.login\((?:key\s?=\s?)?['\"]|\bauthtoken\s{1,3}"
    r"|\bcurl(?=\s)[^\n]{0,300}?\s(?:-u|--user)[ =]\s{0,3}[^\s:]{1,100}:"
    r"|\b(?:docker|podman|apptainer|singularity)\s[^\n]{0,40}?\blogin\s[^\n]{0,200}?\s-p[ =]"
    r"|\bredis-cli(?=\s)[^\n]{0,200}?\s-a\s{1,3}|\bmysql(?:dump)?(?=\s)[^\n]{0,200}?\s-p(?=\S)"
    r"|\"username\":\s?\"[^\"\n]{1,100}\",\s?\"key\":\s?\""
    r"|private_key_id\\{0,2}['\"]?\s?[:=]\s?['\"]?"
    r"|\blogin\s{1,3}\S{1,100}\s{1,3}password\s{1,3}"
    r"|\bpassword for [^\s:]{1,60}:\s{0,3}|\bbindpw\s{1,3}|<(?:password|secret|token|api_?key)>"
    r"|\baws\s[^\n]{0,60}?\bset\s{1,3}\S{0,80}?(?:secret|token)[\w.]{0,40}\s{1,3}"
    r"|\b(?:auth\s?=\s?|httpbasicauth)\(\s?['\"][^'\"\n]{1,100}['\"],\s?['\"]"
    r"|(?:\b(?:setenv|export)\s{1,3}|^|(?<=\r))"
    r"(?-i:[A-Z][A-Z0-9_]{0,60}(?:TOKEN|KEY|SECRET|PASSWORD|PASS))[ \t]{1,8}(?=\S+(?:\r|$))"
    r"|\bsetenv\s{1,3}(?-i:[A-Z][A-Z0-9_]{0,60}(?:TOKEN|KEY|SECRET|PASSWORD|PASS))[ \t]{1,8}"
    r"|(?:^|(?<=\r))\s{0,8}password[ \t]{1,8}(?=\S+(?:\r|$)))(?!-)[^\s'\"<]++",
    re.MULTILINE,
)
_PIPED = re.compile(
    r"(\becho\s{1,3}(?:-n\s{1,3})?['\"]?)(?!\[masked\])[^\s'\"|]{1,400}+(?=['\"]?\s{0,3}\|\s{0,3}"
    r"(?:sudo\s[^\n|]{0,40}-S\b|[^\n|]{0,120}?(?:--password-stdin|\blogin\b)))"
)
_NAME = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|secret|credentials?|token|jwt|pwd|pass|pat|key)"
    r"(?:\\{0,2}['\"]?\]?\s{0,3}(?:=>|[=:：＝]|%3[dD]|\?(?=[^\s?]))\s{0,3}(?:b(?=['\"]))?"
    r"|['\"],\s?(?=['\"])|[ \t]{1,3}(?:is[ \t]{1,3})?)"
    r"(\\{0,2}['\"])?"
)
"""A question mark is what a fullwidth sign becomes where it cannot be encoded."""
_BEFORE = re.compile(r"[A-Za-z0-9_-]*+\Z")
_STRONG = re.compile(
    r"(?i)(?:password|passwd|passphrase|secret"
    r"|(?:api|access|private|secret|account|encryption|signing|wandb|master|shared)[-_ ]?key)\Z"
)
_WEAK = re.compile(r"(?i)(?:token|credentials?)\Z")
_ENVIRONMENT = re.compile(
    r"[A-Z][A-Z0-9_]*_(?:TOKEN|CREDENTIALS?|PWD|PASS|PAT|KEY|JWT)\Z|TOKEN\Z|(?i:(?:\A|_)pwd)\Z"
)
_VALUE = re.compile(r"(?:[^\s'\"`,;&]|[,;&](?![\s'\"]|\Z|[A-Za-z_][\w.-]{0,60}=))++")
_HEAD = re.compile(r"[^\s'\"`,;&]{0,80}")
_NOTHING = re.compile(
    r"(?i)(?:none|null|nil|true|false|empty|unset|undefined|required|\*+|\.{2,}|x{3,}"
    r"|<[^>]*>|\$\{?\w+\}?|\$\(.*|%\w+%|\{.*|\[.*|\(.*)[)\]}]*\Z"
)
_AMOUNT = re.compile(r"[-+]?[\d.,_]+(?:[eE][-+]?\d+)?[A-Za-z/%]{0,8}[)\]}]*\Z")
_WORDS = ("passw", "passph", "secret", "credential", "token", "key", "_jwt", "pwd", "_pass",
          "_pat")  # fmt: skip
_OTHERS = (
    "://", "bearer", "basic", "authorization", "cookie", "login", "sshpass", "password", "curl",
    "hook", "sig=", "signature=", "security-token", "credential", "auth'", 'auth"', "authtoken",
    "auth=", "auth =", "bindpw", "setenv", "export", "_token\t", "_key\t", "_secret\t",
    "redis-cli", "mysql", "aws ", "_key_id", '"key"', "echo",
)  # fmt: skip
LONG_WORD = 15
"""The shortest shape there is, Slack's."""
_LONG = re.compile(rf"\S{{{LONG_WORD},}}+")


def unescaped(text: str) -> str:
    """The text without terminal escapes, which would hide where a secret begins."""
    return _ESCAPE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def mask(text: str) -> str:
    """The text with secrets replaced, and without terminal escapes. Twice is the same as once."""
    text = unescaped(text)
    for _ in range(4):  # what was masked may end what kept another from being seen
        masked = _once(text)
        if masked == text:
            break
        text = masked
    return text


def mask_value(name: str, value: str) -> str:
    """The value as `mask` leaves it behind its name, where the two do not stand in one text."""
    if _MASKED.fullmatch(value):  # one of several secrets, told apart when they were masked
        return value
    if _holds(name.lower(), _WORDS) and MASK in mask(f'{name}="{value.replace(chr(34), "")}"'):
        return MASK
    return mask(value)


def excerpt(text: str, limit: int) -> str:
    """The beginning of the text, masked before it is cut."""
    return mask(text[: EXCERPT_FROM * limit])[:limit]


def around(text: str, limit: int, pattern: re.Pattern[str]) -> str | None:
    """The part of the masked text about a match that its beginning does not hold; None where it
    does, or where what matched is masked."""
    masked = mask(text[:WHOLE])
    found = pattern.search(masked)
    if found is None or found.end() <= limit:
        return None
    begin = max(min(found.start() - limit // 3, len(masked) - limit), 0)
    return masked[begin : begin + limit].strip()


def _once(text: str) -> str:
    low = text.lower()
    words = text.split()
    if words and len(max(words, key=len)) >= LONG_WORD:
        text = _PRIVATE.sub(_key_lines, text) if "-----begin" in low else text
        text = _LONG.sub(_shapeless, text)
        text = _PRIVATE_LINE.sub(lambda m: m[1] + MASK, text)
    if _holds(low, _OTHERS):
        text = _HOOKS.sub(lambda m: m[1] + MASK, text)
        text = _URL_USER.sub(lambda m: m[1] + (m[2] or "") + MASK + m[3], text)
        text = _URL_SIGNATURE.sub(lambda m: m[1] + MASK, text)
        text = _HEADER.sub(lambda m: m[1] + MASK, text)
        text = _BEARER.sub(_unless_prose, text)
        text = _COMMANDS.sub(lambda m: m[1] + MASK, text)
        text = _PIPED.sub(lambda m: m[1] + MASK, text)
    return _named(text) if _holds(low, _WORDS) else text


def _shapeless(word: re.Match[str]) -> str:
    return _SHAPES.sub(MASK, word[0])


def _unless_prose(found: re.Match[str]) -> str:
    """A word after `basic` is a credential where it decodes to user and password (RFC 7617)."""
    if found[1]:
        return found[1] + MASK
    try:
        said = base64.b64decode(found[3] + "==")
    except ValueError:
        return found[0]
    return found[2] + MASK if b":" in said else found[0]


def _holds(low: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110 - a generator costs three times as much, on every line
        if word in low:
            return True
    return False


def _key_lines(found: re.Match[str]) -> str:
    """A block of a private key, its lines kept in number."""
    return "\n".join(MASK if line.strip() else line for line in found[0].split("\n"))


def _named(text: str) -> str:
    """Masks values by the name before them.  Only the beginning of a value is looked at until it
    is known to be one, so that names within names cost nothing."""
    made: list[str] = []
    done = 0
    for found in _NAME.finditer(text):
        start = found.end()
        if found.start() < done or text.startswith(MASK, start):
            continue
        name = _full_name(text, found)
        if name is None:
            continue
        end = _value_end(text, start, found[1], _STRONG.search(name) is not None)
        if not _is_secret(name, text[start : min(end, start + 80)]):
            continue
        if found[1] is None:
            end = _trimmed(text, start, _VALUE.match(text, start))
        made += [text[done:start], MASK]
        done = end
    return "".join([*made, text[done:]]) if made else text


def _full_name(text: str, found: re.Match[str]) -> str | None:
    """The whole name; None where a blank ends it and it is no option of a command.  What follows
    `password` so must look like one."""
    before = _BEFORE.search(text[max(0, found.start() - 60) : found.start()])
    word = re.match(r"(?i)[a-z]+", found[0])
    name = (before[0] if before else "") + (word[0] if word else "")
    said = found[0][len(word[0]) :] if word else ""
    if re.search("[=:：＝?'\"]|%3[dD]", said) or name.startswith("-"):
        return name
    return "blank token" if name[-4:].lower() != "pass" and "pass" in name.lower() else None


def _value_end(text: str, start: int, quote: str | None, sure: bool) -> int:
    """Where the value ends: at its own quote; where that was cut off, with the line if its name
    leaves no doubt, else as far as its beginning shows."""
    if quote is not None:
        line_end = text.find("\n", start, start + 4096)
        line_end = line_end if line_end >= 0 else min(start + 4096, len(text))
        end = text.find(quote, start, line_end)
        if end >= 0 or sure:
            return end if end >= 0 else line_end
    head = _HEAD.match(text, start)
    return head.end() if head else start


def _trimmed(text: str, start: int, value: re.Match[str] | None) -> int:
    """Without the brackets that close what the value stands in."""
    end = value.end() if value else start
    while end > start + 1 and text[end - 1] in ")]}>\\":
        end -= 1
    return end


def _is_secret(name: str, value: str) -> bool:
    if not value or _NOTHING.match(value):
        return False
    if _STRONG.search(name):
        return len(value) >= (6 if name[-3:].lower() == "key" else 1)
    if _AMOUNT.match(value):
        return False
    if _ENVIRONMENT.search(name):
        return len(value) >= 4 and not re.match(r"~?\.{0,2}/[\w.-]+(?:/|\Z)", value)
    if _WEAK.search(name) and len(value) >= 8 and not re.search(r"[^\w.~+/=:-]", value):
        return bool(re.search(r"\d", value) and re.search(r"[A-Za-z]", value)) or (
            len(value) >= 24 and value.lower() != value
        )
    return False
