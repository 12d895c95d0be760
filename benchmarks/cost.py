"""What a training step of Gumbel-MPNN (bilinear scorer, GCN) must read, write and compute, term by term; and an epoch.

Rows gathered along pairs and arcs are counted as if there were no cache; arrays of nodes once for each pass over them;
what fits in registers (noise, dropout's random numbers) not at all. A graph has N nodes, P pairs and A = 2 P arcs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    words: int | None = None
    """How many features are not 0, where the others are not kept; None: all are kept."""

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
        """Encoder, form and its bias; the backbone's."""
        return self.features * self.channels + self.channels**2 + 1 + self.backbone_parameters

    @property
    def backbone_parameters(self) -> int:
        """Matrix and bias of each layer; the head."""
        stack = sum(wide * self.width + self.width for wide in self.inputs)
        return stack + self.width * self.classes + self.classes


ARXIV = Sizes(nodes=169_343, pairs=2_315_598, features=128, width=256, layers=3, classes=40, channels=128)
"""ogbn-arxiv's counts, with as many candidates as it has edges."""
CORA = Sizes(nodes=2708, pairs=5278 + 10_634, features=1433, width=256, layers=2, classes=7, channels=64, words=49_216)
"""Cora's, with five local candidates for each node."""
PLAIN_CORA = replace(CORA, pairs=5278)
"""The same without candidates."""


@dataclass(frozen=True)
class Term:
    """A part of the step."""

    name: str
    bytes: int
    flops: int
    matmul: bool = False
    """Whether it is a dense product, which has the rate of the tensor cores."""
    forward: float = 0.0
    """The share of it that is done on the way forward."""


def step_terms(size: Sizes) -> list[Term]:
    """All parts of a step, forward and backward."""
    return [*_scorer(size), *_draw(size), *_layers(size), *_head(size), _adam(size.parameters)]


def plain_step_terms(size: Sizes) -> list[Term]:
    """Those of a GCN without rewiring: no scorer, no gradient for the weights of the arcs."""
    return [*_layers(size, weights=False), *_head(size), _adam(size.backbone_parameters)]


def evaluation_terms(terms: list[Term]) -> list[Term]:
    """What an evaluation does of a step's parts."""
    return [
        replace(term, bytes=int(term.bytes * term.forward), flops=int(term.flops * term.forward))
        for term in terms
        if term.forward
    ]


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
    dense = s.nodes * s.channels
    return [
        _times_features("encode the features", s, s.channels, gradient_of_input=False),
        Term("scale to length 1", 5 * dense * s.number, 10 * dense, forward=2 / 5),
        _matmul("times the form's matrix", s, s.channels, s.channels),
        Term(
            "scores of the pairs",
            _gathered(s, s.pairs, s.channels) + dense * s.number,
            2 * s.pairs * s.channels,
            forward=1,
        ),
        Term(
            "gradient of the scores",
            2 * (_gathered(s, s.pairs, s.channels) + dense * s.number),
            4 * s.pairs * s.channels,
        ),
    ]


def _draw(s: Sizes) -> list[Term]:
    """A weight for each pair and arc, degrees, and the way back.

    Forward: read θ, write the weight; write the arcs' weights from their pairs', read them for the degrees. Backward:
    read two arcs' gradients and θ for each pair, write its gradient. Nodes: read the degree, write its root, twice.
    """
    pairs, arcs = (2 + 2) * s.pairs * WEIGHT, (3 * WEIGHT + INDEX) * s.arcs
    return [Term("draw, degrees", pairs + arcs + 4 * s.nodes * WEIGHT, 20 * s.pairs, forward=1 / 2)]


def _layers(s: Sizes, *, weights: bool = True) -> list[Term]:
    """D^-1/2 (A + I) D^-1/2 x W, bias, ReLU and dropout, of all layers together.

    Along the arcs goes the narrower of a layer's input and output, before or after the product with its matrix. The
    features themselves need no gradient, but what was sent of them does. The gradient of a product with the arcs needs,
    for x and for the `weights`, the same rows of the same nodes: they are counted once. It reads each node's own
    gradient besides and writes one; for the weights it reads the node's row too and writes a gradient for each arc.
    """
    terms = []
    for layer, wide in enumerate(s.inputs):
        name, sent = f"layer {layer + 1}: ", min(wide, s.width)
        rows, sent_rows = s.nodes * s.width * s.number, s.nodes * sent * s.number
        terms += [
            _matmul(name + "times its matrix", s, wide, s.width)
            if layer > 0
            else _times_features(name + "times its matrix", s, s.width, gradient_of_input=wide < s.width),
            Term(name + "sum along the arcs", _gathered(s, s.arcs, sent) + 2 * sent_rows, 2 * s.arcs * sent, forward=1),
            Term(
                name + "gradients along the arcs",
                _gathered(s, s.arcs, sent, values=1 + weights) + (2 + weights) * sent_rows,
                (2 + 2 * weights) * s.arcs * sent,
            ),
            Term(name + "bias, ReLU, dropout", 5 * rows, 6 * s.nodes * s.width, forward=2 / 5),
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
    moved, done = s.nodes * (wide + out) * s.number, 2 * s.nodes * wide * out
    return Term(name, products * moved, products * done, matmul=True, forward=1 / products)


def _times_features(name: str, s: Sizes, out: int, *, gradient_of_input: bool) -> Term:
    """The features times a matrix, and its gradient.

    Where only those that are not 0 are kept, a row of the matrix is read for each on the way forward and a row of the
    result's gradient on the way back; the gradient of the matrix is as large as the matrix.
    """
    if s.words is None:
        return _matmul(name, s, s.features, out, gradient_of_input=gradient_of_input)
    forward = _gathered(s, s.words, out) + s.nodes * out * s.number
    both = forward + _gathered(s, s.words, out) + s.features * out * s.number
    return Term(name, both, 4 * s.words * out, forward=forward / both)


def _gathered(s: Sizes, rows: int, wide: int, *, values: int = 1) -> int:
    """For each pair or arc: a row and its node's number are read, and `values` of its own are read or written."""
    return rows * (wide * s.number + INDEX + values * WEIGHT)
