"""How long a step of the rigid solver takes: columns of ten boxes that stand on a floor, at 5 ms.

    python -m pliant.tools.bench_rigid
"""

import time

import numpy as np

from pliant.core import backend
from pliant.solvers.rigid.bodies import Bodies, Contacts
from pliant.solvers.rigid.solver import RigidSolver
from pliant.tools.rigid_contacts import Things

BOXES, SIZE, DT = 10, 0.1, 5e-3
COLUMNS = (1, 10, 100)


def columns(count: int) -> tuple[Bodies, Contacts]:
    """The same column many times: columns do not touch each other."""
    things = Things()
    things.add(("plane", (0, 1, 0)), (0, 0, 0))
    for k in range(BOXES):
        things.add(("box", (SIZE,) * 3), (0, SIZE * (1 + 2 * k), 0), 4.0)
    one = things.bodies()
    c = things.contacts(one)
    bodies = Bodies(*(np.concatenate([v[:1]] + [v[1:]] * count) for v in vars(one).values()))
    shift = np.repeat(BOXES * np.arange(count), len(c.a))
    rows = {name: np.concatenate([values] * count) for name, values in vars(c).items()}
    rows["a"], rows["b"] = (np.where(rows[k] > 0, rows[k] + shift, 0).astype(np.int32) for k in "ab")
    order = np.lexsort((rows["key"], rows["b"], rows["a"]))
    return bodies, Contacts(**{name: values[order] for name, values in rows.items()})


def main() -> None:
    backend.start("cpu")
    for count in COLUMNS:
        bodies, contacts = columns(count)
        solver, dv, dw, times = RigidSolver(), np.zeros_like(bodies.center), np.zeros_like(bodies.center), []
        dv[1:, 1] = -9.81 * DT
        for _ in range(60):
            start = time.perf_counter()
            solver.step(bodies, contacts, None, DT, dv, dw)
            times.append(time.perf_counter() - start)
        n, m = len(bodies.center) - 1, len(contacts.a)
        print(f"{n:6} boxes {m:7} contacts {1e3 * np.median(times[10:]):8.2f} ms ({1e3 * min(times):.2f} at best)")


if __name__ == "__main__":
    main()
