"""
Secrets to plant, as services issue them and as runs print them, and what must stay readable.

All are made up.  They are put together here from parts, so that no scanner of this repository
takes them for real ones.
"""

from __future__ import annotations

import base64
import random
import string

_DICE = random.Random(20260301)  # the same secrets in every process
_WORDS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _any(size: int, letters: str = _WORDS) -> str:
    """Characters of a set, with a digit, and a large and a small letter where it has such."""
    made = [_DICE.choice(letters) for _ in range(size)]
    sorts = [set(string.digits), set(string.ascii_lowercase), set(string.ascii_uppercase)]
    for at, sort in enumerate(sorts):
        held = sorted(sort & set(letters))
        if held:
            made[at * 3 % size] = _DICE.choice(held)
    return "".join(made)


def _hex(size: int) -> str:
    return _any(size, _HEX)


def _uuid() -> str:
    return "-".join(_hex(n) for n in (8, 4, 4, 4, 12))


_B64 = _WORDS + "+/"
_LOW = string.ascii_lowercase + string.digits
_JWT = ".".join(["eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + _any(60), _any(43, _WORDS + "-_")])

SHAPED: dict[str, str] = {
    "aws key id": "AKIA" + _any(16, string.ascii_uppercase + "234567"),
    "aws session key id": "ASIA" + _any(16, string.ascii_uppercase + "234567"),
    "google api": "AIza" + _any(35),
    "google oauth": "ya29." + _any(80, _WORDS + "-_"),
    "google client secret": "GOCSPX-" + _any(28),
    "github": "ghp_" + _any(36),
    "github oauth": "gho_" + _any(36),
    "github app": "ghs_" + _any(36),
    "github fine-grained": "github_pat_" + _any(22) + "_" + _any(59),
    "gitlab": "glpat-" + _any(20),
    "gitlab runner": "glrt-" + _any(20),
    "hugging face": "hf_" + _any(34),
    "openai": "sk-" + _any(20) + "T3BlbkFJ" + _any(20),
    "openai project": "sk-proj-" + _any(74, _WORDS + "-_"),
    "openai service": "sk-svcacct-" + _any(60, _WORDS + "-_"),
    "anthropic": "sk-ant-api03-" + _any(93, _WORDS + "-_") + "AA",
    "openrouter": "sk-or-v1-" + _hex(64),
    "groq": "gsk_" + _any(52),
    "xai": "xai-" + _any(80),
    "nvidia": "nvapi-" + _any(64, _WORDS + "-_"),
    "perplexity": "pplx-" + _any(48),
    "replicate": "r8_" + _any(37),
    "together": "tgp_v1_" + _any(43, _WORDS + "-_"),
    "fireworks": "fw_" + _any(24),
    "wandb v1": "wandb_v1_" + _any(77),
    "langsmith": "lsv2_pt_" + _hex(32) + "_" + _hex(10),
    "slack bot": "xoxb-" + "123456789012-1234567890123-" + _any(24),
    "slack user": "xoxp-" + "123456789012-123456789012-" + _hex(32),
    "slack app": "xapp-1-" + "A0123456789-1234567890123-" + _hex(64),
    "stripe": "sk_live_" + _any(24),
    "stripe restricted": "rk_live_" + _any(24),
    "npm": "npm_" + _any(36),
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + _any(150, _WORDS + "-_"),
    "docker": "dckr_pat_" + _any(27, _WORDS + "-_"),
    "databricks": "dapi" + _hex(32),
    "vault": "hvs." + _any(90, _WORDS + "-_"),
    "sendgrid": "SG." + _any(22) + "." + _any(43),
    "jwt": _JWT,
    "azure storage": _any(86, _B64) + "==",
    "ngrok": "2" + _any(26) + "_" + _any(20),
    "digitalocean": "dop_v1_" + _hex(64),
    "linear": "lin_api_" + _any(40),
    "grafana service": "glsa_" + _any(32) + "_" + _hex(8),
    "grafana cloud": "glc_" + "eyJ" + _any(60),
    "shopify": "shpat_" + _hex(32),
    "telegram": "7" + _any(9, string.digits) + ":AA" + _any(33, _WORDS + "-_"),
    "age": "AGE-SECRET-KEY-1" + _any(58, string.ascii_uppercase + string.digits),
    "postman": "PMAK-" + _hex(24) + "-" + _hex(34),
    "terraform": _any(14) + ".atlasv1." + _any(64, _WORDS + "-_"),
    "mailgun": "key-" + _hex(32),
    "tailscale": "tskey-auth-" + _any(16) + "-" + _any(32),
    "kaggle new": "KGAT_" + _hex(32),
    "modal": "as-" + _any(22),
    "pulumi": "pul-" + _hex(40),
    "atlassian": "ATATT3" + _any(180, _WORDS + "-_=") + "=" + _any(8, "0123456789ABCDEF"),
    "lambda cloud": "secret_" + _any(40) + "_" + _hex(32) + "." + _any(32),
}
"""By service: what tells itself by its shape, wherever it stands."""

_H40, _H32, _AWS = _hex(40), _hex(32), _any(40, _B64)
_PASS = "Zk9" + _any(12)
_CLEAR = _any(15, string.ascii_lowercase[6:])
_COMET, _UUID, _NEPTUNE = _any(25), _uuid(), "eyJ" + _any(90) + "=="
_SAS, _FERNET, _SSH = _any(43, _B64) + "%3D", _any(43, _WORDS + "-_") + "=", _any(70, _B64)
_DOCKER = base64.b64encode(f"$oauthtoken:{_any(33)}".encode()).decode()
_MUNGE = "MUNGE:" + _any(90, _B64) + "AA==:"

NAMED: dict[str, tuple[str, str]] = {
    "aws secret, environment": (f"AWS_SECRET_ACCESS_KEY={_AWS}", _AWS),
    "aws secret, credentials file": (f"aws_secret_access_key = {_AWS}", _AWS),
    "aws session token": (f"AWS_SESSION_TOKEN={_AWS}{_AWS}", _AWS),
    "aws secret, boto": (f"Credentials(access_key='AKIAX', secret_key='{_AWS}', token=None)",
    _AWS),
    "gcp service account": (
        f'{{"type": "service_account", "private_key_id": "{_H40}", "private_key": '
        f'"-----BEGIN PRIVATE KEY-----\\nMIIE{_SSH}\\n{_SSH}\\n-----END PRIVATE KEY-----\\n"}}',
        _SSH,
    ),
    "gcp key id": (f'  "private_key_id": "{_H40}",', _H40),
    "azure connection string": (
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + _any(86, _B64) + "==;"
        f"EndpointSuffix=core.windows.net;SharedAccessKey={_PASS}=",
        _PASS,
    ),
    "azure sas": (f"https://a.blob.core.windows.net/c/k?sv=2022-11-02&sp=r&sig={_SAS}", _SAS),
    "azure client secret": (f"AZURE_CLIENT_SECRET={_any(3)}~{_PASS}.{_any(10)}", _PASS),
    "presigned s3": (
        f"https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIAX&X-Amz-Signature={_hex(24)}{_H40}",
        _H40,
    ),
    "presigned s3 token": (f"GET /k?X-Amz-Security-Token={_AWS.replace('/', '%2F')}&x=1",
                           _AWS.replace("/", "%2F")),
    "presigned gcs": (f"https://storage.googleapis.com/b/k?X-Goog-Signature={_H40}&x=1", _H40),
    "wandb environment": (f"WANDB_API_KEY={_H40}", _H40),
    "wandb login": (f"+ wandb login {_H40}", _H40),
    "wandb login relogin": (f"$ wandb login --relogin {_H40}", _H40),
    "wandb login host": (f"wandb login --host=https://wandb.x.io {_H40}", _H40),
    "wandb netrc": (f"machine api.wandb.ai login user password {_H40}", _H40),
    "wandb python": (f"    wandb.login(key='{_H40}')", _H40),
    "wandb positional": (f"    wandb.login('{_H40}')", _H40),
    "huggingface-cli": (f"huggingface-cli login --token {_PASS}", _PASS),
    "docker auth": (f'{{"auths": {{"nvcr.io": {{"auth": "{_DOCKER}"}}}}}}', _DOCKER),
    "docker login": (f"docker login nvcr.io -u '$oauthtoken' -p {_PASS}", _PASS),
    "docker login stdin": (f"echo {_PASS} | docker login --password-stdin nvcr.io", _PASS),
    "enroot netrc": (f"machine nvcr.io login $oauthtoken password {_PASS}", _PASS),
    "basic auth url": (f"https://bob:{_PASS}@git.example.com/a/b.git", _PASS),
    "token in url": (f"https://oauth2:{_CLEAR}@gitlab.com/a/b.git", _CLEAR),
    "proxy": (f"http_proxy=http://bob:{_PASS}@proxy:3128", _PASS),
    "pip index": (f"pip install --index-url https://__token__:{_PASS}@pypi.x.io/simple p", _PASS),
    "bearer": (f"Authorization: Bearer {_PASS}{_PASS}", _PASS),
    "bearer, dict": (f"headers={{'Authorization': 'Bearer {_PASS}{_PASS}'}}", _PASS),
    "bearer, curl": (f'curl -H "Authorization: Bearer {_PASS}{_PASS}" https://x', _PASS),
    "basic header": (f"> Authorization: Basic {_DOCKER}", _DOCKER),
    "api key header": (f"'x-api-key': '{_PASS}'", _PASS),
    "api key header, curl": (f"curl -H 'X-Api-Key: {_PASS}' https://x", _PASS),
    "auth token header": (f"X-Auth-Token: {_PASS}", _PASS),
    "private token header": (f"PRIVATE-TOKEN: {_PASS}", _PASS),
    "cookie": (f"Cookie: session={_PASS}; theme=dark", _PASS),
    "set-cookie": (f"set-cookie: sid={_PASS}; Path=/", _PASS),
    "mlflow": (f"MLFLOW_TRACKING_PASSWORD={_PASS}", _PASS),
    "mlflow token": (f"export MLFLOW_TRACKING_TOKEN={_PASS}", _PASS),
    "comet": (f"COMET_API_KEY={_COMET}", _COMET),
    "comet ini": (f"api_key = {_COMET}", _COMET),
    "comet python": (f'comet_ml.init(api_key="{_COMET}", project="x")', _COMET),
    "neptune": (f"NEPTUNE_API_TOKEN={_NEPTUNE}", _NEPTUNE),
    "clearml": (f"CLEARML_API_SECRET_KEY={_AWS}", _AWS),
    "clearml conf": (f'    "secret_key" = "{_AWS}"', _AWS),
    "clearml access": (f"CLEARML_API_ACCESS_KEY={_PASS}", _PASS),
    "kaggle": (f'{{"username":"bob","key":"{_H32}"}}', _H32),
    "kaggle environment": (f"KAGGLE_KEY={_H32}", _H32),
    "ngrok": (f"ngrok config add-authtoken 2{_COMET}_{_PASS}", _PASS),
    "redis": (f"redis://:{_PASS}@cache:6379/0", _PASS),
    "redis cli": (f"redis-cli -h cache -a {_PASS} ping", _PASS),
    "postgres": (f"postgresql+psycopg2://bob:{_PASS}@db:5432/optuna", _PASS),
    "postgres keywords": (f"host=db user=bob password={_PASS} dbname=x", _PASS),
    "postgres environment": (f"PGPASSWORD={_PASS}", _PASS),
    "mysql": (f"mysql -u bob -p{_PASS} db", _PASS),
    "mysql url": (f"mysql://bob:{_PASS}@db/x", _PASS),
    "mongo": (f"mongodb+srv://bob:{_PASS}@c0.x.mongodb.net/?retryWrites=true", _PASS),
    "amqp": (f"amqp://bob:{_PASS}@mq:5672//", _PASS),
    "sqlalchemy": (f"create_engine('mssql://sa:{_PASS}@h')", _PASS),
    "slurm jwt": (f"SLURM_JWT={_JWT}", _JWT),
    "slurm jwt, scontrol token": ("SLURM_JWT=" + _CLEAR + _PASS, _PASS),
    "slurmrestd header": (f"X-SLURM-USER-TOKEN: {_CLEAR}{_PASS}", _PASS),
    "munge": (f"munge credential {_MUNGE}", _MUNGE[6:-1]),
    "printenv password": (f"MY_PASSWORD={_CLEAR}", _CLEAR),
    "printenv secret": (f"APP_SECRET={_CLEAR}", _CLEAR),
    "printenv token": (f"X_TOKEN={_CLEAR}", _CLEAR),
    "printenv quoted": (f'declare -x MY_PASSWORD="{_CLEAR} {_PASS}"', _PASS),
    "printenv key": (f"OPENAI_API_KEY={_CLEAR}", _CLEAR),
    "printenv passphrase": (f"SSH_PASSPHRASE={_CLEAR}", _CLEAR),
    "environ repr": (f"environ({{'HOME': '/h', 'X_SECRET': '{_CLEAR}', 'A': 'b'}})", _CLEAR),
    "environ repr bytes": (f"environ({{b'HOME': b'/h', b'X_SECRET': b'{_CLEAR}'}})", _CLEAR),
    "dict repr": (f"config: {{'lr': 0.1, 'password': '{_CLEAR}', 'user': 'bob'}}", _CLEAR),
    "namespace repr": (f"Namespace(lr=0.1, hf_token='{_CLEAR}{_PASS}', seed=1)", _PASS),
    "dataclass repr": (f"Args(api_key='{_CLEAR}', lr=0.1)", _CLEAR),
    "yaml": (f"  password: {_CLEAR}", _CLEAR),
    "json": (f'{{"client_secret": "{_CLEAR}"}}', _CLEAR),
    "json in json": (f'"{{\\"api_key\\": \\"{_CLEAR}\\"}}"', _CLEAR),
    "omegaconf": (f"trainer.logger.api_key={_CLEAR}", _CLEAR),
    "command line token": (f"python train.py --token {_CLEAR}{_PASS} --epochs 3", _PASS),
    "command line equals": (f"python train.py --hf-token={_CLEAR}{_PASS}", _PASS),
    "command line list": (f"['python', 't.py', '--wandb_api_key', '{_CLEAR}']", _CLEAR),
    "command line quoted": (f"run --password '{_CLEAR} {_PASS}'", _PASS),
    "command line secret": (f"--secret {_CLEAR}", _CLEAR),
    "sshpass": (f"sshpass -p {_CLEAR} ssh n1", _CLEAR),
    "curl user": (f"curl -u bob:{_CLEAR} https://x", _CLEAR),
    "wget": (f"wget --http-password={_CLEAR} https://x", _CLEAR),
    "wget blank": (f"wget --user bob --password {_CLEAR} https://x", _CLEAR),
    "expect": (f"Password: {_CLEAR}", _CLEAR),
    "sudo": (f"echo {_PASS} | sudo -S reboot", _PASS),
    "url key": (f"GET /v1?api_key={_CLEAR}&x=1", _CLEAR),
    "url access token": (f"https://x/y?access_token={_CLEAR}{_PASS}&z=1", _PASS),
    "url fragment": (f"https://x/#access_token={_CLEAR}{_PASS}", _PASS),
    "webhook slack": (f"https://hooks.slack.com/services/T012AB3CD/B012AB3CD/{_COMET}", _COMET),
    "webhook discord": (f"https://discord.com/api/webhooks/1234567890/{_COMET}_{_PASS}", _PASS),
    "webhook teams": (f"https://x.webhook.office.com/webhookb2/{_UUID}@{_UUID}/IncomingWebhook/"
                      f"{_H32}/{_uuid()}", _H32),
    "jupyter": (f"http://node1:8888/lab?token={_hex(48)}{_H32}", _H32),
    "fernet": (f"FERNET_KEY={_FERNET}", _FERNET),
    "django": (f"SECRET_KEY = '{_CLEAR}'", _CLEAR),
    "ssh one line": (_SSH, _SSH),
    "environ item": (f"os.environ['HF_TOKEN'] = '{_CLEAR}'", _CLEAR),
    "environ item, double": (f'os.environ["WANDB_API_KEY"]="{_H40}"', _H40),
    "pair": (f"[('password', '{_CLEAR}'), ('lr', '0.1')]", _CLEAR),
    "export without equals": (f"setenv X_TOKEN {_PASS}", _PASS),
    "in words": (f"the password is {_PASS}", _PASS),
    "prompt": (f"Enter password for bob: {_PASS}", _PASS),
    "pwd": (f"Server=x;User=bob;Pwd={_CLEAR};", _CLEAR),
    "xml": (f"<password>{_CLEAR}</password>", _CLEAR),
    "aws configure": (f"aws configure set aws_secret_access_key {_PASS}{_PASS}", _PASS),
    "requests": (f"requests.get(url, auth=('bob', '{_PASS}'))", _PASS),
    "url-encoded": (f"q=password%3D{_PASS}", _PASS),
    "fullwidth equals": (f"password：{_CLEAR}", _CLEAR),
    "fullwidth equals that ASCII lost": (f"password?{_CLEAR}", _CLEAR),
}  # fmt: skip
"""By place: a line, and what of it may not be shown."""

PEM = tuple(
    f"-----BEGIN {kind}PRIVATE KEY-----\n"
    + "\n".join(lines)
    + f"\n-----END {kind}PRIVATE KEY-----"
    for kind, lines in (
        ("RSA ", ["MIIE" + _any(60, _B64), _any(64, _B64), _any(40, _B64) + "=="]),
        ("OPENSSH ", ["b3BlbnNzaC1rZXktdjEA" + _any(50, _B64), _any(70, _B64), _any(31, _B64)]),
        ("EC ", ["MHcCAQEE" + _any(56, _B64), _any(64, _B64)]),
        ("", ["MIIE" + _any(60, _B64), _any(64, _B64)]),
        ("ENCRYPTED ", ["MIIE" + _any(60, _B64), _any(64, _B64)]),
    )
)
"""Private keys over several lines."""

ORDINARY = (
    "HEAD is now at 9fceb02d0ae598e95dc970b74767f19372d61af8 fix",
    "commit: 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "git_sha=9fceb02d0ae598e95dc970b74767f19372d61af8",
    "revision 2c1a3f9 of meta-llama/Llama-3.1-8B@0e9e39f249a16976918f6564b8830bc894c89659",
    f"GPU-{'5e8c1f4a-2f0b-4d6c-9c3e-7a1b2c3d4e5f'} has fallen off the bus",
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5e8c1f4a-2f0b-4d6c-9c3e-7a1b2c3d4e5f)",
    "MIG-5e8c1f4a-2f0b-4d6c-9c3e-7a1b2c3d4e5f in use",
    'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-5e8c1f4a-2f0b-4d6c-9c3e-7a1b2c3d4e5f"} 79',
    "node1:123:456 [0] NCCL INFO comm 0x55d0c8 rank 0 nranks 8 cudaDev 0 busId 1b000 commId "
    "0x9f86d081884c7d65 - Init START",
    "NCCL INFO ncclCommInitRank comm 0x7f8a4c0d9e30 commHash 0xdeadbeefcafe1234",
    "saved checkpoint sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "md5 d41d8cd98f00b204e9800998ecf8427e  model-00001-of-00030.safetensors",
    "nvcr.io/nvidia/pytorch@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a0",
    "tensor hash 0x9f86d081884c7d659a2feaa0c55ad015 at layer model.layers.31.mlp.down_proj",
    "node-gpu-h100-001.cluster.local rank 12 lost",
    "key_node-a1b2c3 joined; token-ring-04 left",
    "slurmstepd: error: *** STEP 8308.0 ON gpu-a100-17 CANCELLED AT 2026-03-01T04:12:55 ***",
    "run 8f2c1e9b-77aa-4c52-9d2f-5a4de0c3b6a1 in group 3kq9x0ab",
    "wandb: Run data is saved locally in wandb/run-20260301_041255-3kq9x0ab",
    "wandb: View run at https://wandb.ai/team/proj/runs/3kq9x0ab",
    "wandb: Currently logged in as: bob (team). Use `wandb login --relogin` to force relogin",
    "https://api.github.com/repos/a/b/commits/9fceb02d0ae598e95dc970b74767f19372d61af8",
    "tokens per second per gpu: 12345.6 | max_tokens=4096 | tokenizer=meta-llama/Llama-3.1-8B",
    "token_type_ids, attention_mask, key_padding_mask, query_key_value, key_value_heads=8",
    "KeyError: 'model.layers.0.self_attn.k_proj.weight'",
    'Missing key(s) in state_dict: "lm_head.weight", "model.norm.weight".',
    "key: model.embed_tokens.weight shape: [128256, 4096]",
    "dict key=layer31_attention_output_dense2048x4096 was not found",
    "TCPStore: key default_pg/0//cuda//timeout_dump was not set after 600000 ms",
    "wait timeout after 300000ms, keys: /default_pg/0//cuda//0",
    "c10d::TCPStore recvValue failed: ncclUniqueId for store key '0'",
    "secretsmanager endpoint not reached; using password auth is off",
    "basic block reordering done; basic Transformer12Layer variant",
    "author: bob, authors: 12, authenticating worker-3 of 8",
    "mount error(13): //fs01/data on /mnt/data type cifs (rw,sec=krb5,uid=1000)",
    "torch.Size([4096, 11008]) sha 1b000 bus 0000:1b:00.0",
    "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
    "epoch 3: 100%|██████████| 1000/1000 [12:34<00:00,  1.33it/s, loss=1.23, key=val]",
    "CUDA_VISIBLE_DEVICES=GPU-5e8c1f4a-2f0b-4d6c-9c3e-7a1b2c3d4e5f,GPU-5e8c1f4a",
    "PWD=/home/bob/run OLDPWD=/home/bob",
    "assert len(tokens) > 4096 and key > value1234",
    "labels = ['input_ids', 'token', 'labels2']",
    "the token is expired, the password is required",
    "SLURM_JOB_ID=8308 SLURM_NODELIST=gpu-a100-[01-16] SLURM_TASKS_PER_NODE=8(x16)",
    "TOKENIZERS_PARALLELISM=false HF_HOME=/scratch/bob/hf NCCL_DEBUG=INFO",
    "/scratch/bob/ckpt/step_0010000/mp_rank_00_model_states.pt",
    "/mnt/lustre/data/c4/en.noblocklist/c4-train.00001-of-01024.json.gz",
    'File "/opt/conda/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"',
    "as-expected no-key-frames key-value-store key-frames-per-second",
    "fw_only=True fw_bw_ratio=0.5 secret_santa_demo_dataset",
)
"""Lines that look like secrets and are the evidence itself."""
