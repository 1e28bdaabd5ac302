"""What is known of faults: the taxonomy, the fix patterns, the study's figures and the rules."""

from phalanx.knowledge.fixes import FIX_PATTERNS
from phalanx.knowledge.pack import load_bare_rules, load_rules
from phalanx.knowledge.rule import Blame, Claims, EvidenceSpec, FixSpec, Ranks, Rule, RuleError
from phalanx.knowledge.taxonomy import SYMPTOMS

__all__ = [
    "FIX_PATTERNS",
    "SYMPTOMS",
    "Blame",
    "Claims",
    "EvidenceSpec",
    "FixSpec",
    "Ranks",
    "Rule",
    "RuleError",
    "load_bare_rules",
    "load_rules",
]
