"""Graph rewiring as a scikit-learn classifier; needs the package scikit-learn."""

from gumbel_mpnn._util.errors import UserError

try:
    import sklearn as _  # noqa: F401  (the package, not this module)
except ImportError:
    raise UserError("gm.sklearn needs scikit-learn: pip install 'gumbel-mpnn[sklearn]'") from None

from gumbel_mpnn.sklearn.classifier import RewiringClassifier

__all__ = ["RewiringClassifier"]
