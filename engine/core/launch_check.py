"""Whether kernels still compute what they should when they are launched quickly (`speedups`).

That rests on private parts of one version of Taichi. With another one this is tried out when it starts, and `pliant
doctor` tries it out with any.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Points, Reals, Vectors, set_vector, threads_for, vec3, vec4, vector_at
from pliant.core.speedups import with_vectors
from pliant.errors import PliantError

ELEMENTS = 1000  # more than one thread takes at a time
CALLS = 4  # the first is Taichi's own, the next are kept


@ti.kernel
def _plain(n: ti.i32, scale: ti.f32, a: Vectors, b: Points, out: Reals):
    for i in range(n):
        out[i] = scale * a[i].dot(vec3(1.0, 2.0, 3.0)) + b[i][3]


@with_vectors
@ti.kernel
def _vectors(n: ti.i32, scale: ti.f32, a: Vectors, b: Points, out: Reals):
    for i in range(n):
        total = vec4(0.0)
        for _ in range(2):
            total += (scale / 2.0) * vec4(vector_at(a, i), 0.0) * vec4(1.0, 2.0, 3.0, 0.0)
        set_vector(a, i, vector_at(a, i))
        out[i] = total.sum() + b[i][3]


def check() -> None:
    """Calls kernels several times, with other numbers and arrays, in one thread and in all."""
    rng = np.random.default_rng(0)
    vectors, points = rng.uniform(size=(2, ELEMENTS, 3)), rng.uniform(size=(2, ELEMENTS, 4))
    pairs = [(_upload(vec3, x), _upload(vec4, y)) for x, y in zip(vectors, points, strict=True)]
    out, on_host = ti.ndarray(ti.f32, ELEMENTS), np.zeros(ELEMENTS, np.float32)
    read = {id(out): lambda: out.to_numpy(), id(on_host): lambda: on_host}
    for kernel in (_plain, _vectors):
        for threads in (0, 10 * ELEMENTS):  # elements by which threads are chosen: one, or all
            for target in (out, on_host):
                for call in range(CALLS):
                    k, scale = call % 2, 1.0 + call
                    with threads_for(threads):
                        kernel(ELEMENTS, scale, *pairs[k], target)
                    exact = scale * vectors[k] @ (1.0, 2.0, 3.0) + points[k][:, 3]
                    if not np.allclose(read[id(target)](), exact, rtol=1e-5):
                        raise PliantError("kernels that are launched again give wrong results")
    if out[0] != out.to_numpy()[0]:
        raise PliantError("single elements are read from the wrong place")


def _upload(kind: type, values: np.ndarray) -> ti.Ndarray:
    array = ti.ndarray(kind, len(values))
    array.from_numpy(values.astype(np.float32))
    return array
