"""What fits where and what can be done with what, as facts of the official games.

The tables were counted over all official games; only kinds that can be moved, that hold something
or that serve a task are listed. A room kind lists its furniture with the share of official rooms of
that kind which have it, rounded to a tenth.
"""

from collections.abc import Mapping


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Lines of `key: word word ...` as a mapping in the order of the lines."""
    lines = (line.split(":") for line in text.strip().splitlines())
    return {key.strip(): tuple(words.split()) for key, words in lines}


ACCEPTS: Mapping[str, tuple[str, ...]] = _table("""
ArmChair: Book Box CellPhone Cloth CreditCard KeyChain Laptop Newspaper Pillow RemoteControl
BathtubBasin: Cloth DishSponge HandTowel SoapBar
Bed: BaseballBat BasketBall Book CellPhone Laptop Pillow TennisRacket
Cabinet: Book Bowl Box CD Candle Cloth Cup DishSponge Glassbottle HandTowel Kettle Ladle Mug \
Newspaper Pan PepperShaker Plate Plunger Pot SaltShaker SoapBar SoapBottle SprayBottle TissueBox \
ToiletPaper Vase WateringCan WineBottle
Cart: Candle Cloth DishSponge HandTowel Plunger SoapBar SoapBottle SprayBottle TissueBox \
ToiletPaper
CoffeeMachine: Mug
CoffeeTable: Book Bowl Box Candle CellPhone CreditCard KeyChain Laptop Newspaper Pen Pencil Plate \
RemoteControl Statue TissueBox Vase Watch WateringCan
CounterTop: AlarmClock Apple Book Bowl Bread ButterKnife CD Candle CellPhone Cloth CreditCard Cup \
DishSponge Egg Fork Glassbottle HandTowel Kettle KeyChain Knife Ladle Laptop Lettuce Mug Pan Pen \
Pencil PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon \
SprayBottle Statue TissueBox ToiletPaper Tomato Vase WineBottle
Desk: AlarmClock BasketBall Book Bowl Box CD CellPhone Cloth CreditCard KeyChain Laptop Mug Pen \
Pencil RemoteControl Statue TennisRacket TissueBox Vase Watch WateringCan
DiningTable: AlarmClock Apple BaseballBat BasketBall Book Bowl Box Bread ButterKnife CD Candle \
CellPhone Cloth CreditCard Cup DishSponge Egg Fork Glassbottle Kettle KeyChain Knife Ladle Laptop \
Lettuce Mug Newspaper Pan Pen Pencil PepperShaker Plate Pot Potato RemoteControl SaltShaker \
SoapBottle Spatula Spoon SprayBottle Statue TennisRacket TissueBox Tomato Vase Watch WateringCan \
WineBottle
Drawer: Book ButterKnife CD Candle CellPhone Cloth CreditCard DishSponge Fork HandTowel KeyChain \
Knife Ladle Newspaper Pen Pencil PepperShaker RemoteControl SaltShaker SoapBar SoapBottle Spatula \
Spoon SprayBottle TissueBox ToiletPaper Watch WateringCan
Dresser: AlarmClock BasketBall Book Bowl Box CD Candle CellPhone Cloth CreditCard KeyChain Laptop \
Mug Newspaper Pen Pencil Plate RemoteControl SprayBottle Statue TennisRacket TissueBox ToiletPaper \
Vase Watch WateringCan
Fridge: Apple Bowl Bread Cup Egg Glassbottle Lettuce Mug Pan Plate Pot Potato Tomato WineBottle
GarbageCan: Apple Bread CD Cloth DishSponge Egg HandTowel Lettuce Newspaper Pen Pencil Potato \
SoapBar SoapBottle SprayBottle TissueBox ToiletPaper Tomato WineBottle
HandTowelHolder: HandTowel
LaundryHamper: Cloth
Microwave: Apple Bowl Bread Cup Egg Glassbottle Mug Plate Potato Tomato
Ottoman: Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl
Safe: CD CellPhone CreditCard KeyChain Statue Vase Watch
Shelf: AlarmClock Book Bowl Box CD Candle CellPhone Cloth CreditCard Cup DishSponge Glassbottle \
HandTowel Kettle KeyChain Mug Newspaper Pen Pencil PepperShaker Plate Pot RemoteControl SaltShaker \
SoapBar SoapBottle SprayBottle Statue TissueBox ToiletPaper Vase Watch WateringCan WineBottle
SideTable: AlarmClock Apple BaseballBat BasketBall Book Bowl Box Bread ButterKnife CD Candle \
CellPhone Cloth CreditCard Cup DishSponge Egg Fork HandTowel Kettle KeyChain Knife Laptop Lettuce \
Mug Newspaper Pan Pen Pencil PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBar \
SoapBottle Spatula Spoon SprayBottle Statue TennisRacket TissueBox ToiletPaper Tomato Vase Watch \
WateringCan WineBottle
SinkBasin: Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Glassbottle HandTowel Kettle Knife \
Ladle Lettuce Mug Pan Plate Pot Potato SoapBar Spatula Spoon Tomato
Sofa: Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl
StoveBurner: Kettle Pan Pot
TVStand: TissueBox
Toilet: Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper
ToiletPaperHanger: ToiletPaper
TowelHolder: Towel
""")
"""Object kinds that a receptacle kind accepts."""

CAN_CONTAIN: frozenset[tuple[str, str]] = frozenset(
    (receptacle, kind) for receptacle, kinds in ACCEPTS.items() for kind in kinds
)
"""The same as pairs (receptacle kind, object kind)."""

OPENABLE: frozenset[str] = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"})
"""Receptacle kinds that start closed."""

KINDS_WITH: Mapping[str, tuple[str, ...]] = _table("""
cleanable: Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan \
Plate Pot Potato SoapBar Spatula Spoon Tomato
heatable: Apple Bread Cup Egg Mug Plate Potato Tomato
coolable: Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato WineBottle
sliceable: Apple Bread Egg Lettuce Potato Tomato
toggleable: DeskLamp FloorLamp
""")
"""Object kinds that have an affordance; every movable kind is pickupable besides."""

CONTAINERS: frozenset[str] = frozenset({"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"})
"""Object kinds that can hold other objects."""

LAMP_STANDS: tuple[str, ...] = ("Desk", "SideTable", "Dresser", "Shelf")
"""Receptacle kinds on which a desk lamp stands."""

FURNITURE: Mapping[str, Mapping[str, float]] = {
    room: {kind: float(share) for kind, share in (word.split("=") for word in words)}
    for room, words in _table("""
kitchen: Cabinet=1 CoffeeMachine=1 CounterTop=1 DiningTable=.5 Drawer=1 Fridge=1 GarbageCan=1 \
Microwave=1 Shelf=.2 SideTable=.1 SinkBasin=1 StoveBurner=1
living: ArmChair=.9 Cabinet=.2 CoffeeTable=.8 DiningTable=.5 Drawer=.8 Dresser=.4 GarbageCan=1 \
Ottoman=.1 Safe=.1 Shelf=.4 SideTable=.8 Sofa=1 TVStand=.3
bedroom: ArmChair=.2 Bed=1 Cabinet=.2 Desk=.7 Drawer=1 Dresser=.4 GarbageCan=1 LaundryHamper=.3 \
Safe=.2 Shelf=.7 SideTable=.6
bathroom: BathtubBasin=.7 Cabinet=.5 Cart=.1 CounterTop=.9 Drawer=.6 Dresser=.1 GarbageCan=1 \
HandTowelHolder=1 Shelf=.2 SideTable=.1 SinkBasin=1 Toilet=1 ToiletPaperHanger=1
""").items()
}
"""Receptacle kinds of a room kind, with the share of such rooms that have one."""

MOVABLES: Mapping[str, tuple[str, ...]] = _table("""
kitchen: Apple Bowl Bread ButterKnife Cup DishSponge Egg Fork Glassbottle Kettle Knife Ladle \
Lettuce Mug Pan PepperShaker Plate Pot Potato SaltShaker SoapBottle Spatula Spoon Tomato Vase \
WineBottle
living: Book Box CreditCard KeyChain Laptop Newspaper Pillow Plate RemoteControl Statue TissueBox \
Vase Watch WateringCan
bedroom: AlarmClock Book Bowl CD CellPhone CreditCard KeyChain Laptop Mug Pen Pencil Pillow \
TissueBox
bathroom: Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper
""")
"""Object kinds that lie about in a room kind."""

FIXTURES: tuple[str, ...] = _table("""
fixtures: Bathtub Blinds Boots Chair Curtains DeskLamp FloorLamp Footstool HousePlant \
LaundryHamperLid LightSwitch Mirror Painting PaperTowelRoll Poster ScrubBrush ShowerDoor \
ShowerGlass Sink StoveKnob TeddyBear Television Toaster Towel Window
""")["fixtures"]
"""Further kinds that occur in official rooms and serve no generated task, save the desk lamp."""
