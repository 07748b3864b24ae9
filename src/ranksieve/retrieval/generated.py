"""`generate_texts`: a small collection of readable texts with queries and grades, for demonstrations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranksieve.errors import ParameterError, param
from ranksieve.retrieval.corpus import Document
from ranksieve.retrieval.queries import Queries

# group → subject → words that go with it
SUBJECTS: dict[str, dict[str, str]] = {
    "kitchen": {
        "sourdough bread": "starter flour crust oven dough rise crumb",
        "espresso machine": "portafilter grinder steam pressure beans crema boiler",
        "cast iron pan": "seasoning rust skillet oil heat stove",
        "chef knife": "blade edge steel handle whetstone cutting",
        "pressure cooker": "valve gasket lid beans stew steam",
        "pizza stone": "oven crust dough peel heat flour",
        "fermented vegetables": "jar brine cabbage salt lid fermentation",
        "chocolate cake": "cocoa batter butter tin sponge frosting",
    },
    "garden": {
        "tomato plants": "seedling stake blossom soil vine harvest",
        "raised bed": "timber soil compost frame drainage liner",
        "compost heap": "leaves worms peelings moisture heap soil",
        "lawn mower": "blade grass engine deck mulch battery",
        "rose bushes": "thorn blossom stem bud soil mildew",
        "apple tree": "branch rootstock blossom fruit orchard graft",
        "drip irrigation": "hose emitter timer pressure filter bed",
        "herb garden": "basil thyme pot window soil leaves",
    },
    "cycling": {
        "bicycle chain": "lubricant cassette link wear derailleur grease",
        "disc brakes": "rotor pads caliper lever squeal bleed",
        "road bike": "frame saddle tyre handlebar pedal gears",
        "tubeless tyres": "sealant rim valve puncture pressure bead",
        "bike lights": "battery beam mount lumen charger visibility",
        "cargo bike": "box load motor battery stand frame",
        "cycling helmet": "strap foam shell fit padding visor",
        "touring panniers": "rack bag waterproof buckle load clip",
    },
    "outdoors": {
        "hiking boots": "sole leather ankle laces blister tread",
        "sleeping bag": "down zipper temperature hood insulation tent",
        "camping stove": "gas burner fuel flame pot windshield",
        "trail running shoes": "grip mud cushioning laces sole drop",
        "touring kayak": "paddle hull cockpit skirt hatch rudder",
        "climbing rope": "harness knot carabiner belay sheath fall",
        "family tent": "pole peg canvas groundsheet seam awning",
        "water filter": "cartridge stream pump bacteria bottle flow",
    },
    "home": {
        "wooden floor": "plank varnish sanding oil board joint",
        "heat pump": "compressor radiator insulation electricity outdoor refrigerant",
        "washing machine": "drum filter detergent hose spin load",
        "kitchen tap": "washer cartridge leak valve limescale hose",
        "interior paint": "roller primer wall ceiling coat brush",
        "solar panels": "inverter roof battery kilowatt module cable",
        "window insulation": "draught seal glazing frame strip condensation",
        "smoke detector": "alarm battery ceiling sensor test corridor",
    },
    "music": {
        "acoustic guitar": "strings fret bridge tuning neck chord",
        "digital piano": "keys pedal hammer headphones speaker stand",
        "vinyl records": "turntable needle sleeve dust groove stylus",
        "home studio": "microphone interface monitor foam cable preamp",
        "violin bow": "hair rosin stick frog tension string",
        "drum kit": "snare cymbal pedal stick head muffling",
        "saxophone reed": "mouthpiece ligature cane tone strength case",
        "bass amplifier": "speaker cabinet gain watt tone cable",
    },
}
# aspect → words for it; the first ones are those that people type
ASPECTS: dict[str, str] = {
    "cleaning": "clean wash residue brush rinse stain cloth",
    "repair": "repair fix broken replace crack spare leaking",
    "buying": "buy choose price budget compare worth cost",
    "storage": "store storage shelf dry cover damp season",
    "beginners": "beginner start first basics simple learn steps",
    "winter": "winter cold frost freezing snow protect ice",
    "noise": "noise quiet loud squeak rattle vibration silence",
    "safety": "safety danger injury check certified rules risk",
    "travel": "travel pack light carry trip airline weight",
    "mistakes": "mistakes wrong avoid common problem trouble failure",
    "schedule": "schedule weekly often month calendar routine interval",
    "children": "children kids family small school play teach",
}
TITLES = (
    "{Subject}: {aspect} without guesswork", "Your {subject} and a word on {aspect}",
    "{Aspect} guide for the {subject}", "The {subject} and {aspect}: what matters",
    "{Subject}, {aspect} and a little patience",
    "Notes on {aspect}: {subject}",
)  # fmt: skip
TOPICAL = (
    "Look at the {word} of the {subject} before you think about {aspect}.",
    "With a {subject}, {aspect} depends on the {word} more than on anything else.",
    "The {word} tells you whether {aspect} went well.",
    "After ten minutes the {word} and the {word2} should look even.",
    "Keep the {word} away from the {word2}; that alone makes {aspect} easier.",
    "Most owners of a {subject} forget the {word} when it comes to {aspect}.",
    "{Aspect} takes an afternoon, and the {word2} needs a day to settle.",
)
PLAIN = (
    "A good {subject} lasts for years if the {word} is looked after.",
    "The {word} of this {subject} comes in two sizes.",
    "We tried the {word} with and without the {word2}.",
    "My neighbour prefers a softer {word}, and the {word2} does not mind.",
    "The {subject} arrived with a manual that says little about the {word}.",
)
PASSING = (
    "Readers also asked about {aspect} and the {subject}, which is another story.",
    "Unlike a {subject}, this needs no {aspect} at all.",
    "See our older pages on {subject} and {aspect}.",
    "Tags: {subject}, {aspect}, {subject}, {aspect}.",
)
OFF_TOPIC = 0.25  # share of documents that only mention subjects in passing
HIDDEN = 0.3  # share of titles that do not name the subject


class Collection(NamedTuple):
    """Documents, queries by id, and grades by query id and document."""

    documents: list[Document]
    queries: Queries
    judgements: dict[str, dict[str, float]]


class Topic(NamedTuple):
    """What a text is about, or a query asks for."""

    group: str
    subject: str
    aspect: str


def generate_texts(n_docs: int = 4000, n_queries: int = 120, *, seed: int = 0) -> Collection:
    """Articles on household, garden, sport and music, and queries that each ask for one aspect of one subject.

    Documents have the fields `id`, `title` and `text`, and the number `rating`. A document on the query's subject and
    aspect has grade 3, or 4 if it is rated well, or 2 if it is rated badly; one on another aspect of the subject has
    grade 1. A quarter of the documents mention subjects in passing and are never relevant.

    Parameters
    ----------
    n_docs, n_queries
        How many.
    seed
        The same seed gives the same texts.

    Examples
    --------
    >>> collection = generate_texts(100, 5)
    >>> len(collection.documents), len(collection.queries), sorted(collection.documents[0])
    (100, 5, ['id', 'rating', 'text', 'title'])
    """
    topics = [Topic(group, one, aspect) for group, some in SUBJECTS.items() for one in some for aspect in ASPECTS]
    for name, count in (("n_docs", n_docs), ("n_queries", n_queries)):
        if count < 1:
            raise ParameterError(param(name), f" is {count}; expected an integer from 1")
    if n_queries > len(topics):
        raise ParameterError(param("n_queries"), f" is {n_queries}; there are {len(topics)} different ones")
    rng = np.random.default_rng(seed)
    about = [None if rng.random() < OFF_TOPIC else topics[rng.integers(len(topics))] for _ in range(n_docs)]
    documents = [_document(number, topic, topics, rng) for number, topic in enumerate(about)]
    wanted = [topics[place] for place in rng.permutation(len(topics))[:n_queries]]
    queries = {f"q{number:03d}": _query(topic, rng) for number, topic in enumerate(wanted, 1)}
    judgements = {
        id: {
            document["id"]: _grade(topic, found, document["rating"])
            for document, found in zip(documents, about, strict=True)
            if found is not None and found.subject == topic.subject
        }
        for id, topic in zip(queries, wanted, strict=True)
    }
    return Collection(documents, queries, judgements)


def _document(number: int, topic: Topic | None, topics: list[Topic], rng: np.random.Generator) -> Document:
    shown = topic or topics[rng.integers(len(topics))]
    is_named = topic is not None and rng.random() >= HIDDEN
    title = _filled(TITLES, shown if is_named else shown._replace(subject=f"{shown.group} page"), rng)
    about = [_filled(TOPICAL if rng.random() < 0.6 else PLAIN, shown, rng) for _ in range(rng.integers(3, 9))]
    if topic is None:
        about = [_filled(PLAIN, topics[rng.integers(len(topics))], rng) for _ in range(rng.integers(2, 6))]
    passing = [
        _filled(PASSING, topics[rng.integers(len(topics))], rng)
        for _ in range(rng.integers(0, 3) if topic is not None else rng.integers(3, 8))
    ]
    text = " ".join([*about, *passing])
    return {"id": f"doc-{number:04d}", "title": title, "text": text, "rating": float(rng.integers(1, 6))}


def _filled(templates: tuple[str, ...], topic: Topic, rng: np.random.Generator) -> str:
    """A sentence with words of a topic."""
    words = SUBJECTS[topic.group].get(topic.subject, "shop visit reader letter").split()
    first, second = rng.permutation(len(words))[:2]
    aspects = ASPECTS[topic.aspect].split()
    aspect = aspects[min(rng.geometric(0.35) - 1, len(aspects) - 1)]
    return templates[rng.integers(len(templates))].format(
        subject=topic.subject, Subject=topic.subject.capitalize(), aspect=aspect, Aspect=aspect.capitalize(),
        word=words[first], word2=words[second],
    )  # fmt: skip


def _query(topic: Topic, rng: np.random.Generator) -> str:
    aspects = ASPECTS[topic.aspect].split()[:3]
    asked = [topic.subject, *rng.permutation(aspects)[: rng.integers(1, 3)].tolist()]
    return " ".join(asked if rng.random() < 0.5 else asked[::-1])


def _grade(wanted: Topic, found: Topic, rating: float) -> float:
    if found.aspect != wanted.aspect:
        return 1.0
    return 4.0 if rating >= 4 else 2.0 if rating <= 1 else 3.0
