"""WebShop: the official folder of data, or a generated catalogue."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from rewardswap.checks import at_least
from rewardswap.env_config.base import EnvironmentConfig, Wording
from rewardswap.envs.base import World

Mode = Literal["text", "text_rich", "short"]


@dataclass(frozen=True)
class WebShop(EnvironmentConfig):
    """WebShop's text shop."""

    agent: ClassVar[str] = "shop-agent"
    origin: ClassVar[str] = "product"
    scored: ClassVar[bool] = True

    split: str | None = None
    """Split that is evaluated; none: valid."""
    turn_limit: int | None = None
    """Most turns of an episode, in turns; none: 15 (verl-agent)."""
    data: Path | None = None
    """Folder `data` of WebShop's own set-up; none: a generated catalogue."""
    size: Literal["auto", "small", "full"] = "auto"
    """Which set of a folder: that of 1,000 products, that of all, or the only one that is there."""
    products: int = 1000
    """Size of the generated catalogue, in products."""
    seed: int = 0
    """Seed of the generated catalogue, or of the prices and price limits drawn for a folder."""
    upstream_draw: bool = False
    """Whether a draw is thrown away before a folder's prices, as the original does where its seed
    is fixed."""
    instructions: Literal["synthetic", "human"] = "synthetic"
    """Whose instructions of a folder are the tasks: made from a product's data (verl-agent), or
    written by people."""
    mode: Mode | None = None
    """Pages as the original's `text` or `text_rich`, or shortened for small models (ours); none:
    short where `observation_wording` in the model's config.json says so, else text_rich in the
    chat prompt, whose pages show what can be clicked, and text in verl_agent's, which lists it."""
    upstream_split: bool = False
    """Whether the first 500 goals by position are evaluated and the others trained on, as the
    original does: the same products are in both. Else products are split (ours)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        from rewardswap.envs.webshop.synthetic import MOST_PRODUCTS

        at_least(1, products=self.products)
        if self.products > MOST_PRODUCTS:
            raise ValueError(f"products must be at most {MOST_PRODUCTS}, got {self.products}")
        at_least(0, seed=self.seed)

    @property
    def turns(self) -> int:
        """The turn cap in force, in turns."""
        return 15 if self.turn_limit is None else self.turn_limit

    @property
    def panel_split(self) -> str:
        """The split that is evaluated."""
        return self.split or "valid"

    @property
    def shares_origins(self) -> bool:
        """The original's split is by position, not by product."""
        return self.upstream_split

    def world(self, wording: Wording) -> World:
        """The shop of a folder, or of a generated catalogue."""
        from rewardswap.envs.webshop import load_catalogue
        from rewardswap.envs.webshop.synthetic import synthetic_catalogue
        from rewardswap.envs.webshop.world import ShopWorld

        if self.data is None:
            catalogue = synthetic_catalogue(self.seed, self.products)
        else:
            catalogue = load_catalogue(
                self.data, self.seed, self.upstream_draw, self.instructions, self.size
            )
        return ShopWorld(
            catalogue,
            mode=self._mode(wording),
            turn_limit=self.turns,
            upstream_split=self.upstream_split,
        )

    def decided(self, wording: Wording) -> "WebShop":
        """The same with split, turn cap and mode as they are in force."""
        return replace(
            self, split=self.panel_split, turn_limit=self.turns, mode=self._mode(wording)
        )

    def idle(self) -> Mapping[str, Collection[str]]:
        """Settings of the generator beside a folder, those of a folder without, and of prompts."""
        if self.data is not None:
            return {**super().idle(), "with a folder in env.data": ("products",)}
        of_folders = ("size", "upstream_draw", "instructions")
        return {**super().idle(), "without a folder in env.data": of_folders}

    def _mode(self, wording: Wording) -> Mode:
        if self.mode is not None:
            return self.mode
        if wording == "short":
            return "short"
        return "text_rich" if self.prompt == "chat" else "text"
