"""Options with which training takes a moment."""

QUICK = ("--set", "train.epochs=3", "--set", "model.hidden_channels=8", "--device", "cpu")
GCN = ("--model", "gcn", *QUICK)
