"""Tables and figures of the paper."""

from experiments.experiment import Page
from experiments.paper.ablation import Ablation
from experiments.paper.accuracy import Accuracy, AccuracyUnfiltered, Backbones
from experiments.paper.bottleneck import Bottleneck
from experiments.paper.components import Components
from experiments.paper.decomposition import Decomposition
from experiments.paper.learned_graphs import Consistency, DegreeGoal
from experiments.paper.long_range import LongRange
from experiments.paper.measures import Measures
from experiments.paper.mixtures import Mixtures
from experiments.paper.neighborhoods import Neighborhoods
from experiments.paper.noise import Noise
from experiments.paper.summary import Summary
from experiments.paper.temperature import Temperature

PAGES: tuple[Page, ...] = (
    Accuracy(),
    AccuracyUnfiltered(),
    Backbones(),
    Noise(),
    LongRange(),
    Bottleneck(),
    Components(),
    Temperature(),
    Ablation(),
    DegreeGoal(),
    Consistency(),
    Decomposition(),
    Measures(),
    Mixtures(),
    Neighborhoods(),
    Summary(),
)
"""Tables of the paper, which `all` makes in this order."""
