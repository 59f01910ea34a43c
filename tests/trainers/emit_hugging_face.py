"""The Trainer of Transformers with its callback of ``receipt_cli.emit``: a tiny GPT-2 on random tokens, evaluated and saved."""

import contextlib
import sys
import tempfile
from pathlib import Path

import torch
from protocol import recorded
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from receipt_cli.emit import HuggingFaceCallback

torch.set_num_threads(1)
torch.manual_seed(1)
tokens = torch.randint(0, 64, (96, 16))
rows = [{"input_ids": row, "labels": row} for row in tokens]
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))
events = [str(Path(each).resolve()) for each in sys.argv[1:]]
with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    options = TrainingArguments(
        output_dir="out",
        max_steps=40,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=1e-3,
        logging_steps=2,
        eval_strategy="steps",
        eval_steps=20,
        save_steps=20,
        include_num_input_tokens_seen="all",
        report_to=[],
        use_cpu=True,
        seed=1,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(model=model, args=options, train_dataset=rows[:64], eval_dataset=rows[64:])
    trainer.add_callback(recorded(HuggingFaceCallback(), events))
    trainer.train()
