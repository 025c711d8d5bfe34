"""An open boat, its hull a mesh, rides at anchor on the waves of a paddle, with a mast and two loose crates on board."""

import numpy as np

import pliant as pl

SECONDS = 8.0
LENGTH, WIDTH, DEPTH = 4.4, 1.3, 0.5  # of the tank, and of the water in it [m]
LONG, BEAM, TALL = 1.3, 0.5, 0.28  # of the hull: from stem to stern, across, and from keel to gunwale [m]
PLANK = 0.05  # thickness of its planks [m]
WELL = (0.24, 0.9)  # where its open part begins and ends, from the stem, as shares of its length
POINTS = 12  # of half a section
DRAUGHT = 0.13  # where it is put at first [m]
WEIGHT = 38.0  # of the hull, keel and all [kg]
CRATE = 0.12  # [m]


def section(share: float, well: bool) -> np.ndarray:
    """A ring (4 POINTS, 3) round the planks at a place along the hull: outside from one gunwale under the keel to the
    other, and back inside, which is level with the gunwale where there is a deck."""
    fore = np.clip(share / 0.55, 0.02, 1.0)
    half = BEAM / 2 * (1 - (1 - fore) ** 2.2) * (1 - 0.18 * np.clip(share - 0.6, 0, 1) / 0.4)
    keel = TALL * 0.45 * (1 - np.clip(share / 0.3, 0, 1)) ** 2  # the stem rises
    sheer = TALL + 0.1 * (1 - np.clip(share / 0.6, 0, 1)) ** 2
    angle = np.linspace(-np.pi / 2, np.pi / 2, 2 * POINTS)
    z, y = np.sin(angle), 1 - np.sign(np.cos(angle)) * np.abs(np.cos(angle)) ** 0.7
    y[[0, -1]] = 1.0
    outside = np.stack([keel + y * (sheer - keel), half * z], axis=1)
    if well:
        floor = keel + PLANK
        inside = np.stack([floor + y * (sheer - floor), (half - PLANK) * z], axis=1)
    else:
        inside = np.stack([np.full(len(z), sheer), (half - min(PLANK, 0.5 * half)) * z], axis=1)
    ring = np.concatenate([outside, inside[::-1]])
    return np.column_stack([np.full(len(ring), share * LONG), ring])


def hull(keel: float = 0.0, well: bool = True) -> pl.Mesh:
    """The planks as one closed mesh, its keel at that height [m]: rings from stem to stern, two at each bulkhead of the
    well; or all that they enclose."""
    bulkheads = WELL if well else ()
    places = [(s, False) for s in (*np.linspace(0, WELL[0], 7)[:6], *bulkheads[:1])]
    places += [(s, well) for s in np.linspace(*WELL, 15)] + [(s, False) for s in (*bulkheads[1:], 1.0)]
    rings = [section(*place) for place in places]
    n, vertices, faces = len(rings[0]), np.concatenate(rings), []
    k = np.arange(n)
    for r in range(len(rings) - 1):
        a, b, c, d = n * r + k, n * r + (k + 1) % n, n * (r + 1) + k, n * (r + 1) + (k + 1) % n
        faces += [np.stack([a, c, b], axis=1), np.stack([b, c, d], axis=1)]
    for first, way in ((0, -1), (n * (len(rings) - 1), 1)):  # the stem and the transom, seen from their keels
        fan = first + (POINTS + k) % n
        faces.append(np.stack([np.full(n - 2, fan[0]), fan[2:], fan[1:-1]], axis=1)[:, ::way])
    return pl.Mesh((vertices + (-LONG / 2, keel, 0), np.concatenate(faces)))


def build(radius: float = 0.02, stroke: float = 0.1, period: float = 1.25) -> pl.Scene:
    """Waves come from a paddle; the boat meets them with its bow, on a rope to the ground.

    radius: particle radius [m]; stroke: amplitude of the paddle [m]; period: of its swing [s].
    """
    scene = pl.Scene(particle_radius=radius)
    tank = pl.Box(size=(LENGTH + 0.5, 1.3, WIDTH), center=(0.25 - 0.5, 0.65, 0))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    omega, left = 2 * np.pi / period, -LENGTH / 2
    paddle = scene.add(pl.Box(size=(0.1, 1.2, WIDTH), center=(left - 0.05, 0.6, 0)), pl.Boundary(no_slip=False),
                       name="paddle")  # fmt: skip
    paddle.move(lambda t: (stroke * omega * np.sin(omega * t) * min(t / period, 1.0), 0, 0))
    keel = DEPTH - DRAUGHT
    water = pl.Box(size=(LENGTH, DEPTH, WIDTH), center=(0, DEPTH / 2, 0)) - hull(keel, well=False)
    scene.add(water, pl.Fluid(), name="water")
    boat = scene.add(hull(keel), pl.Rigid(mass=WEIGHT, friction=0.6), name="boat", colors="sand")
    add_rig(scene, boat, keel)
    scene.spring(boat, None, at=((-0.4 * LONG, keel + 0.12, 0), (left + 0.5, 0.05, 0)), stiffness=30, damping=6,
                 name="rope")  # fmt: skip
    scene.camera = pl.Camera(position=(-1.5, 1.8, 3.9), target=(-0.25, 0.45, 0), fov=38)
    scene.look = pl.Look(fluid="surface")
    return scene


def add_rig(scene: pl.Scene, boat: pl.Body, keel: float) -> None:
    """A mast that stands in the boat, and two crates that only their weight holds on its bottom."""
    floor = keel + PLANK
    mast = scene.add(pl.Cylinder(radius=0.018, height=0.75, center=(-0.2, floor + 0.385, 0), axis="y"),
                     pl.Rigid(mass=0.3), name="mast", colors="honey")  # fmt: skip
    sail = scene.add(pl.Box(size=(0.3, 0.4, 0.02), center=(-0.02, floor + 0.5, 0)), pl.Rigid(mass=0.2), name="sail",
                     colors="grey")  # fmt: skip
    scene.join(mast, boat)
    scene.join(sail, mast)
    for k in range(2):
        place = (-0.1 + 0.2 * k, floor + CRATE / 2 + 0.03, 0)
        scene.add(pl.Box(size=(CRATE, CRATE, CRATE), center=place), pl.Rigid(density=500, friction=0.6),
                  name=f"crate{k + 1}", colors="plasma")  # fmt: skip


def on_board(sim: pl.Simulation) -> np.ndarray:
    """Which particles of water are inside the hull, below its gunwale."""
    boat = sim["boat"]
    local = (sim["water"].x - boat.position) @ boat.rotation + hull().mass_properties().center
    x = local[:, 0] / LONG + 0.5
    return (x > WELL[0]) & (x < WELL[1]) & (np.abs(local[:, 2]) < 0.3 * BEAM) & (local[:, 1] > PLANK / 2) & (
        local[:, 1] < TALL - PLANK)  # fmt: skip


def check(sim: pl.Simulation) -> None:
    """The boat floats upright, dry and at anchor, and still has its crates on board."""
    boat = sim["boat"]
    assert boat.rotation[1, 1] > 0.85, "the boat heels over"
    assert abs(boat.position[1] - (DEPTH - DRAUGHT + 0.15)) < 0.15, "the boat does not float"
    assert on_board(sim).sum() == 0, "water comes in"
    for k in range(2):
        local = (sim[f"crate{k + 1}"].position - boat.position) @ boat.rotation
        assert abs(local[0]) < LONG / 2 and abs(local[2]) < BEAM / 2 and abs(local[1]) < TALL, "a crate is lost"
