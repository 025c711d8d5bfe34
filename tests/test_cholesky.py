"""The sparse direct solver: against SciPy in double precision, on any threads, with and without its cache."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from pliant.errors import PliantError
from pliant.solvers.linear import cholesky, ordering

SPACING, DENSITY, YOUNG, POISSON, DT = 0.025, 1000.0, 1e6, 0.33, 2e-3
MU = YOUNG / (2 * (1 + POISSON))


def ball(radius, seed=0):
    """Jittered lattice points within `radius` spacings."""
    k = np.arange(-int(radius) - 1, int(radius) + 2)
    grid = np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid[(grid**2).sum(axis=1) <= radius**2]
    return SPACING * (grid + np.random.default_rng(seed).uniform(-0.1, 0.1, grid.shape))


def elastic_matrix(x, alpha=1.0):
    """Kugelstadt 2021, Eq. 29: M + dt^2 (2 D^T K D + H^T K~ H) of a body at rest, H expanded into D and differences."""
    n, h, V = len(x), 2 * SPACING, SPACING**3
    pairs = cKDTree(x).query_pairs(h, output_type="ndarray")
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    X = x[j] - x[i]
    r = np.linalg.norm(X, axis=1)
    q, scale = r / h, 8 / (np.pi * h**3)
    W = scale * np.where(q <= 0.5, 6 * (q**3 - q**2) + 1, 2 * (1 - q) ** 3)
    slope = 6 * scale / h * np.where(q <= 0.5, q * (3 * q - 2), -((1 - q) ** 2))
    gradient = -X * (slope / r)[:, None]
    B = np.zeros((n, 3, 3))
    np.add.at(B, i, V * gradient[:, :, None] * X[:, None, :])
    corrected = np.einsum("nab,nb->na", np.linalg.pinv(B)[i], gradient)
    w = alpha * MU * V * V * W / r**2

    def differences(weight):
        """sum_j weight_ij (u_j - u_i)"""
        table = sparse.csr_array((weight, (i, j)), shape=(n, n))
        return (table - sparse.diags_array(table.sum(axis=1))).tocsr()

    D = [differences(V * corrected[:, a]) for a in range(3)]
    P = -2 * differences(w)
    for a in range(3):
        cross = D[a].T @ differences(w * X[:, a])
        P = P - cross - cross.T
        for b in range(3):
            K = np.bincount(i, w * X[:, a] * X[:, b], n) + 2 * MU * V * (a == b)
            P = P + D[a].T @ sparse.diags_array(K) @ D[b]
    P = DENSITY * V * sparse.eye_array(n) + DT**2 * P
    return ((P + P.T) / 2).tocsr()


def solve(factor, b, places=None):
    """Solves for the rows of b (as many as there are places) and returns the whole output array."""
    import taichi as ti

    from pliant.core.backend import vec3

    places = np.arange(factor.n)[None] if places is None else places
    rhs, out = ti.ndarray(vec3, max(len(b), 1)), ti.ndarray(vec3, max(len(b), 1))
    if len(b):
        rhs.from_numpy(b.astype(np.float32))
    out.fill(7.0)
    factor.bind(places).solve(rhs, out)
    return out.to_numpy()[: len(b)]


def exact(matrix, b):
    return splu(matrix.tocsc()).solve(b)


def error(x, reference):
    return np.linalg.norm(x - reference) / np.linalg.norm(reference)


def random_rhs(n, seed=1):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32).astype(float)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own for each test, on disk and in the process."""
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cholesky, "_shared", type(cholesky._shared)())
    return tmp_path / "cache" / "factors"


@pytest.fixture(scope="module")
def body():
    x = ball(6.2)
    return elastic_matrix(x), x


# --- solutions --------------------------------------------------------------------------------------


def test_solution_is_that_of_scipy(body):
    matrix, points = body
    factor, b = cholesky.factorise(matrix, points), random_rhs(len(points))
    x = solve(factor, b)
    assert error(x, exact(matrix, b)) < 1e-5
    assert factor.n == len(points) and factor.bytes == 4 * factor.nnz and factor.seconds > 0
    assert factor.nnz < 0.85 * len(points) ** 2 / 2  # even a body this small is sparse
    assert factor.method == cholesky.available()


def test_inverse_condensed_to_some_unknowns(body):
    """Rows and columns of the inverse, in any order, before and after the factor is on the device."""
    matrix, x = body
    inverse = np.linalg.inv(matrix.toarray())
    factor = cholesky.factorise(matrix, x)
    some = np.random.default_rng(3).permutation(len(x))[: len(x) // 3]
    for _ in range(2):
        found = factor.condense(some)
        assert np.abs(found - inverse[np.ix_(some, some)]).max() < 3e-6 * np.abs(inverse).max()
        assert (found == found.T).all() and np.linalg.eigvalsh(found.astype(float))[0] > 0
        factor.bind(np.arange(len(x))[None])
    assert factor.condense(some[:0]).shape == (0, 0)
    assert np.abs(factor.condense(some[:1]) - inverse[some[0], some[0]]) < 3e-6 * np.abs(inverse).max()


def test_stiff_matrix():
    """Condition 1e6: single precision leaves an error of about 1e6 * 2^-24, the factorisation adds none to it."""
    x = ball(4.0)
    matrix, b = elastic_matrix(x), random_rhs(len(x))
    stiff = (matrix - 0.99999 * DENSITY * SPACING**3 * sparse.eye_array(len(x))).tocsr()
    condition = np.linalg.cond(stiff.toarray())
    assert condition > 1e5
    solution = solve(cholesky.factorise(stiff, x), b)
    assert error(solution, exact(stiff, b)) < 1e-4


def test_copies_at_scattered_places(body):
    matrix, points = body
    n = len(points)
    places = np.random.default_rng(3).permutation(3 * n + 50)[: 3 * n].reshape(3, n)
    b = random_rhs(3 * n + 50)
    out = solve(cholesky.factorise(matrix, points), b, places)
    reference = exact(matrix, np.concatenate(b[places], axis=1))
    assert error(np.concatenate(out[places], axis=1), reference) < 1e-5
    others = np.setdiff1d(np.arange(len(b)), places)
    assert (out[others] == 7.0).all()


def test_copies_have_the_bits_of_one(body):
    matrix, points = body
    n, factor = len(points), cholesky.factorise(*body)
    b = random_rhs(n)
    both = solve(factor, np.concatenate([b, b]), np.arange(2 * n).reshape(2, n))
    assert np.array_equal(both[:n], both[n:])
    assert np.array_equal(both[:n], solve(factor, b))


def test_order_of_the_rows_is_free(body):
    matrix, points = body
    shuffled = np.random.default_rng(5).permutation(len(points))
    b = random_rhs(len(points))
    x = solve(cholesky.factorise(matrix[shuffled][:, shuffled], points[shuffled]), b[shuffled])
    assert error(x, solve(cholesky.factorise(matrix, points), b)[shuffled]) < 1e-5


def test_background_thread(body):
    made = []
    thread = threading.Thread(target=lambda: made.append(cholesky.factorise(*body)))
    thread.start()
    thread.join()
    b = random_rhs(made[0].n)
    assert error(body[0] @ solve(made[0], b), b) < 1e-5


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9, 70, 300])
def test_small_and_dense(n):
    rng = np.random.default_rng(n)
    square = rng.normal(size=(n, n))
    matrix = sparse.csr_array(square @ square.T + n * np.eye(n))
    b = random_rhs(n)
    x = solve(cholesky.factorise(matrix, rng.normal(size=(n, 3))), b, np.arange(n)[None])
    if n:
        assert error(x, np.linalg.solve(matrix.toarray(), b)) < 1e-5


def test_no_copies(body):
    factor = cholesky.factorise(*body)
    assert (solve(factor, random_rhs(5), np.zeros((0, factor.n), int)) == 7.0).all()


@pytest.mark.parametrize("blocks", [1, 2, 40])
def test_diagonal_and_disconnected(blocks):
    rng = np.random.default_rng(0)
    parts = [sparse.csr_array(a @ a.T + np.eye(len(a))) for a in (rng.normal(size=(7, 7)) for _ in range(blocks))]
    matrix = sparse.block_diag([*parts, sparse.diags_array(np.arange(1.0, 500.0))], format="csr")
    b = random_rhs(matrix.shape[0])
    x = solve(cholesky.factorise(matrix, rng.normal(size=b.shape)), b)
    assert error(x, exact(matrix, b)) < 1e-5


def test_points_in_one_place(body):
    """The order may become a bad one, the solution must not."""
    matrix, points = body
    b = random_rhs(len(points))
    x = solve(cholesky.factorise(matrix, np.zeros_like(points)), b)
    assert error(x, exact(matrix, b)) < 1e-5


# --- order ------------------------------------------------------------------------------------------


def test_dissection_separates(body):
    """No piece may share a non-zero with another one that is neither above nor below it."""
    matrix, points = body
    cut = ordering.dissect(matrix, points)
    assert np.array_equal(np.sort(np.concatenate(cut.pieces)), np.arange(len(points)))
    assert all(parent == -1 or parent > p for p, parent in enumerate(cut.parent))
    piece = np.empty(len(points), int)
    for p, some in enumerate(cut.pieces):
        piece[some] = p
    above = np.eye(len(cut.pieces), dtype=bool)  # above[p, q]: q is p or an ancestor of it
    for p in range(len(cut.pieces) - 1, -1, -1):
        if cut.parent[p] >= 0:
            above[p] |= above[cut.parent[p]]
    i, j = matrix.nonzero()
    assert (above | above.T)[piece[i], piece[j]].all()


def test_fill_is_that_of_a_good_order():
    """nnz(L) of this ball in millions: METIS 2.58, AMD 2.93, this order 2.57 with the zeros of merged supernodes."""
    points = ball(9.77)
    i, j = cKDTree(points).query_pairs(3.3 * SPACING, output_type="ndarray").T
    half = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(len(points), len(points)))
    matrix = (half + half.T).tocsr()
    structure = ordering.analyse(matrix, ordering.dissect(matrix, points))
    width, rows = structure.width(), np.diff(structure.row_start)
    assert (width * (width + 1) // 2 + width * rows).sum() < 2.65e6


# --- threads ----------------------------------------------------------------------------------------

THREADS = """
import os, sys
import numpy as np, taichi as ti
from scipy import sparse
init = ti.init
ti.init = lambda **options: init(**options, cpu_max_num_threads=int(sys.argv[1]))
from pliant.core import backend
from pliant.solvers.linear import blas, cholesky, supernodes
os.cpu_count = lambda: int(sys.argv[1])
blas.BLOCK, supernodes.TASK_ENTRIES, cholesky.WORTH_CACHING = 32, 3000, 1e9  # much to share in a small body
backend.start("cpu")
given = np.load(sys.argv[2])
matrix = sparse.csr_array((given["data"], given["indices"], given["indptr"]))
factor = cholesky.factorise(matrix, given["points"])
rhs, out = (ti.ndarray(backend.vec3, factor.n) for _ in range(2))
rhs.from_numpy(given["b"])
factor.bind(np.arange(factor.n)[None]).solve(rhs, out)
np.save(sys.argv[3], out.to_numpy())
"""


@pytest.mark.slow
def test_the_number_of_threads_makes_no_difference(body, tmp_path):
    matrix, points = body
    b = random_rhs(len(points))
    arrays = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    np.savez(tmp_path / "given.npz", points=points, b=b.astype(np.float32), **arrays)
    results = []
    for threads in (1, 2):
        arguments = [str(threads), str(tmp_path / "given.npz"), str(tmp_path / f"out{len(results)}.npy")]
        subprocess.run([sys.executable, "-c", THREADS, *arguments], check=True, timeout=300)
        results.append(np.load(arguments[-1]))
    assert error(matrix @ results[0], b) < 1e-5
    assert all(np.array_equal(result, results[0]) for result in results)


# --- cache ------------------------------------------------------------------------------------------


def test_equal_matrices_share_a_factor(body):
    matrix, points = body
    factor = cholesky.factorise(matrix, points)
    assert cholesky.factorise(matrix.copy(), points + 1.0) is factor
    assert cholesky.factorise(2 * matrix, points) is not factor


def again(monkeypatch):
    """What a new process would see."""
    monkeypatch.setattr(cholesky, "_shared", type(cholesky._shared)())


@pytest.fixture
def keep_all(monkeypatch):
    monkeypatch.setattr(cholesky, "WORTH_CACHING", 0.0)


def test_cache_hit(body, cache, keep_all, monkeypatch):
    b = random_rhs(len(body[1]))
    first = cholesky.factorise(*body)
    assert [path.suffix for path in cache.iterdir()] == [".npz"] and not first.cached
    again(monkeypatch)
    second = cholesky.factorise(*body)
    assert second.cached and second.seconds == 0.0 and second.nnz == first.nnz
    assert np.array_equal(solve(second, b), solve(first, b))


def test_quick_work_is_not_cached(cache, monkeypatch):
    cholesky.factorise(sparse.eye_array(3, format="csr"), np.zeros((3, 3)))
    assert not cache.exists()


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"x" * 99])
def test_damaged_cache_is_replaced(body, cache, keep_all, monkeypatch, damage):
    cholesky.factorise(*body)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again(monkeypatch)
    assert not cholesky.factorise(*body).cached
    assert file.stat().st_size == len(whole)


def test_unwritable_cache_costs_nothing_but_time(body, cache, keep_all):
    cache.parent.write_text("a file where the folder should be")
    b = random_rhs(len(body[1]))
    assert error(body[0] @ solve(cholesky.factorise(*body), b), b) < 1e-5


def test_full_disk_leaves_no_rubbish(body, cache, keep_all, monkeypatch):
    def full(file, **arrays):
        file.write(b"some")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cholesky.np, "savez", full)
    assert cholesky.factorise(*body).n == len(body[1])
    assert list(cache.iterdir()) == []


def test_cache_is_bounded(body, cache, keep_all, monkeypatch):
    matrix, points = body
    cholesky.factorise(matrix, points)
    (first,) = cache.iterdir()
    monkeypatch.setattr(cholesky, "CACHE_BYTES", int(1.5 * first.stat().st_size))
    cholesky.factorise(2 * matrix, points)
    (second,) = cache.iterdir()
    assert second != first


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "matrix, words",
    [
        (np.diag([1.0, -1.0]), "not positive definite"),
        (np.zeros((2, 2)), "not positive definite"),
        (np.ones((4, 4)) - 0.5 * np.eye(4), "not positive definite"),
        (np.diag([1.0, np.nan]), "NaN"),
        (np.diag([1.0, np.inf]), "NaN or infinite"),
        (np.ones((2, 3)), "square"),
        (np.array([[2.0, 1.0], [0.0, 2.0]]), "not symmetric"),
    ],
)
def test_refusals(matrix, words):
    with pytest.raises(PliantError) as refusal:
        cholesky.factorise(sparse.csr_array(matrix), np.zeros((len(matrix), 3)))
    assert words in str(refusal.value) and str(refusal.value).endswith(".")


def test_points_and_places_must_fit(body):
    with pytest.raises(PliantError, match="needs as many points"):
        cholesky.factorise(body[0], body[1][:-1])
    with pytest.raises(PliantError, match="places must have"):
        cholesky.factorise(*body).bind(np.zeros((1, 3), int))
