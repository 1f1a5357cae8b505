"""One environment per file; an environment's settings are a frozen value that makes its world."""

from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_config.own import Own
from rewardswap.env_config.webshop import WebShop

ENVIRONMENTS: dict[str, type[EnvironmentConfig]] = {
    "alfworld": Alfworld,
    "webshop": WebShop,
    "own": Own,
}
"""Every environment by its name on the command line."""


def environment_name(env: EnvironmentConfig) -> str:
    """The name of an environment in `ENVIRONMENTS`."""
    return next(name for name, kind in ENVIRONMENTS.items() if kind is type(env))


def model_of(env: EnvironmentConfig, model: str | None) -> str:
    """The model that is asked for, or the small agent that ships for the environment.

    Raises ValueError for the small agent of another environment, which knows none of its words,
    and where none ships.
    """
    if model is None:
        if not env.agent:
            raise ValueError(
                f"no model ships for environment {environment_name(env)}; give policy.model (eval: "
                "--model) a folder: `rewardswap check MODULE:NAME --model FOLDER` makes a small one"
            )
        return env.agent
    for name, kind in ENVIRONMENTS.items():
        if model == kind.agent != env.agent:
            raise ValueError(
                f"model {model!r} is the small agent of {name} and cannot read "
                f"{environment_name(env)}; give none for {env.agent!r}, or the folder of another"
            )
    return model
