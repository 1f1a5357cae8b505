"""One paper per file; a method is a frozen value that makes an `Algorithm`."""

from rewardswap.methods.base import Method
from rewardswap.methods.cispo import CISPO
from rewardswap.methods.dapo import DAPO
from rewardswap.methods.decoupled_ppo import DecoupledPPO
from rewardswap.methods.dppo import DPPO
from rewardswap.methods.dr_grpo import DrGRPO
from rewardswap.methods.gdpo import GDPO
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.gmpo import GMPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.gspo import GSPO
from rewardswap.methods.max_rl import MaxRL
from rewardswap.methods.opo import OPO
from rewardswap.methods.ppo import PPO
from rewardswap.methods.progpo import ProGPO
from rewardswap.methods.reinforce_plus_plus import ReinforcePlusPlus, ReinforcePlusPlusBaseline
from rewardswap.methods.rloo import RLOO
from rewardswap.methods.sapo import SAPO
from rewardswap.methods.softmax_grpo import SoftmaxGRPO
from rewardswap.methods.verl_agent_compat import VerlAgentCompat
from rewardswap.outside import imported

METHODS: dict[str, type[Method]] = {
    "grpo": GRPO,
    "dr_grpo": DrGRPO,
    "dapo": DAPO,
    "rloo": RLOO,
    "reinforce_plus_plus": ReinforcePlusPlus,
    "reinforce_plus_plus_baseline": ReinforcePlusPlusBaseline,
    "opo": OPO,
    "gspo": GSPO,
    "cispo": CISPO,
    "sapo": SAPO,
    "gmpo": GMPO,
    "dppo": DPPO,
    "ppo": PPO,
    "decoupled_ppo": DecoupledPPO,
    "gigpo": GiGPO,
    "gdpo": GDPO,
    "progpo": ProGPO,
    "softmax_grpo": SoftmaxGRPO,
    "max_rl": MaxRL,
    "verl_agent_compat": VerlAgentCompat,
}
"""Every method by its name on the command line."""


def method_class(name: str) -> type[Method]:
    """The method of a name, or of `module:attribute` from outside the package.

    A module is looked for in the working directory too. Raises ValueError for a module that cannot
    be imported, or an attribute that is no whole `Method`; KeyError for an unknown name.
    """
    if ":" not in name:
        return METHODS[name]
    found = imported("method", name)
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ValueError(
            f"method {name!r} is {found!r}, not a subclass of rewardswap.methods.base.Method"
        )
    if "__dataclass_fields__" not in vars(found):
        raise ValueError(
            f"method {name!r} lacks @dataclass(frozen=True): its defaults would be lost"
        )
    if found.algorithm is Method.algorithm:
        raise ValueError(f"method {name!r} has no `algorithm` of its own")
    return found


def method_name(method: Method) -> str:
    """The name that `method_class` finds the method's class by."""
    kind = type(method)
    names = [name for name, known in METHODS.items() if known is kind]
    return names[0] if names else f"{kind.__module__}:{kind.__qualname__}"
