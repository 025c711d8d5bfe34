"""Processes beside this one."""

from pliant.core.processes import status_at_end


class Reaped:
    """A process whose end another thread heard of first: for a moment it seems to run, and cannot be waited for."""

    def __init__(self):
        self.looks = 0

    def join(self):
        pass

    @property
    def exitcode(self):
        self.looks += 1
        return None if self.looks < 4 else -9


def test_the_exit_status_is_known_although_another_thread_heard_of_it_first():
    assert status_at_end(Reaped()) == -9
