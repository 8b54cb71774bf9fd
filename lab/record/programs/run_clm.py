"""Train a causal language model with the Hugging Face Trainer."""

import argparse
import logging

import transformers
from datasets import load_dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

logger = logging.getLogger(__name__)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="models/tiny-gpt2")
    ap.add_argument("--train-file", default="data/train.jsonl")
    ap.add_argument("--text-column", default="text")
    ap.add_argument("--output-dir", default="out")
    ap.add_argument("--max-steps", type=int, default=300)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--save-steps", type=int, default=100)
    ap.add_argument("--warmup-steps", type=int, default=10)
    ap.add_argument("--fp16", action="store_true")
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--no-tqdm", action="store_true")
    args = ap.parse_args()
    logging.basicConfig(
        format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S",
        level=logging.INFO,
    )  # fmt: skip
    transformers.utils.logging.set_verbosity_info()
    logger.info("Arguments %s", vars(args))
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    raw = load_dataset("json", data_files={"train": args.train_file}, split="train")

    def tokenize(batch):
        return tokenizer(batch[args.text_column], truncation=True, max_length=64)

    data = raw.map(tokenize, batched=True, remove_columns=raw.column_names).train_test_split(
        0.05, seed=1
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=args.output_dir, max_steps=args.max_steps, learning_rate=args.lr,
            per_device_train_batch_size=args.batch_size, logging_steps=10, save_steps=args.save_steps,
            eval_strategy="steps", eval_steps=args.save_steps, warmup_steps=args.warmup_steps,
            report_to=[], use_cpu=not args.fp16, fp16=args.fp16, save_total_limit=2,
            disable_tqdm=args.no_tqdm,
        ),
        train_dataset=data["train"],
        eval_dataset=data["test"].select(range(64)),
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        processing_class=tokenizer,
    )  # fmt: skip
    result = trainer.train(resume_from_checkpoint=args.resume or None)
    trainer.save_model()
    trainer.log_metrics("train", result.metrics)
    trainer.save_metrics("train", result.metrics)
    logger.info("*** Evaluate ***")
    trainer.log_metrics("eval", trainer.evaluate())


if __name__ == "__main__":
    main()
