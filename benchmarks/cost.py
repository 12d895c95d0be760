"""What a training step of Gumbel-MPNN (bilinear scorer, GCN) must read, write and compute, term by term.

Rows gathered along pairs and arcs are counted as if there were no cache; arrays of nodes once for each pass over them;
what fits in registers (noise, dropout's random numbers) not at all. A graph has N nodes, P pairs and A = 2 P arcs.
"""

from __future__ import annotations

from dataclasses import dataclass

INDEX = 4
"""Bytes of a node's number."""
WEIGHT = 4
"""Bytes of a pair's logit or weight and of a degree: they are kept in 32 bits always."""


@dataclass(frozen=True)
class Sizes:
    """The size of a task and of the model on it."""

    nodes: int
    pairs: int
    features: int
    width: int
    layers: int
    classes: int
    channels: int
    number: int = 4
    """Bytes of a stored activation."""

    @property
    def arcs(self) -> int:
        """A."""
        return 2 * self.pairs

    @property
    def inputs(self) -> list[int]:
        """Width of each layer's input."""
        return [self.features] + [self.width] * (self.layers - 1)

    @property
    def parameters(self) -> int:
        """Encoder, form and its bias; matrix and bias of each layer; the head."""
        scorer = self.features * self.channels + self.channels**2 + 1
        stack = sum(wide * self.width + self.width for wide in self.inputs)
        return scorer + stack + self.width * self.classes + self.classes


ARXIV = Sizes(nodes=169_343, pairs=2_315_598, features=128, width=256, layers=3, classes=40, channels=128)
"""ogbn-arxiv's counts, with as many candidates as it has edges."""


@dataclass(frozen=True)
class Term:
    """A part of the step."""

    name: str
    bytes: int
    flops: int
    matmul: bool = False
    """Whether it is a dense product, which has the rate of the tensor cores."""


def step_terms(size: Sizes) -> list[Term]:
    """All parts of a step, forward and backward."""
    return [*_scorer(size), *_draw(size), *_layers(size), *_head(size), _adam(size.parameters)]


def seconds_at(terms: list[Term], bytes_per_s: float, flops_per_s: float, matmul_flops_per_s: float) -> float:
    """Time of the terms one after another, each at the ceiling that binds it."""
    return sum(
        max(term.bytes / bytes_per_s, term.flops / (matmul_flops_per_s if term.matmul else flops_per_s))
        for term in terms
    )


def _scorer(s: Sizes) -> list[Term]:
    """θ = (h W) · h along the pairs, h the encoded features scaled to length 1, and the gradients of h and W.

    The encoder has no gradient for its input. A pair's score reads one row for itself, the other once for its node;
    its gradient reads both ends' rows, one for each end's sum.
    """
    dense, rows = s.nodes * s.channels, _gathered(s, s.pairs, s.channels)
    return [
        _matmul("encode the features", s, s.features, s.channels, gradient_of_input=False),
        Term("scale to length 1", 5 * dense * s.number, 10 * dense),
        _matmul("times the form's matrix", s, s.channels, s.channels),
        Term("scores of the pairs", rows + dense * s.number, 2 * s.pairs * s.channels),
        Term("gradient of the scores", 2 * (rows + dense * s.number), 4 * s.pairs * s.channels),
    ]


def _draw(s: Sizes) -> list[Term]:
    """A weight for each pair and arc, degrees, and the way back.

    Forward: read θ, write the weight; write the arcs' weights from their pairs', read them for the degrees. Backward:
    read two arcs' gradients and θ for each pair, write its gradient. Nodes: read the degree, write its root, twice.
    """
    pairs, arcs = (2 + 2) * s.pairs * WEIGHT, (3 * WEIGHT + INDEX) * s.arcs
    return [Term("draw, degrees", pairs + arcs + 4 * s.nodes * WEIGHT, 20 * s.pairs)]


def _layers(s: Sizes) -> list[Term]:
    """D^-1/2 (A + I) D^-1/2 x W, bias, ReLU and dropout, of all layers together.

    Along the arcs goes the narrower of a layer's input and output, before or after the product with its matrix. The
    features themselves need no gradient, but what was sent of them does. The gradient of a product with the arcs needs,
    for x and for the weights, the same rows of the same nodes: they are counted once. It reads each node's own gradient
    besides and writes one; for the weights it reads the node's row too and writes a gradient for each arc.
    """
    terms = []
    for layer, wide in enumerate(s.inputs):
        name, sent = f"layer {layer + 1}: ", min(wide, s.width)
        rows, sent_rows = s.nodes * s.width * s.number, s.nodes * sent * s.number
        gathered = _gathered(s, s.arcs, sent)
        terms += [
            _matmul(name + "times its matrix", s, wide, s.width, gradient_of_input=layer > 0 or wide < s.width),
            Term(name + "sum along the arcs", gathered + 2 * sent_rows, 2 * s.arcs * sent),
            Term(name + "gradients along the arcs", gathered + s.arcs * WEIGHT + 3 * sent_rows, 4 * s.arcs * sent),
            Term(name + "bias, ReLU, dropout", 5 * rows, 6 * s.nodes * s.width),
        ]
    return terms


def _head(s: Sizes) -> list[Term]:
    """The last linear map and cross-entropy: logits are read, and read and written once more for their gradient."""
    logits = s.nodes * s.classes
    return [_matmul("head", s, s.width, s.classes), Term("cross-entropy", 3 * logits * s.number, 10 * logits)]


def _adam(parameters: int) -> Term:
    """Parameter and two moments are read and written, the gradient is read; all float32."""
    return Term("Adam", 7 * 4 * parameters, 12 * parameters)


def _matmul(name: str, s: Sizes, wide: int, out: int, *, gradient_of_input: bool = True) -> Term:
    """[N, wide] times [wide, out], and its gradients: each product reads two operands and writes one."""
    products = 3 if gradient_of_input else 2
    return Term(name, products * s.nodes * (wide + out) * s.number, products * 2 * s.nodes * wide * out, matmul=True)


def _gathered(s: Sizes, rows: int, wide: int) -> int:
    """For each pair or arc: a row and its node's number are read, and one value of its own is read or written."""
    return rows * (wide * s.number + INDEX + WEIGHT)
