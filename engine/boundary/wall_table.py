"""All walls as kernels take them: one table of their sides, in which a particle finds those that may be near it.

A side is a plane, or the map of a wall that has no planes. Maps of equal walls are one. Walls that are large or without
end are near everything; of the others those are looked at whose list the cell of a point has, and of these such as have
the point within the ball around them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import taichi as ti

from pliant.boundary.distance_map import BEYOND, FAR, NODES, Blocks, DistanceMap, block_at, interpolate
from pliant.core.backend import Ints, Reals, Vectors, upload, vec3

if TYPE_CHECKING:
    from pliant.boundary.wall import Wall

# Rows of a wall's pose: vectors as arguments cost far more to pass than arrays.
PIVOT, PLACE, VELOCITY, SPIN, ROTATION, POSE = 0, 1, 2, 3, 4, 7
PLANE = -1  # in place of the number of a map
WALL, MAP, NUMBERS = 0, 1, 2  # of a side: that of its wall, and of its map
POINT, NORMAL = 0, 1  # vectors of a side that is a plane; the first of one that is a map is where its nodes begin
# Numbers of a map, before all directories: its blocks along each axis, where its directory begins, and whether the wall
# goes on beyond it.
ENTRIES, SOLID, HEADER = 3, 4, 5
# What the cells have: how many there are along each axis, how many walls are near everything, and from CELLS on where
# the list of each cell begins. The lists follow.
EVERYWHERE, CELLS = 3, 4
LOW, INVERSE = 0, 1  # rows of the grid
FEW = 16  # walls that need no cells
MOST_CELLS = 1 << 15
LARGE = 4.0  # times the size of the middle one: a wall of this size is in no cell
UNBOUNDED = 1e15  # [m] radius of the ball around what has no end

# Members of packs are names in kernels that take them: nothing else there may be called so. They are few, because a
# kernel may have 32 arrays on a GPU.
WallTable: TypeAlias = ti.types.argpack(
    wall_pose=Vectors, wall_bound=Reals, wall_grid=Vectors, wall_cells=Ints, lists_begin=ti.i32, side_begin=Ints,
    side_numbers=Ints, side_plane=Vectors, map_directory=Ints, map_spline=Blocks, map_cell=ti.f32, map_spacing=ti.f32,
)  # fmt: skip


@ti.func
def wall_of(side: ti.i32, t: ti.template()):
    """The wall that a side is of."""
    return t.side_numbers[NUMBERS * side + WALL]


@ti.func
def is_plane(side: ti.i32, t: ti.template()):
    """Whether a side is a plane, and no map."""
    return t.side_numbers[NUMBERS * side + MAP] == PLANE


@ti.func
def rotation(wall: ti.i32, t: ti.template()):
    """The matrix that turns a wall from where it was built."""
    k = POSE * wall + ROTATION
    return ti.Matrix.rows([t.wall_pose[k], t.wall_pose[k + 1], t.wall_pose[k + 2]])


@ti.func
def arm_of(wall: ti.i32, x: vec3, t: ti.template()):
    """The way from the pivot of a wall to a point."""
    return x - t.wall_pose[POSE * wall + PLACE]


@ti.func
def to_wall(wall: ti.i32, x: vec3, t: ti.template()):
    """A point as the wall sees it that is still where it was built."""
    k = POSE * wall
    return rotation(wall, t).transpose() @ (x - t.wall_pose[k + PLACE]) + t.wall_pose[k + PIVOT]


@ti.func
def velocity_of(wall: ti.i32, x: vec3, t: ti.template()):
    """The velocity of a wall at a point."""
    k = POSE * wall
    return t.wall_pose[k + VELOCITY] + t.wall_pose[k + SPIN].cross(x - t.wall_pose[k + PLACE])


@ti.func
def side_at(side: ti.i32, x: vec3, t: ti.template()):
    """Distance of a side from a point, and the gradient of that distance."""
    distance, gradient = 0.0, vec3(0.0)
    first = t.side_plane[2 * side]
    if is_plane(side, t):
        gradient = t.side_plane[2 * side + NORMAL]
        distance = (x - first).dot(gradient)
    else:
        wall = wall_of(side, t)
        distance, gradient = _in_map(t.side_numbers[NUMBERS * side + MAP], to_wall(wall, x, t) - first, t)
        gradient = rotation(wall, t) @ gradient
    return distance, gradient


@ti.func
def _in_map(m: ti.i32, local: vec3, t: ti.template()):
    """The same of a map, in its own frame and from its first node."""
    u, k = local / t.map_cell, HEADER * m
    b, block, far = block_at(u), BEYOND, FAR * t.map_spacing
    dims = ti.Vector([t.map_directory[k], t.map_directory[k + 1], t.map_directory[k + 2]])
    if (b >= 0).all() and (b < dims).all():
        block = t.map_directory[t.map_directory[k + ENTRIES] + (b[0] * dims[1] + b[1]) * dims[2] + b[2]]
    beyond = ti.select(t.map_directory[k + SOLID] != 0, -far, far)
    return interpolate(u, b, block, t.map_cell, far, beyond, t.map_spline)


@ti.func
def candidates(x: vec3, t: ti.template()):
    """How many walls may be near a point, and where its own list of them begins (`candidate`)."""
    count, offset = t.wall_cells[EVERYWHERE], 0
    if t.wall_cells[0] > 0:
        u = ti.floor((x - t.wall_grid[LOW]) * t.wall_grid[INVERSE], ti.i32)
        dims = ti.Vector([t.wall_cells[0], t.wall_cells[1], t.wall_cells[2]])
        if (u >= 0).all() and (u < dims).all():
            c = CELLS + (u[0] * dims[1] + u[1]) * dims[2] + u[2]
            offset = t.wall_cells[c] - count
            count += t.wall_cells[c + 1] - t.wall_cells[c]
    return count, offset


@ti.func
def candidate(k: ti.i32, offset: ti.i32, t: ti.template()):
    """The k-th of the walls that may be near a point."""
    return t.wall_cells[t.lists_begin + k + ti.select(k < t.wall_cells[EVERYWHERE], 0, offset)]


@ti.func
def within(wall: ti.i32, x: vec3, reach: ti.f32, t: ti.template()):
    """Whether a point is within `reach` of the ball around a wall."""
    far = t.wall_bound[wall] + reach
    return arm_of(wall, x, t).norm_sqr() < far * far


class TableOfWalls:
    """The table of some walls. `reach` [m] is how far from its surface a wall may be asked for."""

    def __init__(self, walls: Sequence["Wall"], maps: Sequence[DistanceMap | None], spacing: float, reach: float):
        """`maps` of those that have no planes; their nodes are half a `spacing` [m] apart."""
        self.walls, self.reach = walls, reach
        self.first = np.cumsum([0, *(1 if w.planes is None else len(w.planes) for w in walls)]).astype(np.int32)
        self._bound = np.array([w.extent if w.extent and not w.inside_out else UNBOUNDED for w in walls])
        self._uploaded = np.zeros(0, np.float32)
        self._small = self._choose_small(self._bound)
        self._everywhere = np.flatnonzero(~self._small).astype(np.int32)
        self._begin = CELLS + (MOST_CELLS + 1 if self._small.any() else 0)  # of the lists of walls
        self._parts: dict[str, Any] = self._sides(maps) | self._maps(maps, spacing) | {
            "wall_pose": ti.ndarray(vec3, max(POSE * len(walls), 1)), "wall_grid": ti.ndarray(vec3, 2),
            "wall_bound": upload(self._bound if len(walls) else np.zeros(1), ti.f32), "lists_begin": self._begin,
            "map_spacing": spacing,
        }  # fmt: skip
        self._room = 0
        self._write_cells(np.zeros(3, int), np.zeros(0, int), self._everywhere)

    @staticmethod
    def _choose_small(bound: np.ndarray) -> np.ndarray:
        """Which walls are in cells: all but few, if they are of about one size."""
        finite = bound < UNBOUNDED
        if finite.sum() <= FEW:
            return np.zeros(len(bound), bool)
        return finite & (bound <= LARGE * np.median(bound[finite]))

    def _sides(self, maps: Sequence[DistanceMap | None]) -> dict[str, Any]:
        count = int(self.first[-1])
        numbers, plane = np.zeros((max(count, 1), NUMBERS), np.int32), np.zeros((max(count, 1), 2, 3))
        known: dict[int, int] = {}
        for k, (wall, own) in enumerate(zip(self.walls, maps, strict=True)):
            sides = slice(self.first[k], self.first[k + 1])
            numbers[sides, WALL] = k
            if wall.planes is not None:
                numbers[sides, MAP], plane[sides] = PLANE, wall.planes
            elif own is not None:
                numbers[sides, MAP], plane[sides, POINT] = known.setdefault(id(own.spline), len(known)), own.origin
        self._numbers, self._plane = numbers[:count], plane
        return {"side_begin": upload(self.first, ti.i32), "side_numbers": upload(numbers.ravel(), ti.i32),
                "side_plane": upload(plane.reshape(-1, 3), vec3)}  # fmt: skip

    @staticmethod
    def _maps(maps: Sequence[DistanceMap | None], spacing: float) -> dict[str, Any]:
        """All maps in one piece; those that several walls share are there once."""
        own = list({id(m.spline): m for m in maps if m is not None}.values())
        header, directories = np.zeros((max(len(own), 1), HEADER), np.int32), []
        splines, entries, blocks = [np.zeros((1, NODES), np.float32)], header.size, 1  # no array may be empty
        for k, m in enumerate(own):
            directory = m.directory.to_numpy()
            header[k] = *directory.shape, entries, m.beyond < 0
            directories.append(np.where(directory >= 0, directory + blocks, directory).ravel())
            splines.append(m.spline.to_numpy())
            entries, blocks = entries + directory.size, blocks + len(splines[-1])
        return {"map_cell": own[0].cell if own else spacing, "map_spline": upload(np.concatenate(splines), ti.f32),
                "map_directory": upload(np.concatenate([header.ravel(), *directories]), ti.i32)}  # fmt: skip

    def update(self, poses: np.ndarray) -> None:
        """Tells the device where the walls are, by the rows (n, POSE, 3) of each; what is at rest is told once."""
        if not len(poses) or np.array_equal(poses, self._uploaded):
            return
        moved = self._uploaded.shape != poses.shape or not np.array_equal(poses[:, PLACE], self._uploaded[:, PLACE])
        self._parts["wall_pose"].from_numpy(poses.reshape(-1, 3))
        self._place_planes(poses.astype(float))
        self._uploaded = poses
        if moved and self._small.any():
            self._lay_cells(poses[:, PLACE].astype(float))

    @property
    def poses_and_numbers(self) -> tuple[ti.Ndarray, ti.Ndarray]:
        """Two of the arrays of the table, for kernels that cannot take all."""
        return self._parts["wall_pose"], self._parts["side_numbers"]

    def _place_planes(self, poses: np.ndarray) -> None:
        """Planes where they are now."""
        flat = np.flatnonzero(self._numbers[:, MAP] == PLANE)
        wall, plane = self._numbers[flat, WALL], self._plane.copy()
        R, pivot, place = poses[wall, ROTATION:], poses[wall, PIVOT], poses[wall, PLACE]
        plane[flat, POINT] = np.einsum("sij,sj->si", R, plane[flat, POINT] - pivot) + place
        plane[flat, NORMAL] = np.einsum("sij,sj->si", R, plane[flat, NORMAL])
        self._parts["side_plane"].from_numpy(plane.reshape(-1, 3).astype(np.float32))

    def _lay_cells(self, place: np.ndarray) -> None:
        """The walls that may be near each cell of a grid around them."""
        number = np.flatnonzero(self._small)
        radius = self._bound[number] + self.reach
        low, high = place[number] - radius[:, None], place[number] + radius[:, None]
        corner, extent = low.min(axis=0), high.max(axis=0) - low.min(axis=0)
        size = max(float(2 * radius.max()), float(np.prod(extent / MOST_CELLS ** (1 / 3)) ** (1 / 3)))
        dims = np.floor(extent / size).astype(int) + 1
        while np.prod(dims.astype(float)) > MOST_CELLS:
            size *= 1.25
            dims = np.floor(extent / size).astype(int) + 1
        first, last = (np.floor((at - corner) / size).astype(int) for at in (low, high))
        cells, owners = [], []
        for offset in np.ndindex(*(last - first).max(axis=0) + 1):
            at = first + np.array(offset)
            inside = (at <= last).all(axis=1) & (at < dims).all(axis=1)
            cells.append(((at[:, 0] * dims[1] + at[:, 1]) * dims[2] + at[:, 2])[inside])
            owners.append(number[inside])
        cell, owner = np.concatenate(cells), np.concatenate(owners)
        order, everywhere = np.lexsort((owner, cell)), len(self._everywhere)
        start = everywhere + np.searchsorted(cell[order], np.arange(np.prod(dims) + 1))
        self._parts["wall_grid"].from_numpy(np.array([corner, np.full(3, 1 / size)], np.float32))
        self._write_cells(dims, start, np.concatenate([self._everywhere, owner[order]]))

    def _write_cells(self, dims: np.ndarray, start: np.ndarray, lists: np.ndarray) -> None:
        """Writes the cells and their lists of walls, in a longer array if this is needed."""
        if len(lists) > self._room or not self._room:
            self._room = max(2 * len(lists), 1)
            self._parts["wall_cells"] = ti.ndarray(ti.i32, self._begin + self._room)
            self.table = WallTable(**self._parts)
        cells = np.zeros(self._begin + self._room, np.int32)
        cells[:EVERYWHERE], cells[EVERYWHERE] = dims, len(self._everywhere)
        cells[CELLS : CELLS + len(start)], cells[self._begin : self._begin + len(lists)] = start, lists
        self._parts["wall_cells"].from_numpy(cells)
