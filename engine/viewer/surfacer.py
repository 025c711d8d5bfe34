"""The surfaces of fluids for a view, made beside it: they take longer than a picture may."""

import contextlib
import threading
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.core.processes import give_way, ignore_interrupts, start_apart
from pliant.errors import PliantError
from pliant.render.fluid_surface import reconstruct
from pliant.render.render_scene import RenderScene

Job = tuple[str, Cloud, float, np.ndarray]  # a body, its particles, their radius [m], the planes of walls around them


class Surfacer:
    """Makes surfaces in a process of its own, which starts when the first is asked for. `made` are the newest, by body;
    `error` says why there are none."""

    def __init__(self) -> None:
        self.made: dict[str, TriMesh] = {}
        self.error = ""
        self.fresh = False  # whether there are new ones since this was last set
        self._process: Any = None
        self._connection: Connection | None = None
        self._thread: threading.Thread | None = None
        self._last: tuple[int, float, str] | None = None

    def ask(self, render_scene: RenderScene, snapshot: Snapshot, field: str) -> None:
        """Makes those of a moment, unless it still makes those of an earlier one."""
        key = (snapshot.index, snapshot.time, field)
        if key == self._last or (self._thread is not None and self._thread.is_alive()):
            return
        self._last = key
        if self._process is None:
            self._process, self._connection = start_apart(_work)
        self._thread = threading.Thread(target=self._make, args=(render_scene, snapshot, field), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.join()

    def _make(self, render_scene: RenderScene, snapshot: Snapshot, field: str) -> None:
        assert self._connection is not None
        try:
            self._connection.send(_jobs(render_scene, snapshot, field))
            answer = self._connection.recv()
        except (EOFError, OSError):
            if self._process is not None:  # else it was ended on purpose
                self.close()
                self.error, self.fresh = "the process that makes the surfaces of fluids has ended", True
            return
        if isinstance(answer, str):
            self.error = answer
        else:
            self.made = answer
        self.fresh = True


def _jobs(render_scene: RenderScene, snapshot: Snapshot, field: str) -> list[Job]:
    fluids = [(b, snapshot.clouds[b.name]) for b in render_scene.bodies if b.fluid and b.name in snapshot.clouds]
    return [(body.name, Cloud(cloud.x, {field: cloud.fields[field].astype(np.float32)}), body.radius,
             render_scene.planes_around(cloud.x, snapshot.poses)) for body, cloud in fluids]  # fmt: skip


def _work(connection: Connection) -> None:
    """The process: answers each list of jobs by surfaces, or by a sentence."""
    ignore_interrupts()
    give_way()
    with contextlib.suppress(EOFError, OSError):  # the view is gone
        while True:
            connection.send(_answer(connection.recv()))


def _answer(jobs: list[Job]) -> dict[str, TriMesh] | str:
    try:
        return {name: reconstruct(cloud, radius, planes) for name, cloud, radius, planes in jobs}
    except PliantError as error:
        return str(error)
    except Exception as error:  # must reach the view, whatever it is
        return f"{type(error).__name__}: {error}"
