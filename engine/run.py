"""One run of a scene into a folder: frames, progress, a record to repeat it by, and a clean end whatever happens.

Nothing that was computed is lost: files are written whole or not at all and in order, so that a checkpoint stands for
all frames before it. A run that ended early, by Ctrl-C, by a full disk or by a power cut, is resumed from its last
checkpoint and then equals one that was never interrupted.
"""

import contextlib
import shlex
import time
from collections.abc import Iterator
from typing import Any

from pliant import checkpoint
from pliant.checkpoint import Checkpoint
from pliant.console import console
from pliant.errors import PliantError, SimulationError
from pliant.export import export_usd
from pliant.folder import KEPT, RunFolder
from pliant.frames import PARTICLE_FORMATS, SERIES, Frame, Series, frame_file, write_frame
from pliant.io.data import Snapshot
from pliant.io.usd_types import missing_usd
from pliant.painter import Painter
from pliant.pictures import draw_run, film
from pliant.plan import Plan, first_record, frame_record
from pliant.progress import Teller, interruptible, stage_table
from pliant.render import Look, available
from pliant.simulation import Simulation
from pliant.stage import Stage
from pliant.writer import Writer

RECORD_SECONDS = 2.0  # run.json is written anew no more often than this, but before each checkpoint
BYTES = {"vtu": 57, "npz": 40, "ply": 40, "bgeo": 44, "usd": 44}  # of a particle in a frame, with the usual fields
BYTES_PER_PIXEL = 1  # of a picture
ENDS = {"finished": "Finished", "interrupted": "Interrupted", "failed": "Stopped",
        "ended by the scene": "Ended by the scene's on_step"}  # fmt: skip


class Run:
    """Carries out a plan. `record` is what `run.json` holds; `status` is the exit status of the command."""

    def __init__(self, plan: Plan, resume: bool = False, overwrite: bool = False, as_json: bool = False):
        self.plan, self.resume, self.overwrite = plan, resume, overwrite
        self.folder = RunFolder(plan.folder)
        self.tell = Teller(plan.name, plan.frames, as_json)
        self.status = 0
        self.record = first_record(plan)
        self.formats = plan.formats
        self.series = Series()
        self.first = 0  # the frame to begin with
        self.seconds: dict[str, float] = {}  # by stage, summed over all steps but the first of the process
        self.timed_steps = 0
        self.sim: Any = None
        self.stage: Stage
        self.writer: Writer
        self.painter: Painter | None = None
        self._begun = time.perf_counter()
        self._last_record = self._last_checkpoint = 0.0  # when they were handed in last [s]

    def __call__(self) -> int:
        """Builds or resumes, simulates and writes; returns the exit status."""
        self._check_folder()
        self.folder.prepare()
        with self.folder.locked(), self.tell.logging(self.folder.log):
            self.folder.sweep()
            if self._begin():
                return 0
            self._carry_out()
        return self.status

    # --- beginning ---

    def _check_folder(self) -> None:
        """An unfinished run is not thrown away by mistake."""
        if self.resume or self.overwrite:
            return
        try:
            record = self.folder.record()
        except PliantError:  # no run, or too damaged to go on with
            return
        if record.get("status") != "finished" and len(record["frames"]) > 1:
            raise PliantError(f"{self.folder.path} holds an unfinished run of {record['scene']} with "
                              f"{len(record['frames'])} frames; add --resume to go on with it, or --overwrite to start "
                              "anew")  # fmt: skip

    def _begin(self) -> bool:
        """Makes the simulation, from the start or from a checkpoint. True if there is nothing left to do."""
        plan, saved = self.plan, self._saved() if self.resume else None
        self.formats = self._possible(plan.formats)
        if saved is None:
            self.sim = plan.scene.build()
        else:
            if self.first > plan.frames and self.record["status"] == "finished":
                self.tell.say(f"{plan.folder} is finished already: it has {self.first} frames.")
                return True
            self.sim = Simulation(saved.live_scene(plan.scene), saved=saved)
        counts = {filling.body.name: len(filling.x) for filling in self.sim.fillings}
        walls = [wall.name for wall in self.sim.world.walls.walls]
        self.record |= {"particles": counts, "walls": walls, "formats": list(self.formats), "status": "running",
                        "notes": list(self.sim.notes), "particle_radius": plan.scene.settings.particle_radius,
                        "tolerance": getattr(plan.scene.settings.pressure, "max_density_error", None)}  # fmt: skip
        self._check_disk(sum(counts.values()))
        if saved is None:
            if self.folder.record_file.exists():
                self.tell.say(f"The earlier run in {plan.folder} is replaced.")
            self.folder.clear()
            self.stage = self.sim.canvas.stage
            self.stage.save(self.folder.stage_file)
        else:
            self.stage = self.sim.canvas.stage = self.folder.stage()
        self._announce(sum(counts.values()))
        self.folder.write_record(self.record)
        return False

    def _saved(self) -> Checkpoint | None:
        """The checkpoint to go on from, if there is one, and the record up to it."""
        found = self.folder.latest()
        if found is None or not self.folder.record_file.exists():
            self.tell.say(f"There is no checkpoint in {self.plan.folder}, so the run starts from the beginning.")
            return None
        frame, saved = found
        old = self.folder.record()
        self.record |= {key: old[key] for key in ("started", "versions", "status") if key in old}
        self.record["frames"] = old["frames"][: frame + 1]
        self.record["resumed"] = [*old.get("resumed", []), {"frame": frame, "step": saved.state["step"]}]
        bodies = old["particles"]
        self.series.entries = [(entry["time"], frame_file(body, entry["frame"], "vtu"), body)
                               for entry in self.record["frames"] for body in bodies]  # fmt: skip
        self.first = frame + 1
        return saved

    def _possible(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        """The formats that this machine can write: pictures need a graphics driver, USD its library."""
        wanting = {"png": ("No pictures are drawn", available), "usd": ("No USD file is written", missing_usd)}
        for name, (sentence, missing) in wanting.items():
            reason = missing() if name in formats else None
            if reason:
                self.tell.say(f"{sentence}: {reason}")
                formats = tuple(other for other in formats if other != name)
        if "usd" in formats and not set(formats) & set(PARTICLE_FORMATS):
            formats = ("npz", *formats)  # of which the USD file is made at the end
        return formats

    def _check_disk(self, particles: int) -> None:
        """Refuses a run that cannot fit on the disk."""
        width, height = self.plan.size
        frame = sum(BYTES.get(name, 0) for name in self.formats) * particles
        frame += BYTES_PER_PIXEL * width * height * ("png" in self.formats)
        p = self.sim.world.particles
        state = sum(p.numpy(name).nbytes for name in p.saved)
        needed, free = frame * (self.plan.frames + 1 - self.first) + state * (KEPT + 1), self.folder.free_bytes()
        self.record["disk_estimate_bytes"] = int(needed)
        if needed > free:
            raise PliantError(f"the run needs about {needed / 2**30:.2g} GiB of disk and {self.plan.folder} has "
                              f"{free / 2**30:.2g} GiB free; write fewer frames (--fps) or formats (--format), or "
                              "choose another folder with --out")  # fmt: skip

    def _announce(self, particles: int) -> None:
        plan = self.plan
        for note in self.sim.notes if not self.first else ():
            self.tell.say(note)
        where = f"into {plan.folder}" + (f", from t = {self.sim.time:.4g} s on" if self.first else "")
        self.tell.say(f"{plan.name}: {particles:,} particles, {plan.seconds:g} s at {plan.fps:g} fps {where}")
        self.tell.event("start", **{k: v for k, v in self.record.items() if k != "frames"})

    # --- simulating ---

    def _carry_out(self) -> None:
        self._begun -= self.record["frames"][-1]["wall_seconds"] if self.record["frames"] else 0.0
        start, self.writer = time.perf_counter(), Writer()
        if "png" in self.formats and not self.draws_later:
            self.painter = Painter(self.stage, self.folder.frames, self.stage.look or Look(), self.plan.size)
        try:
            self._simulate()
            self.writer.finish()
            if self.record["status"] == "finished":
                begun = time.perf_counter()
                self._finish_files()
                self._spend("whole-run files", time.perf_counter() - begun)
        except KeyboardInterrupt:  # a second Ctrl-C
            self.status = 130
            self.record["status"] = "interrupted"
        except BaseException as error:
            text = str(error) if isinstance(error, PliantError) else f"{type(error).__name__}: {error}"
            self.record |= {"status": "failed", "error": text}
            self.tell.log(text)
            if isinstance(error, PliantError) and not isinstance(error, SimulationError):
                raise SimulationError(f"the run had to stop: {text}") from error
            raise
        finally:
            with contextlib.suppress(PliantError):  # what failed has been said already
                self.writer.finish()
            if self.painter is not None:
                self.painter.close()
            self._end(time.perf_counter() - start)

    def _simulate(self) -> None:
        plan, sim = self.plan, self.sim
        self._last_checkpoint = time.perf_counter()
        with interruptible(self.tell) as asked, self.tell.showing(max(self.first - 1, 0), sim.step_count):
            first_step = sim.step_count + 1
            sim.watchers.append(lambda _: self._after_step(first_step) and not asked())
            for frame in self._frames():
                self._keep(frame)
                if asked():
                    break
            if asked() and sim.step_count >= first_step:
                self._keep_state()
        done = len(self.record["frames"]) > plan.frames
        self.record["status"] = "finished" if done else "interrupted" if asked() else "ended by the scene"
        self.status = 0 if done else asked()
        if done and not asked():
            self._keep_state()  # so that a longer run can go on from here

    def _frames(self) -> Iterator[Frame]:
        if not self.first:
            yield Frame(self.sim, 0)
        yield from self.sim.frames_between(0.0, self.plan.fps, range(max(self.first, 1), self.plan.frames + 1))

    def _after_step(self, first_step: int) -> bool:
        if self.sim.step_count > first_step:  # the first step loads or compiles the kernels
            self.timed_steps += 1
            for stage, seconds in self.sim._step.seconds.items():
                self._spend(stage, seconds)
        self.writer.check()
        self.tell.advance(self.sim.time * self.plan.fps)
        return True

    def _wall(self) -> float:
        """Wall-clock time of the run so far, that of the part before it was resumed included [s]."""
        return time.perf_counter() - self._begun

    def _spend(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    # --- keeping ---

    def _keep(self, frame: Frame) -> None:
        """Hands a frame to the writer."""
        start = time.perf_counter()
        snapshot, stats = frame.snapshot(), self.sim.stats
        poses = {name: pose.tolist() for name, pose in snapshot.poses.items()}
        entry = frame_record(frame, stats) | {"wall_seconds": round(self._wall(), 3), "poses": poses}
        self.record["frames"].append(entry)
        self._spend("frames", time.perf_counter() - start)
        frames, formats, stage, series = self.folder.frames, self.formats, self.stage, self.series

        def write() -> None:
            write_frame(frames, snapshot, formats, stage, series)
            self._draw(snapshot)

        self.writer(write)
        now = time.perf_counter()
        if frame.index == 0 or now - self._last_checkpoint >= self.plan.checkpoint_seconds:
            self._keep_state()
        elif now - self._last_record > RECORD_SECONDS:
            self._keep_record()
        self.tell.frame(frame.index, stats, entry)

    def _draw(self, snapshot: Snapshot) -> None:
        """Draws a frame, in the writer's thread. No run ends for want of a picture: its files can be drawn later."""
        if self.painter is None:
            return
        try:
            self.painter.draw(snapshot)
        except PliantError as error:
            self.painter = None
            sentence = f"No more pictures are drawn: {error}"
            self.record["notes"].append(sentence)
            self.tell.say(sentence)

    def _keep_record(self) -> None:
        self._last_record = time.perf_counter()
        copy = self.record | {"frames": list(self.record["frames"])}
        self.writer(lambda: self.folder.write_record(copy))

    def _keep_state(self) -> None:
        """Hands in a checkpoint, after the record of the frames that it stands for."""
        self._keep_record()
        start = time.perf_counter()
        save, frame, step = checkpoint.capture(self.sim), self.record["frames"][-1]["frame"], self.sim.step_count
        self._last_checkpoint = time.perf_counter()
        self._spend("checkpoints", self._last_checkpoint - start)
        self.writer(lambda: self.folder.add_checkpoint(frame, step, save))

    # --- ending ---

    @property
    def draws_later(self) -> bool:
        """Whether pictures wait for the end, because the range of their colours is to be found from all frames."""
        look = self.stage.look or Look()
        return "png" in self.formats and look.color != "speed" and None in (look.low, look.high)

    def _finish_files(self) -> None:
        """What is made of all frames together."""
        folder, indices = self.folder, range(self.plan.frames + 1)
        if "usd" in self.formats:
            with self._excused("USD file"):
                export_usd(folder, self.record, folder.path / f"{self.plan.name}.usdc")
        if self.draws_later:
            with self._excused("pictures"):
                draw_run(folder, indices, folder.frames, None, self.plan.size)
        if self.plan.video and "png" in self.formats:
            with self._excused("video"):
                film(folder.video, [folder.frames / frame_file("frame", k, "png") for k in indices], self.record)

    @contextlib.contextmanager
    def _excused(self, what: str) -> Iterator[None]:
        """The simulation is done: what cannot be made of it now can be made later, from its files."""
        try:
            yield
        except PliantError as error:
            sentence = f"No {what} could be made: {error}"
            self.record["notes"].append(sentence)
            self.tell.say(sentence)
            self.status = 1

    def _end(self, wall: float) -> None:
        """Writes the record's last version and says what there is now."""
        self._spend("waiting for files", self.writer.waited)
        steps = max(self.timed_steps, 1)
        mean = {stage: 1e3 * seconds / steps for stage, seconds in self.seconds.items()}
        self.record |= {"wall_seconds": self._wall(), "steps": self.sim.step_count, "milliseconds_per_step": mean,
                        "seconds_per_stage": self.seconds}  # fmt: skip
        with contextlib.suppress(PliantError):  # a full disk has been reported already
            self.folder.write_record(self.record)
        if self.timed_steps and not self.tell.as_json:
            console.print(stage_table(self.seconds, self.timed_steps))
        for sentence in self._results(wall):
            self.tell.say(sentence)
        self.tell.event("end", status=self.record["status"], error=self.record["error"], wall_seconds=wall,
                        frames=len(self.record["frames"]), seconds_per_stage=self.seconds)  # fmt: skip

    def _results(self, wall: float) -> Iterator[str]:
        plan, folder, frames = self.plan, self.folder, self.record["frames"]
        status = self.record["status"]
        yield (f"{ENDS[status]} at t = {self.sim.time:.4g} s after {wall:.1f} s: {len(frames)} of {plan.frames + 1} "
               f"frames are in {folder.frames}")  # fmt: skip
        if frames and "vtu" in self.formats:
            yield f"  ParaView: {folder.frames / SERIES}"
        if frames and "png" in self.formats:
            last = f" to {frame_file('frame', len(frames) - 1, 'png')}" if len(frames) > 1 else ""
            yield f"  pictures: {folder.frames / frame_file('frame', 0, 'png')}{last}"
        for label, path in (("video:   ", folder.video), ("USD:     ", folder.path / f"{plan.name}.usdc")):
            if status == "finished" and path.exists():
                yield f"  {label} {path}"
        yield f"  numbers:  {folder.record_file}"
        if status in ("interrupted", "failed"):
            yield f"  go on:    pliant run --resume --out {shlex.quote(str(folder.path))}"
