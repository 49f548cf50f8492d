"""The training step of benchmarks/train_step.py in PyTorch, as a user of PyTorch would write it.

  other/bin/python benchmarks/train_step_torch.py --precision=bfloat16 [--no_compile]

torch.nn.Transformer with tied embeddings, cross_entropy's label smoothing and the fused Adam, under
torch.compile and, for bfloat16, autocast. Prints the same `RESULT {json}` line. Its environment
needs torch alone. On a machine with other work, threads that spin while they wait for each other
make it many times slower; so they sleep here (OMP_WAIT_POLICY).
"""

import argparse
import contextlib
import json
import os
import statistics
import time

VOCABULARY, D_MODEL, D_FF, HEADS, LAYERS = 8000, 256, 1024, 4, 3
ROWS, LENGTH = 64, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--no_compile", action="store_true", help="run it operation by operation")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("BENCH_STEPS", "20")))
    flags = parser.parse_args()
    threads = int(os.environ.get("BENCH_THREADS", os.cpu_count() or 1))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    print("RESULT " + json.dumps(_measure(flags, threads)), flush=True)


def _measure(flags: argparse.Namespace, threads: int) -> dict:
    import torch  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(threads)
    torch.manual_seed(0)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
            nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
            self.layers = nn.Transformer(
                D_MODEL, HEADS, LAYERS, LAYERS, D_FF, dropout=0.1, batch_first=True
            )
            self.dropout = nn.Dropout(0.1)
            angles = torch.arange(LENGTH)[:, None] * 1e4 ** (-torch.arange(0, D_MODEL, 2) / D_MODEL)
            self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * D_MODEL**0.5 + self.positions)

        def forward(self, inputs, targets):
            shifted = nn.functional.pad(self.embed(targets)[:, :-1], (0, 0, 1, 0))
            states = self.layers(
                self.embed(inputs), shifted, tgt_mask=self.mask, tgt_is_causal=True
            )
            logits = states @ self.embedding.weight.T
            return nn.functional.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), label_smoothing=0.1
            )

    model = Model().train()
    adam = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, foreach=False, fused=True
    )
    loss_of = model if flags.no_compile else torch.compile(model)
    inputs, targets = (torch.randint(10, VOCABULARY, (ROWS, LENGTH)) for _ in range(2))
    autocast = (
        torch.autocast("cpu", torch.bfloat16)
        if flags.precision == "bfloat16"
        else contextlib.nullcontext()
    )

    def run() -> float:
        start = time.perf_counter()
        adam.zero_grad()
        with autocast:
            loss = loss_of(inputs, targets)
        loss.backward()
        adam.step()
        loss.item()
        return time.perf_counter() - start

    first, _, _ = run(), run(), run()
    cpu = time.process_time()
    seconds = [run() for _ in range(flags.steps)]
    cpu = (time.process_time() - cpu) / flags.steps
    median = statistics.median(seconds)
    tokens = 2 * ROWS * LENGTH
    how = "eager" if flags.no_compile else "compiled"
    return {
        "peer": f"torch {torch.__version__} {how} {flags.precision}",
        "threads": threads,
        "load1": round(os.getloadavg()[0], 2),
        "task": "train",
        "tok_s": round(tokens / median),
        "step_ms_median": round(median * 1e3, 1),
        "step_ms_min": round(min(seconds) * 1e3, 1),
        "first_call_s": round(first, 2),
        "cpu_s_per_step": round(cpu, 3),
        "tok_per_cpu_s": round(tokens / cpu),
        "params": sum(p.numel() for p in model.parameters()),
    }


if __name__ == "__main__":
    main()
