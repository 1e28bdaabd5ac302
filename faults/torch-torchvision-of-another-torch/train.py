"""The installed torchvision belongs to an older torch."""

import torch
import torch.distributed as dist
import torchvision


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    boxes = torch.rand(16, 4)
    boxes[:, 2:] += boxes[:, :2]
    kept = torchvision.ops.nms(boxes, torch.rand(16), 0.5)
    count = torch.tensor([len(kept)])
    dist.all_reduce(count)
    print(f"[{rank}] kept {len(kept)}, all ranks {count.item()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
