"""The player in a process of its own, as a view sees it."""

import contextlib
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from pliant.core.processes import give_way, ignore_interrupts, start_apart, status_at_end
from pliant.viewer.messages import Moment, Notice, Opened

FASTEST = 60.0  # moments per second that are worth drawing
PATIENCE = 0.5  # [s] that a player without work waits for a command before it looks around
GRACE = 3.0  # [s] for the step under way, before a player that is to end is ended
NEXT = "next"  # what a view says when it has taken a moment: it wants another
LASTING = ("limit", "show")  # commands that say how things are to be from now on

Message = Opened | Moment | Notice


class Remote:
    """Starts the player at once, see `Player`, and again at a reset if it has died. No method blocks, but `wait` and
    `close`."""

    def __init__(self, scene: str, settings: list[str], state: str | None = None):
        self._given = scene, settings, state
        self._news: list[Message] = []
        self._lock, self._arrived = threading.Lock(), threading.Event()
        self._more = threading.Event()
        self._wishes: dict[str, tuple] = {}  # commands that a new player is to hear of as well
        self._closing = False
        self._start()

    def _start(self) -> None:
        self.process, self._connection = start_apart(_play, *self._given)
        self._ended = threading.Event()
        self._outbox = list(self._wishes.values())
        for work in (self._listen, self._speak):
            threading.Thread(target=work, args=(self._connection, self._ended), daemon=True).start()
        self._more.set()

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    def send(self, name: str, *args: Any) -> None:
        """A command of `COMMANDS`."""
        with self._lock:
            if name in LASTING:
                self._wishes[name] = (name, *args)
            if name == "reset" and not self.alive:
                self._start()
            else:
                self._outbox.append((name, *args))
        self._more.set()

    def receive(self) -> list[Message]:
        """What has come since the last time; of several moments only the newest."""
        with self._lock:
            news, self._news = self._news, []
            self._arrived.clear()
        if any(isinstance(message, Moment) for message in news):
            self.send(NEXT)
        return news

    def wait(self, seconds: float) -> list[Message]:
        """The same, once there is something or the time is over."""
        self._arrived.wait(seconds)
        return self.receive()

    def close(self) -> None:
        """Ends the process; none is left behind."""
        self._closing = True
        self.send("quit")
        for insist in (self.process.terminate, self.process.kill):
            if self._ended.wait(GRACE):
                return
            insist()
        self._ended.wait()

    def _listen(self, connection: Connection, ended: threading.Event) -> None:
        process = self.process
        with contextlib.suppress(Exception):  # mostly the end of the file; a player that cannot be heard is to end too
            while True:
                self._keep(connection.recv())
        connection.close()
        status = status_at_end(process)
        ended.set()
        self._more.set()
        if not self._closing:
            self._keep(Notice("busy", ""))
            self._keep(Notice("failure", f"the process of the simulation has ended (exit status {status}); "
                              "if memory ran out, larger particles help."))  # fmt: skip

    def _keep(self, message: Message) -> None:
        with self._lock:
            if isinstance(message, Moment):
                older = [m for m in self._news if isinstance(m, Moment)]
                for one in older:
                    self._news.remove(one)
                    message.knobs = message.knobs or one.knobs
            self._news.append(message)
            self._arrived.set()

    def _speak(self, connection: Connection, ended: threading.Event) -> None:
        while not ended.is_set():
            self._more.wait(PATIENCE)
            with self._lock:
                if connection is not self._connection:
                    return
                todo, self._outbox = self._outbox, []
                self._more.clear()
            try:
                for command in todo:
                    connection.send(command)
            except (OSError, ValueError, TypeError):
                return  # it has died, which the other thread tells; it may be closing the connection just now


def _play(connection: Connection, scene: str, settings: list[str], state: str | None) -> None:
    """The player's process: obeys, steps and publishes until it is told to end, or the view is gone."""
    ignore_interrupts()
    give_way()
    with contextlib.suppress(EOFError, OSError):
        from pliant.viewer.player import Player  # here, so that the view need not load the engine's solvers

        player = Player(scene, settings, connection.send, state)
        wanted, last = True, 0.0
        while not player.ended:
            pause = player.wait
            commands: list[tuple] = []
            idle = PATIENCE if pause is None else min(pause, PATIENCE)
            if player.news and wanted:
                idle = min(idle, 1 / FASTEST)
            while connection.poll(0.0 if commands else idle):
                commands.append(connection.recv())
            wanted |= any(command[0] == NEXT for command in commands)
            player.obey(command for command in commands if command[0] != NEXT)
            if player.news and wanted and time.perf_counter() - last >= 1 / FASTEST:
                wanted, last = not player.publish(), time.perf_counter()
            if player.wait == 0.0:
                player.advance()
