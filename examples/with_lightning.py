"""Gumbel-MPNN in a Lightning module.

pip install lightning -c constraints.txt     # with the constraints, so that torch stays as it is
python examples/with_lightning.py
"""

import sys

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import gumbel_mpnn as gm

try:
    import lightning
except ImportError:
    sys.exit("this example needs Lightning: pip install lightning -c constraints.txt")


class RewiredNodes(lightning.LightningModule):
    """Node classification on one graph, which is the only batch."""

    def __init__(self, in_channels: int, out_channels: int, epochs: int) -> None:
        super().__init__()
        self.epochs = epochs
        self.model = gm.GumbelMPNN(gm.GCN(in_channels, hidden_channels=64, out_channels=out_channels), origin="none")

    def training_step(self, data: Data, index: int) -> torch.Tensor:
        """Loss on a graph that is drawn in this step."""
        self.model.progress = self.current_epoch / self.epochs
        out = self.model(data)
        return F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + self.model.auxiliary_loss(data)

    def test_step(self, data: Data, index: int) -> None:
        """Accuracy on the test nodes."""
        correct = self.model(data).argmax(-1) == data.y
        self.log("test", correct[data.test_mask].float().mean(), batch_size=1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=5e-4)


def main(epochs: int = 100) -> float:
    """Train on the first split of the demo graph; returns the test accuracy."""
    lightning.seed_everything(0)
    data = gm.data.demo_graph()
    for name in ("train_mask", "val_mask", "test_mask"):
        data[name] = data[name][:, 0]
    loader = DataLoader([gm.candidates.Local(per_node=5)(data)])
    module = RewiredNodes(data.num_features, 4, epochs)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    (result,) = trainer.test(module, loader, verbose=False)
    print(f"test accuracy {100 * result['test']:.1f} %")
    return float(result["test"])


if __name__ == "__main__":
    main()
