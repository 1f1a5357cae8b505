"""The words of the generated shop: kinds of products, and what they can be like (ours)."""

from dataclasses import dataclass

# fmt: off
BRANDS = tuple(
    start + end
    for start in ("nor", "bel", "cal", "del", "fen", "hal", "jor", "kel", "lum", "mar", "ver")
    for end in ("wick", "dane", "field", "mora", "nix", "ora", "vale", "worth", "sen", "tide")
)
"""Invented names of makers."""

COLOURS = (
    "red", "blue", "green", "black", "white", "grey", "pink", "purple", "orange", "yellow", "brown",
    "beige", "navy", "teal", "gold", "silver", "olive", "maroon", "ivory", "khaki",
)
CLOTHES_SIZES = ("x-small", "small", "medium", "large", "x-large", "xx-large")
BED_SIZES = ("twin", "full", "queen", "king")
SHAPES = ("round", "square", "oval", "hexagon")
COUNTS = ("one", "two", "three", "four", "six", "eight", "twelve")
LENGTHS = ("short", "mid", "long", "extended")
SCENTS = ("lavender", "rose", "citrus", "cedar", "jasmine", "coconut", "eucalyptus", "vanilla")
FLAVOURS = (
    "honey", "ginger", "cinnamon", "lemon", "peach", "mint", "caramel", "garlic", "pepper", "maple",
)
POWERS = ("low", "normal", "strong", "turbo")
# fmt: on

OPTIONS = {
    "color": COLOURS,
    "size": CLOTHES_SIZES,
    "bed": BED_SIZES,
    "shape": SHAPES,
    "count": COUNTS,
    "length": LENGTHS,
    "scent": SCENTS,
    "flavor": FLAVOURS,
    "power": POWERS,
}
"""Values by the name of an option."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of product."""

    noun: str
    """How a title calls it, in one or two words."""
    query: str
    """How instructions and the shop's listing call it."""
    shelf: str
    """The last part of its path of categories."""
    options: tuple[str, ...]
    """Names of the options that it may have."""
    dollars: tuple[int, int]
    """Lowest and highest price, in whole dollars."""


@dataclass(frozen=True, slots=True)
class Department:
    """Kinds of products that share materials, styles and attributes."""

    category: str
    path: str
    """The first two parts of the path of categories."""
    kinds: tuple[Kind, ...]
    materials: tuple[str, ...]
    styles: tuple[str, ...]
    attributes: tuple[str, ...]


def _kinds(shelf: str, options: str, dollars: tuple[int, int], names: str) -> tuple[Kind, ...]:
    """Kinds of one shelf from "noun=query" pairs."""
    pairs = (name.strip().split("=") for name in names.split(","))
    return tuple(Kind(noun, query, shelf, tuple(options.split()), dollars) for noun, query in pairs)


# fmt: off
FASHION = Department(
    category="fashion",
    path="Clothing, Shoes & Jewelry › Everyday Wear",
    kinds=(
        *_kinds("Tops", "color size", (12, 60),
                "shirt=shirts, sweater=sweaters, hoodie=hoodies, blouse=blouses"),
        *_kinds("Outerwear", "color size", (35, 160),
                "jacket=jackets, coat=coats, vest=vests"),
        *_kinds("Bottoms", "color size length", (18, 90),
                "jeans=jeans, skirt=skirts, shorts=shorts"),
        *_kinds("Shoes", "color size", (25, 140),
                "sneakers=sneakers, boots=boots, sandals=sandals, slippers=slippers"),
        *_kinds("Accessories", "color count", (8, 45),
                "scarf=scarves, hat=hats, socks=socks, belt=belts"),
    ),
    materials=("cotton", "linen", "wool", "denim", "leather", "fleece", "nylon", "canvas"),
    styles=("slim", "loose", "striped", "plaid", "vintage", "casual", "cropped", "hooded",
            "quilted", "ribbed", "floral", "athletic"),
    attributes=("machine washable", "hand wash", "long sleeve", "quick drying", "water resistant",
                "high waist", "rubber sole", "arch support", "elastic closure", "button fastening",
                "moisture wicking", "stretch fabric", "memory foam", "wrinkle free"),
)

BEAUTY = Department(
    category="beauty",
    path="Beauty & Personal Care › Daily Care",
    kinds=(
        *_kinds("Skin Care", "scent count", (6, 55),
                "face cream=face creams, body lotion=body lotions, lip balm=lip balms, "
                "soap bar=soap bars, face mask=face masks, body scrub=body scrubs"),
        *_kinds("Hair Care", "scent count", (7, 60),
                "shampoo=shampoos, conditioner=conditioners, hair oil=hair oils, "
                "hair mask=hair masks"),
        *_kinds("Tools", "color count", (9, 80),
                "makeup brush=makeup brushes, hair comb=hair combs, razor=razors, mirror=mirrors"),
    ),
    materials=("clay", "charcoal", "oat", "bamboo", "silk", "argan", "shea", "aloe"),
    styles=("gentle", "daily", "intense", "creamy", "light", "foaming", "overnight", "firming",
            "soothing", "travel", "salon", "classic"),
    attributes=("cruelty free", "paraben free", "sulfate free", "dermatologist tested",
                "sensitive skin", "dry skin", "oily skin", "damaged hair", "curly hair",
                "tea tree", "hyaluronic acid", "vitamin c", "long lasting", "leak proof"),
)

ELECTRONICS = Department(
    category="electronics",
    path="Electronics › Devices",
    kinds=(
        *_kinds("Audio", "color power", (15, 190),
                "headphones=headphones, speaker=speakers, microphone=microphones, "
                "earbuds=earbuds"),
        *_kinds("Computing", "color length", (10, 120),
                "keyboard=keyboards, mouse=mice, usb cable=usb cables, laptop stand=laptop stands, "
                "webcam=webcams"),
        *_kinds("Power", "color power count", (9, 90),
                "power bank=power banks, wall charger=wall chargers, flashlight=flashlights"),
        *_kinds("Photo", "color length", (14, 150),
                "tripod=tripods, camera bag=camera bags, phone case=phone cases"),
    ),
    materials=("aluminum", "steel", "carbon", "rubber", "glass", "silicone", "bakelite", "acrylic"),
    styles=("compact", "slimline", "foldable", "gaming", "studio", "rugged", "mini", "portable",
            "ergonomic", "backlit", "modular", "retro"),
    attributes=("noise cancelling", "fast charging", "high resolution", "easy install",
                "hands free", "plug play", "wireless bluetooth", "shock proof", "heavy duty",
                "high speed", "dust proof", "stereo sound", "gold plated", "ultra hd"),
)

GARDEN = Department(
    category="garden",
    path="Home & Kitchen › Living",
    kinds=(
        *_kinds("Bedding", "color bed", (20, 180),
                "mattress=mattresses, blanket=blankets, duvet cover=duvet covers, "
                "bed frame=bed frames"),
        *_kinds("Furniture", "color shape", (40, 230),
                "console table=console tables, bar stool=bar stools, bookshelf=bookshelves, "
                "desk=desks, ottoman=ottomans"),
        *_kinds("Decor", "color shape count", (9, 95),
                "rug=rugs, wall clock=wall clocks, vase=vases, picture frame=picture frames, "
                "plant pot=plant pots"),
        *_kinds("Candles", "scent count", (7, 40), "candle=candles, diffuser=diffusers"),
    ),
    materials=("oak", "pine", "marble", "velvet", "wicker", "ceramic", "iron", "jute"),
    styles=("rustic", "modern", "farmhouse", "coastal", "industrial", "boho", "minimal", "carved",
            "woven", "tufted", "geometric", "antique"),
    attributes=("eco friendly", "easy assemble", "space saving", "storage space", "stain resistant",
                "fade resistant", "non slip", "scratch resistant", "easy clean", "spot clean",
                "weather resistant", "living room", "dining room", "double sided"),
)

GROCERY = Department(
    category="grocery",
    path="Grocery & Gourmet Food › Pantry",
    kinds=(
        *_kinds("Snacks", "flavor count", (5, 40),
                "granola=granolas, crackers=crackers, popcorn=popcorns, protein bar=protein bars, "
                "trail mix=trail mixes, cookies=cookies"),
        *_kinds("Drinks", "flavor count", (6, 50),
                "herbal tea=herbal teas, coffee beans=coffee bean bags, cold brew=cold brews, "
                "juice=juices"),
        *_kinds("Cooking", "flavor count", (5, 45),
                "olive oil=olive oils, hot sauce=hot sauces, pasta=pastas, soup=soups"),
    ),
    materials=("almond", "oatmeal", "quinoa", "cocoa", "rice", "walnut", "sesame", "barley"),
    styles=("crunchy", "roasted", "smoky", "sweet", "spicy", "savory", "stone-ground", "toasted",
            "artisan", "whole", "creamy", "chewy"),
    attributes=("gluten free", "sugar free", "dairy free", "soy free", "nut free", "plant based",
                "non gmo", "low sodium", "low carb", "high protein", "keto friendly", "fat free",
                "artificial colors", "usda organic"),
)
# fmt: on

DEPARTMENTS = (FASHION, BEAUTY, ELECTRONICS, GARDEN, GROCERY)
"""The whole shop."""

USES = ("everyday use", "small homes", "long trips", "busy mornings", "a thoughtful gift")
"""Ends of a description."""
