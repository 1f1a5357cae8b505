"""Several processes that train one model. Only this room imports torch.distributed."""
