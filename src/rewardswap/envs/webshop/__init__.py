"""WebShop (Yao et al., arXiv:2207.01206) as a text environment, without a web server or Java."""

from rewardswap.envs.webshop.catalogue import Catalogue, load_catalogue
from rewardswap.envs.webshop.shop import TextShop
from rewardswap.envs.webshop.world import ShopWorld

__all__ = ["Catalogue", "ShopWorld", "TextShop", "load_catalogue"]
