"""Fine-tune a model with LoRA adapters (PEFT) and TRL's SFTTrainer."""

import argparse

from datasets import load_dataset
from peft import LoraConfig, TaskType
from trl import SFTConfig, SFTTrainer


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="models/tiny-gpt2")
    ap.add_argument("--train-file", default="data/train.jsonl")
    ap.add_argument("--target-modules", nargs="+", default=["c_attn", "c_proj"])
    ap.add_argument("--max-steps", type=int, default=200)
    ap.add_argument("--lr", type=float, default=5e-3)
    args = ap.parse_args()
    data = load_dataset("json", data_files=args.train_file, split="train").select_columns(["text"])
    trainer = SFTTrainer(
        model=args.model,
        train_dataset=data,
        args=SFTConfig(
            output_dir="out-sft", max_steps=args.max_steps, learning_rate=args.lr,
            per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=10,
            max_length=64, report_to=[], use_cpu=True, bf16=False, save_steps=100,
        ),
        peft_config=LoraConfig(
            r=8, lora_alpha=16, target_modules=args.target_modules, task_type=TaskType.CAUSAL_LM
        ),
    )  # fmt: skip
    trainer.model.print_trainable_parameters()
    trainer.train()
    trainer.save_model()
    print("adapter saved to out-sft")


if __name__ == "__main__":
    main()
