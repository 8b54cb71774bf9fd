"""What is masked, what stays, and that masking can be repeated and always ends soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.redact import MASK, excerpt, mask

WORD = "S3cr3tV4lu3ZZtop"
HEX40 = "0123456789abcdef" * 2 + "01234567"
BASE64 = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SHAPES = {
    "hugging face": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "openai": "sk-proj-" + "abc123DEF456ghi789JKL",
    "anthropic": "sk-ant-api03-" + "aB3_-" * 18,
    "github": "ghp_" + "a1B2" * 9,
    "github fine-grained": "github_pat_11AAAA_" + "b2" * 20,
    "gitlab": "glpat-" + "abcdefGHIJ1234567890",
    "slack": "xoxb-" + "123456789012-abcdEFGHijkl",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "Sy0-_aB" * 5,
    "google oauth": "ya29." + "a0AfH6SMBx1234567890abcdef",
    "nvidia": "nvapi-" + "aB3-" * 10,
    "wandb": "wandb_v1_" + "aB3" * 10,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-123456",
    "databricks": "dapi" + "0a" * 16,
}
NAMED = [
    (f"WANDB_API_KEY={HEX40}", HEX40),
    (f"export FOO_TOKEN={WORD}", WORD),
    (f"DB_PASS={WORD}", WORD),
    (f"MYSQL_PWD={WORD}", WORD),
    (f"aws_secret_access_key = {BASE64}", BASE64),
    (f'"SecretAccessKey": "{BASE64}",', BASE64),
    (f"python x.py --password {WORD} --epochs 3", WORD),
    (f"['--api-key', '{WORD}']", WORD),
    (f"--wandb-key {HEX40}", HEX40),
    (f"--hf_token {WORD}", WORD),
    (f"Authorization: Bearer {WORD}", WORD),
    ("Authorization: Basic dXNlcjpTM2NyM3Q=", "dXNlcjpTM2NyM3Q"),
    (f"https://user:{WORD}@host/x", WORD),
    (f"https://u:p@{WORD}@host/x", WORD),
    (f"redis://:{WORD}@h:6379", WORD),
    (f"https://b.s3.amazonaws.com/k?X-Amz-Signature={HEX40}&x=1", HEX40),
    (f"https://a.blob.core.windows.net/c?sv=2020&sig={WORD}%3D&se=2", WORD),
    (f"AccountName=x;AccountKey={'aB3+' * 21}ab==;EndpointSuffix=core", "aB3+aB3+"),
    (f"machine api.wandb.ai login user password {HEX40}", HEX40),
    (f"sbatch --export=ALL,WANDB_API_KEY={HEX40},HF_TOKEN={WORD} run.sh", HEX40),
    (f"sbatch --export=ALL,WANDB_API_KEY={HEX40},HF_TOKEN={WORD} run.sh", WORD),
    (f'{{"password": "{WORD} with blanks", "user": "x"}}', "with blanks"),
    (f'{{\\"password\\": \\"{WORD}\\"}}', WORD),
    (f"client_secret: {WORD}", WORD),
    (f"GET /x?token={WORD}&y=1", WORD),
    (f"wandb login {HEX40}", HEX40),
    (f"curl -s -u bob:{WORD} http://x", WORD),
    (f"token: password={WORD}", WORD),
    (f"connect(host='h', password='{WORD}')", WORD),
    (f"token={'aB3' * 200}END9", "END9"),
    (
        f'"private_key": "-----BEGIN PRIVATE KEY-----\\n{BASE64}\\n-----END PRIVATE KEY-----"',
        BASE64,
    ),
    ("q5YdK3c0X1" + "aB3+/Z" * 9, "q5YdK3c0X1"),
]
ORDINARY = [
    "step 10 loss 2.31 tokens=4096 tokens/s: 12345.6",
    "token_type_ids: [101, 2023]",
    "max_tokens: 512",
    "key=value acc=0.912",
    "HEAD is now at 9fceb02d0ae598e95dc970b74767f19372d61af8 fix",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "tensor iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "'eos_token': '<|endoftext|>', pad_token='[PAD]', EOS_TOKEN=<|eot_id|>",
    "loss_per_token=1.2345e-05 time_per_token: 12.345678ms next_token=198234",
    "api_key=None api_key: EMPTY KeyError: 'api_key'",
    "Setting `pad_token_id` to `eos_token_id`:2 for open-end generation.",
    "slurmstepd: error: task-runner-for-training-1234567890 failed",
    "basic authentication is off",
    'Missing key(s) in state_dict: "model.layers.0.weight"',
    "tcp://10.0.0.1:29500 s3://bucket/path@v1/file",
    "PWD=/home/user/x GOOGLE_APPLICATION_CREDENTIALS=/home/u/key.json",
    "--eos-token </s> --max-token 512",
    "hf_hub_download failed; hf_transfer enabled",
]
HOSTILE = [
    "token:",
    "sk-",
    "eyJ",
    "a",
    "://a:",
    "login ",
    "curl ",
    'password="',
    "bearer ",
    "?sig=",
    "-----BEGIN PRIVATE KEY-----",
    "--key ",
    "MII",
    "A1b+",
    "password \n",
    "authorization: ",
    "secret_",
    "sk-a-",
    "eyJ-",
    "SG.a-",
    "redis-cli x ",
    "wandb login --host ",
    "echo ",
    '"auth":"a',
    "glsa_a",
    "2aA3_",
    "\x1b[",
    "\x1b]8;",
]
PIECES = st.sampled_from(
    [*SHAPES.values(), *(line for line, _ in NAMED), *ORDINARY, MASK, "password=", "--token ", "'",
     '"', "\n", " ", "Bearer ", "://", "@", "]", "login ", "=", ":", WORD]
)  # fmt: skip


@pytest.mark.parametrize("secret", SHAPES.values(), ids=SHAPES)
def test_a_secret_is_known_by_its_shape(secret: str) -> None:
    """In prose, in quotes and as the value of anything."""
    for line in (f"Error {secret} rejected", f"'{secret}',", f"x={secret}"):
        assert secret not in mask(line)


@pytest.mark.parametrize(("line", "secret"), NAMED)
def test_a_secret_is_known_by_what_stands_before_it(line: str, secret: str) -> None:
    """A name, an option, a header, an address."""
    assert secret not in mask(line)
    assert MASK in mask(line)


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_stay(line: str) -> None:
    """Counts, digests, special tokens and paths are no secrets."""
    assert mask(line) == line


def test_a_text_of_a_pickle_that_is_read_as_a_log() -> None:
    """A `V` stands before each of protocol 0; within a word it hides nothing."""
    secret = "hf_9ZCcbYM2lCfr0sGIP05XgAOshe6GATr2k0"

    assert secret not in mask(f"Vversion\nV{secret}\np2\n")
    assert secret not in mask(f'gpu="0",Hostname=B{secret}"}} 90')
    assert mask("Vversion\np1") == "Vversion\np1"
    assert mask(f"hf_{'conv_block' * 4}") == f"hf_{'conv_block' * 4}"


def test_a_private_key_loses_its_text_and_keeps_its_lines() -> None:
    """Lines after it keep their number."""
    body = f"{BASE64}{BASE64[:24]}\n{BASE64}=="
    text = f"a\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nafter"
    masked = mask(text).split("\n")

    assert (len(masked), masked[0], masked[5]) == (6, "a", "after")
    assert BASE64 not in "\n".join(masked)


def test_an_excerpt_is_masked_before_it_is_cut() -> None:
    """A secret that the cut goes through is not shown in part."""
    line = "x" * 590 + " hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ"

    assert "hf_" not in excerpt(line, 600)
    assert mask(line).startswith(excerpt(line, 600))


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    """And no line comes or goes."""
    once = mask(text)

    assert mask(once) == once
    assert once.count("\n") == text.count("\n")


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_line_takes_no_more_than_its_length(piece: str) -> None:
    """Ten times the text takes about ten times as long, not a hundred times."""

    def took(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        mask(text)
        return time.process_time() - began

    assert took(120_000) < 40 * took(12_000) + 0.1


def test_a_line_of_a_key_that_something_is_drawn_over_is_masked() -> None:
    """A bar or an error may follow it behind a carriage return."""
    line = "3+7rfsIhR4bsG6FkVPMbrz9G6nYJv8LhQKhhX5yrcFDOSJKnJ/gJDq/G8qcPt0EvTCz334"
    assert line not in mask(f"{line}\rValueError: no")
    assert line not in mask(f"x\r{line}\rValueError: no")


@pytest.mark.parametrize(
    "line", ["setenv X_TOKEN {}", "export MY_KEY {}", "x\rMY_TOKEN\t{}", "x\rpassword {}"]
)
@pytest.mark.parametrize("after", ["", "\rValueError: no", "\n"])
def test_a_value_that_ends_at_a_carriage_return(line: str, after: str) -> None:
    """As it would at the end of the line."""
    secret = "Zk91b2kEdTN95Z4"
    assert secret not in mask(line.format(secret) + after)


@pytest.mark.parametrize("after", ["; run", " && run", "ValueError: no such key", " # mine"])
def test_a_value_that_setenv_gives_is_masked_whatever_follows(after: str) -> None:
    """The C shell's command has no other reading; of other lines a name may begin a sentence."""
    secret = "Zk91b2kEdTN95Z4"
    assert secret not in mask(f"+ setenv X_TOKEN {secret}{after}")
    assert mask("HF_TOKEN is not set") == "HF_TOKEN is not set"
    assert mask("setenv PATH /opt/bin") == "setenv PATH /opt/bin"
