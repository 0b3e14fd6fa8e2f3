"""How far the draws of a pseudo-marginal run can be trusted."""

from pymc_pseudomarginal.certificate.certify import certify
from pymc_pseudomarginal.certificate.report import Certificate
from pymc_pseudomarginal.certificate.verdict import Finding

__all__ = ["Certificate", "Finding", "certify"]
