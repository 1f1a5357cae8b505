"""The text shop: actions, pages and the reward of one episode, as the original plays them."""

from rewardswap.envs.webshop import pages
from rewardswap.envs.webshop.actions import parse_action
from rewardswap.envs.webshop.catalogue import MOST_RESULTS, Catalogue
from rewardswap.envs.webshop.choices import mark_choices
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.pages import PAGE_SIZE, Kind, Target, Targets
from rewardswap.envs.webshop.place import DONE, INDEX, ITEM, RESULTS, Place
from rewardswap.envs.webshop.products import Product
from rewardswap.envs.webshop.wording import (
    MODES,
    Mode,
    card_words,
    item_words,
    join,
    words,
)


class TextShop:
    """One visitor of a catalogue that any number of visitors may share.

    Equal, text for text, to the original in its modes `text` and `text_rich`, but that <r>, <c>,
    <q> and <a> at the start of a search mean nothing special. An action that the page does not
    offer changes nothing. Raises ValueError for an unknown mode.
    """

    def __init__(self, catalogue: Catalogue, mode: Mode = "text") -> None:
        if mode not in MODES:
            raise ValueError(f"unknown mode {mode!r}, expected one of {MODES}")
        self._catalogue = catalogue
        self._mode = mode
        self._goal: Goal | None = None
        self._page = ""
        self._targets: Targets = {}
        self._parts: tuple[str, ...] = ()
        self._product: Product | None = None
        self._options: dict[str, str] = {}
        self._visited: set[str] = set()

    def reset(self, goal_index: int) -> str:
        """Start a goal of the catalogue; returns the first page.

        Raises ValueError for a place that the list of goals does not have.
        """
        goals = self._catalogue.goals
        if not 0 <= goal_index < len(goals):
            raise ValueError(f"there is no goal {goal_index}, expected 0 to {len(goals) - 1}")
        self._goal = goals[goal_index]
        self._head = words(pages.head_nodes(self.goal["instruction_text"]), self._mode)
        self._open_index()
        return self._observation()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Take an action: page, reward in [0, 1] and whether something was bought.

        Raises ValueError before `reset`.
        """
        if self._goal is None:
            raise ValueError("no goal was started; call reset(goal_index) before step(action)")
        name, argument = parse_action(action)
        reward, done = 0.0, False
        if name == "search":
            self._open_search(argument)
        elif self._takes(name, argument):
            reward, done = self._click(self._targets[argument])
        return self._observation(), reward, done

    @property
    def goal(self) -> Goal:
        """The goal being played; raises ValueError before `reset`."""
        if self._goal is None:
            raise ValueError("no goal was started; call reset(goal_index) first")
        return self._goal

    @property
    def clickables(self) -> list[str]:
        """What can be clicked now, lower case, in the page's order; empty before `reset`."""
        return list(self._targets)

    @property
    def has_search_bar(self) -> bool:
        """Whether the page shows a search bar; a search is possible on every page all the same."""
        return self._targets is pages.INDEX_TARGETS

    def accepts(self, action: str) -> bool:
        """Whether an action would be taken: any search, or a click on what the page offers."""
        return self._takes(*parse_action(action))

    @property
    def place(self) -> Place:
        """Where the visitor is; raises ValueError before `reset`."""
        if self._goal is None:
            raise ValueError("no goal was started; call reset(goal_index) first")
        if self._page == INDEX:
            return Place(INDEX)
        asin = "" if self._product is None else self._product.asin
        options = tuple(sorted(self._options.items()))
        if self._page == DONE:
            return Place(DONE, asin=asin, options=options)
        found = Place(self._page, tuple(self._results), self._number, asin, options)
        if self._mode != "text_rich":
            return found
        return found._replace(quotes=self._quotes, visited=tuple(sorted(self._visited)))

    def _takes(self, name: str, argument: str) -> bool:
        offered = name == "click" and argument in self._targets and argument != "search"
        return offered or name == "search"

    def _observation(self) -> str:
        return join(*self._parts, mode=self._mode)

    def _click(self, target: Target) -> tuple[float, bool]:
        product = self._product
        if target.kind is Kind.LINK:
            self._visited.add(target.value)
            self._open_item(self._catalogue.products[target.value])
        elif target.value == pages.BACK:
            self._open_index()
        elif product is None:  # among the results
            self._open_results(self._number + (1 if target.value == pages.NEXT else -1))
        elif target.kind is Kind.VALUE:
            self._options[target.name] = target.value
            self._open_item(product)
        elif target.value == pages.BUY:
            return self._buy(product), True
        elif target.value in pages.SUB_PAGES:
            self._page, self._targets = target.value, pages.SUB_TARGETS
            self._parts = (self._head, words(pages.sub_nodes(product, target.value), self._mode))
        elif self._page != ITEM:
            self._open_item(product)
        else:
            self._open_results(self._number)
        return 0.0, False

    def _open_index(self) -> None:
        self._visited = set()
        self._leave_product()
        self._page, self._targets = INDEX, pages.INDEX_TARGETS
        index = words(pages.index_nodes(self.goal["instruction_text"]), self._mode)
        self._parts = (index,)

    def _open_search(self, query: str) -> None:
        self._results = self._catalogue.search(query, MOST_RESULTS)
        self._quotes = query if '"' in query else ""
        self._open_results(1)

    def _open_results(self, number: int) -> None:
        self._leave_product()
        self._number = number
        asins = self._results[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        products = self._catalogue.products
        cards = [card_words(products[a], self._mode, a in self._visited) for a in asins]
        self._page, self._targets = RESULTS, pages.results_targets(number, asins)
        counts = words(pages.results_head(number, len(self._results)), self._mode)
        self._parts = (self._head, counts, *cards)

    def _open_item(self, product: Product) -> None:
        self._product = product
        self._page, self._targets = ITEM, pages.item_targets(product)
        if self._mode == "text" or not (self._options or self._quotes):
            self._parts = (self._head, item_words(product, self._mode))
        else:
            news, body = mark_choices(product, self._options, self._quotes, self._number)
            self._parts = (news, self._head, body)

    def _buy(self, product: Product) -> float:
        price = self._catalogue.prices[product.asin]
        reward = self._catalogue.reward(product, self.goal, price, self._options)
        done = pages.done_nodes(product.asin, self._options, reward)
        self._page, self._targets = DONE, pages.DONE_TARGETS
        self._parts = (words(done, self._mode),)
        return reward

    def _leave_product(self) -> None:
        self._product = None
        self._options = {}
