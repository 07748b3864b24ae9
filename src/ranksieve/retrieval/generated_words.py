"""Words of the generated collection of texts: subjects in groups, aspects, and sentences to put them into."""

from __future__ import annotations

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
