"""WebShop's turns in verl-agent's prompts, for its mode `text`."""

from rewardswap.envs.verl_agent import VerlAgentStyle
from rewardswap.envs.webshop.wording import SEPARATOR

BEFORE = f"WebShop{SEPARATOR}Instruction:{SEPARATOR}"
AFTER = f"{SEPARATOR}Search"


class ShopPrompts(VerlAgentStyle):
    """verl-agent's style for WebShop: 20 characters without tags, no history past 13,000."""

    introduction = "You shop in a web store by text actions."
    sent_characters = 20
    most_characters = 13_000

    def task(self, first: str) -> str:
        """The instruction that the first page shows."""
        return first.removeprefix(BEFORE).removesuffix(AFTER)

    def shown(self, observation: str, task: str) -> str:
        """A page below the instruction, each piece in quotes."""
        _, found, page = observation.partition(f"{SEPARATOR}{task}{SEPARATOR}")
        if not found:
            return observation
        return SEPARATOR.join(f"'{piece}'" for piece in page.split(SEPARATOR))
