"""A straight line learned by several PyTorch processes together: torchrun torch_ddp.py. Needs torch.

With the launcher `torchrun` all of its options are in the environment: how many nodes, which one this is, where they meet.
"""

from __future__ import annotations

import torch
import torch.distributed
import trainhall
from torch.nn.parallel import DistributedDataParallel

STEPS = 100

torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
print(f"I am rank {rank} of {size} on {device}.", flush=True)

torch.manual_seed(rank)  # other data in every process
model = DistributedDataParallel(torch.nn.Linear(1, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for step in range(STEPS):
    x = torch.rand(64, 1, device=device) * 2 - 1
    loss = torch.nn.functional.mse_loss(model(x), 3 * x + 1)
    optimizer.zero_grad()
    loss.backward()  # here the gradients of all processes become one
    optimizer.step()
    trainhall.log({"train/loss": loss.item()}, step=step)
    trainhall.progress(step + 1, STEPS)
line = model.module
print(f"y = {line.weight.item():.3f} x + {line.bias.item():.3f}", flush=True)
assert abs(line.weight.item() - 3) < 0.05
torch.distributed.destroy_process_group()
