"""Save a tiny GPT-2 with a byte-pair tokenizer of the corpus, as a local model folder."""

import argparse

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

ap = argparse.ArgumentParser()
ap.add_argument("corpus")
ap.add_argument("out")
args = ap.parse_args()

bpe = Tokenizer(models.BPE(unk_token="<unk>"))
bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bpe.decoder = decoders.ByteLevel()
special = ["<unk>", "<s>", "</s>", "<pad>"]
bpe.train(
    [args.corpus], trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=bpe, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
)
config = GPT2Config(
    vocab_size=len(tokenizer), n_positions=128, n_embd=64, n_layer=2, n_head=2,
    bos_token_id=1, eos_token_id=2, pad_token_id=3,
)  # fmt: skip
GPT2LMHeadModel(config).save_pretrained(args.out)
tokenizer.save_pretrained(args.out)
