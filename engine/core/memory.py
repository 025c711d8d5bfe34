"""How much memory there is, as the system and the control groups of a container tell it."""

import os
import re
import sys
from pathlib import Path

GIB = 2**30
CGROUPS = Path("/sys/fs/cgroup")
CGROUP_2 = (CGROUPS, "memory.max", "memory.current", "inactive_file")  # root, limit, used, cache that may be dropped
CGROUP_1 = (CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def available_memory() -> float:
    """Free memory that this process may use [bytes]; infinite where the system does not tell."""
    known = total_and_free()
    return float("inf") if known is None else float(known[1])


def total_and_free() -> tuple[int, int] | None:
    """The memory that this process may use, and how much of it is free [bytes]; None where the system does not tell."""
    try:
        text = Path("/proc/meminfo").read_text()
        total, free = (1024 * int(re.findall(rf"{key}:\s+(\d+)", text)[0]) for key in ("MemTotal", "MemAvailable"))
    except (OSError, IndexError):  # not Linux
        return None
    limit, left = _container_memory()
    return min(total, limit), min(free, left)


def _container_memory() -> tuple[int, int]:
    """The lowest memory limit that a control group sets (version 1 or 2), and what is left under the tightest."""
    limit = left = sys.maxsize
    for line in lines_of("/proc/self/cgroup"):
        number, kinds, path = line.split(":", 2)
        if number != "0" and "memory" not in kinds.split(","):
            continue
        root, most, used, idle = CGROUP_2 if number == "0" else CGROUP_1
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            bound = next((int(text) for text in lines_of(folder / most) if text.isdigit()), sys.maxsize)
            taken = next((int(text) for text in lines_of(folder / used)), 0)
            stat = lines_of(folder / "memory.stat")
            cached = next((int(text.split()[1]) for text in stat if text.startswith(idle)), 0)
            limit, left = min(limit, bound), min(left, max(bound - taken + cached, 0))
            if folder == root:
                break
    return limit, left


def lines_of(path: str | Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    return Path(path).read_text().splitlines() if os.access(path, os.R_OK) else []
