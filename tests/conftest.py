"""One thread per test process: many small operations gain nothing from more."""

import torch

torch.set_num_threads(1)
