"""What a product of WebShop (Yao et al., arXiv:2207.01206) consists of, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One product; two are equal only if they are the same object."""

    asin: str
    name: str
    """Also the title of its page."""
    category: str
    query: str
    """The search term under which the shop had listed it, lower case."""
    product_category: str
    """Path of categories, joined by ' › '."""
    description: str
    bullets: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    """Values by option name, all lower case."""
    attributes: tuple[str, ...]
    pricing: tuple[float, ...] = (100.0,)
    """Dollars: one price, or the two ends of a range."""
    instruction: str | None = None
    """The synthetic instruction without options and price."""
    instruction_attributes: tuple[str, ...] = ()
    """The attributes that the synthetic instruction asks for."""

    @property
    def price_tag(self) -> str:
        """The price as a page shows it: "$5.0" or "$5.0 to $7.5"."""
        return " to ".join(f"${price}" for price in self.pricing)

    @property
    def contents(self) -> str:
        """The lower-case text that the search engine indexes."""
        options = ", and ".join(f"{n}: {', '.join(values)}" for n, values in self.options.items())
        bullet = self.bullets[0] if self.bullets else ""
        return " ".join((self.name, self.description, bullet, options)).lower()
