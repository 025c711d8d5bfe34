"""One run of a scene into a folder: frames, progress, a record to repeat it by, and a clean end whatever happens.

Nothing that was computed is lost: files are written whole or not at all and in order, so that a checkpoint stands for
all frames before it. A run that ended early, by Ctrl-C, by a full disk or by a power cut, is resumed from its last
checkpoint and then equals one that was never interrupted.
"""

import contextlib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from pliant.core.choices import MESH_FORMATS, PARTICLE_FORMATS
from pliant.core.console import console
from pliant.core.data import Snapshot
from pliant.errors import PliantError, SimulationError
from pliant.io.usd_types import missing_usd
from pliant.render import Look, available
from pliant.render.render_scene import RenderScene
from pliant.run import probe_files
from pliant.run.draw_process import Painter, picture_file
from pliant.run.export import export_usd
from pliant.run.folder import DONE, KEPT, RunFolder, cloud_names
from pliant.run.frames import SERIES, Frame, Series, frame_file, write_frame
from pliant.run.pictures import draw_run, film
from pliant.run.plan import Plan, first_record, frame_record, restore_rng, rng_state
from pliant.run.pose_files import write_poses
from pliant.run.progress import Teller, Wish, interruptible, stage_table
from pliant.run.writer import Writer
from pliant.scene.serialisation import describe
from pliant.sim import checkpoint
from pliant.sim.checkpoint import Checkpoint
from pliant.sim.simulation import Simulation
from pliant.sim.snapshot import counts

RECORD_SECONDS = 2.0  # run.json is written anew no more often than this, but before each checkpoint
BYTES = {"vtu": 57, "npz": 40, "ply": 40, "bgeo": 44, "usd": 44}  # of a particle in a frame, with the usual fields
BYTES_PER_PIXEL = 1  # of a picture
FEW = 10  # frames that are named one by one
PATIENCE = 5.0  # for pictures, once the run is asked to end [s]
MOST_FAILURES = 3  # pictures in a row that may fail before no more are drawn
ENDS = {"finished": "Finished", "interrupted": "Interrupted", "failed": "Stopped",
        "ended by the scene": "Ended by the scene's on_step"}  # fmt: skip


class Run:
    """Carries out a plan. `record` is what `run.json` holds; `status` is the exit status of the command; a `stream` is
    told of the run in lines of JSON."""

    def __init__(self, plan: Plan, resume: bool = False, overwrite: bool = False, stream: TextIO | None = None):
        self.plan, self.resume, self.overwrite = plan, resume, overwrite
        self.folder = RunFolder(plan.folder)
        self.tell = Teller(plan.name, plan.frames, stream)
        self.status = 0
        self.record = first_record(plan)
        self.before: dict[str, Any] = {}  # the record of the run that is resumed
        self.formats = plan.formats
        self.series = Series()
        self.first, self.last = 0, -1  # the frame to begin with, the last that was made
        self.made: dict[str, Path] = {}  # of all frames together
        self.seconds: dict[str, float] = {}  # by stage, summed over all steps but the first of the process
        self.timed_steps = 0
        self.sim: Simulation  # made by `_begin`
        self.render_scene: RenderScene
        self.writer: Writer
        self.painter: Painter | None = None
        self.failures = 0  # pictures in a row that could not be drawn
        self.late = False  # pictures wait for the end, because the range of their colours is found from all frames
        self._begun = time.perf_counter()
        self._last_record = self._last_checkpoint = 0.0  # when they were handed in last [s]

    def __call__(self) -> int:
        """Builds or resumes, simulates and writes; returns the exit status."""
        self._check_folder()
        self.folder.prepare()
        with self.folder.locked(), self.tell.logging(self.folder.log):
            if self._begin():
                return 0
            self._carry_out()
        return self.status

    # --- beginning ---

    def _check_folder(self) -> None:
        """A run is not thrown away by mistake."""
        if self.resume or self.overwrite:
            return
        try:
            record = self.folder.record()
        except PliantError as error:
            if self.folder.holds_something():
                raise PliantError(f"{error}; add --overwrite to replace what is there") from error
            return
        if record.get("status") in DONE:
            raise PliantError(f"{self.folder.path} holds a finished run of {record['scene']} with "
                              f"{len(record['frames'])} frames; choose another folder with --out, add --overwrite to "
                              "replace it, or add --resume to make it longer")  # fmt: skip
        if len(record["frames"]) > 1:
            raise PliantError(f"{self.folder.path} holds an unfinished run of {record['scene']} with "
                              f"{len(record['frames'])} frames; add --resume to go on with it, or --overwrite to start "
                              "anew")  # fmt: skip

    def _begin(self) -> bool:
        """Makes the simulation, from the start or from a checkpoint. True if there is nothing left to do."""
        plan, saved = self.plan, self._saved() if self.resume else None
        self.formats = self._possible(plan.formats)
        if saved is None:
            if not plan.scene.problems():
                describe(plan.scene)  # what no checkpoint can hold is told before the work, not after
            self.sim = plan.scene.build(plan.backend, quiet=True)
        else:
            longer = plan.seconds > self.before["seconds"]
            if self.before.get("status") in DONE and not longer and not self._lacks():
                self.tell.say(f"{plan.folder} is finished already: it has {self.first} frames.")
                return True
            self.sim = Simulation(saved.live_scene(plan.scene), plan.backend, saved, quiet=True)
            if self.before.get("source_sha256") != self.record["source_sha256"]:
                self.tell.say(f"{plan.given} has changed since the run began; it goes on with what is there now.")
        points, particles = counts(self.sim), self.sim.world.particles.counts()
        others = {name: n for name, n in points.items() if name not in particles}
        walls = [wall.name for wall in self.sim.world.walls.walls]
        probes = [probe.name for probe in plan.scene.settings.probes]
        self.record |= {"particles": particles, "others": others, "walls": walls, "formats": list(self.formats),
                        "probes": probes,
                        "status": "running", "notes": list(self.sim.notes),
                        "particle_radius": plan.scene.settings.particle_radius,
                        "tolerance": getattr(plan.scene.settings.pressure, "max_density_error", None)}  # fmt: skip
        self._check_disk(sum(points.values()))
        if saved is None:
            if self.folder.record_file.exists():
                self.tell.say(f"The earlier run in {plan.folder} is replaced.")
            self.folder.clear([*points, *walls])
            self.render_scene = self.sim.canvas.render_scene
            self.render_scene.save(self.folder.render_scene_file)
        else:
            self.render_scene = self.sim.canvas.render_scene = self._kept_render_scene()
            self._miss_frames()
        self.folder.sweep()
        self._announce(sum(particles.values()))
        self.folder.write_record(self.record)
        if saved is not None:
            restore_rng(saved.state["more"]["rng_state"])  # last: motions may draw while the simulation is made
        return False

    def _lacks(self) -> bool:
        """Whether a picture is missing, or a file that is made of all frames together."""
        wanted = [self.usd_file] * ("usd" in self.formats)
        wanted += [self.folder.video] * (self.plan.video and "png" in self.formats)
        return not all(path.exists() for path in wanted) or bool(self._undrawn())

    def _undrawn(self) -> list[int]:
        """The frames that lack their pictures."""
        wanted = range(self.last + 1) if "png" in self.formats else ()
        return [k for k in wanted if not picture_file(self.folder.frames, k).exists()]

    @property
    def usd_file(self) -> Path:
        return self.folder.path / f"{self.plan.name}.usdc"

    def _saved(self) -> Checkpoint | None:
        """The checkpoint to go on from, if there is one, and the record up to it."""
        found, folder = self.folder.latest(), self.plan.folder
        old = self.folder.record() if self.folder.record_file.exists() else None
        if found is None or old is None:
            if found or old and len(old["frames"]) > 1:
                lost = "run.json" if found else "checkpoint"
                raise PliantError(f"{folder} cannot be resumed, for it has no {lost}; put --overwrite in place of "
                                  "--resume to start anew")  # fmt: skip
            self.tell.say(f"There is no checkpoint in {folder}, so the run starts from the beginning.")
            return None
        frame, saved = found
        self.before = old
        self.record |= {key: old[key] for key in ("started", "versions") if key in old}
        self.record["frames"] = old["frames"][: frame + 1]
        self.record["resumed"] = [*old.get("resumed", []), {"frame": frame, "step": saved.state["clock"]["step"]}]
        self.series.entries = [(entry["time"], frame_file(body, entry["frame"], "vtu"), body)
                               for entry in self.record["frames"]
                               for body in cloud_names(old)]  # fmt: skip
        self.first, self.last = frame + 1, frame
        return saved

    def _kept_render_scene(self) -> RenderScene:
        try:
            return self.folder.render_scene()
        except PliantError as error:
            self.tell.say(f"It is made anew, so that pictures may be framed a little differently: {error}")
            self.sim.canvas.render_scene.save(self.folder.render_scene_file)
            return self.sim.canvas.render_scene

    def _miss_frames(self) -> None:
        """Says which frames have lost their files since they were made."""
        body = next(iter(self.record["particles"]), None)
        ending = next((name for name in self.formats if name in PARTICLE_FORMATS), None)
        files = [self.folder.frames / frame_file(body, k, ending) for k in range(self.first)] if body and ending else []
        lost = [k for k, file in enumerate(files) if not file.exists()]
        if lost:
            self.tell.say(f"{len(lost)} of the {self.first} frames before have lost files, the first of them frame "
                          f"{lost[0]}; they are not made again.")  # fmt: skip

    def _possible(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        """The formats that this machine can write: pictures need a graphics driver, USD its library."""
        wanting = {"png": ("No pictures are drawn", available), "usd": ("No USD file is written", missing_usd)}
        for name, (sentence, missing) in wanting.items():
            reason = missing() if name in formats else None
            if reason:
                self.tell.say(f"{sentence}: {reason}")
                formats = tuple(other for other in formats if other != name)
        look = self.plan.scene.look if isinstance(self.plan.scene.look, Look) else Look()
        self.late = "png" in formats and look.color != "speed" and None in (look.low, look.high)
        if ("usd" in formats or self.late) and not set(formats) & set(PARTICLE_FORMATS):
            formats = ("npz", *formats)  # of which the USD file or the pictures are made at the end
        return formats

    def _check_disk(self, particles: int) -> None:
        """Refuses a run that cannot fit on the disk."""
        width, height = self.plan.size
        frame = sum(BYTES.get(name, 0) for name in self.formats) * particles
        frame += BYTES_PER_PIXEL * width * height * ("png" in self.formats)
        state = sum(array.nbytes for store in self.sim.world.stores.values() for array in store.save().values())
        needed, free = frame * (self.plan.frames + 1 - self.first) + state * (KEPT + 1), self.folder.free_bytes()
        self.record["disk_estimate_bytes"] = int(needed)
        if needed > free:
            raise PliantError(f"the run needs about {needed / 2**30:.2g} GiB of disk and {self.plan.folder} has "
                              f"{free / 2**30:.2g} GiB free; write fewer frames (--fps) or formats (--format), or "
                              "choose another folder with --out")  # fmt: skip

    def _announce(self, particles: int) -> None:
        plan = self.plan
        if plan.kept is not None:
            self.tell.say(f"{plan.kept} holds a finished run, which is kept; this one goes into {plan.folder} "
                          "(--overwrite replaces the last run instead).")  # fmt: skip
        for note in self.sim.notes if not self.first else ():
            self.tell.say(note)
        where = f"into {plan.folder}" + (f", from t = {self.sim.time:.4g} s on" if self.first else "")
        self.tell.say(f"{plan.name}: {particles:,} particles, {plan.seconds:g} s at {plan.fps:g} fps {where}")
        self.tell.event("start", **{k: v for k, v in self.record.items() if k != "frames"})

    # --- simulating ---

    def _carry_out(self) -> None:
        self._begun -= self.record["frames"][-1].get("wall_seconds", 0.0) if self.record["frames"] else 0.0
        start, self.writer = time.perf_counter(), Writer()
        if "png" in self.formats and not self.late:
            look = self.render_scene.look or Look()
            self.painter = Painter(self.render_scene, self.folder.frames, look, self.plan.size)
        with interruptible(self.tell, lambda: self._hurry(PATIENCE)) as wish:
            try:
                self._make(wish)
            except KeyboardInterrupt as insisted:
                self._hurry(0.0)
                self.status = getattr(insisted, "status", 130)
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

    def _make(self, wish: Wish) -> None:
        """Makes the frames, and what is made of all of them."""
        self._simulate(wish)
        asked, wish.at_once = wish.status, True  # what is left has no steps to end after; resuming takes it up again
        self.writer.finish()
        status = "finished" if self.last >= self.plan.frames else "ended by the scene"
        if asked and (self.last < self.plan.frames or self._lacks()):
            status, self.status = "interrupted", asked
        if status in DONE:
            self._finish_files()
        self.record["status"] = status

    def _simulate(self, wish: Wish) -> None:
        sim, self._last_checkpoint = self.sim, time.perf_counter()
        first_step, self._told = sim.step_count + 1, len(sim.notes)
        sim.watchers.append(lambda _: self._after_step(first_step) and not wish.status)
        with self.tell.showing(max(self.first - 1, 0), sim.step_count):
            for frame in self._frames():
                self._keep(frame)
                if wish.status:
                    break
        if sim.step_count >= first_step:
            self._keep_state()  # to resume from, be it for a longer run

    def _hurry(self, seconds: float) -> None:
        """The run is to end: pictures are waited for no longer than so many seconds. Resuming draws the rest."""
        painter = self.painter  # the writer's thread may drop it
        if painter is not None:
            painter.hurry(seconds)

    def _frames(self) -> Iterator[Frame]:
        if not self.first:
            yield Frame(self.sim, 0)
        yield from self.sim.frames_between(0.0, self.plan.fps, range(max(self.first, 1), self.plan.frames + 1))

    def _after_step(self, first_step: int) -> bool:
        if self.sim.step_count > first_step:  # the first step loads or compiles the kernels
            self.timed_steps += 1
            for stage, seconds in self.sim.seconds.items():
                self._spend(stage, seconds)
        for note in self.sim.notes[self._told :]:
            self._note(note)
        self._told = len(self.sim.notes)
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
        skins = bool(set(self.formats) & {*MESH_FORMATS, "usd"})  # pictures make them anew, from the particles
        snapshot, stats = frame.snapshot(skins), self.sim.stats
        poses = {name: pose.tolist() for name, pose in snapshot.poses.items()}
        rigid = {name: {key: values.tolist() for key, values in vars(pose).items()}
                 for name, pose in snapshot.rigid.items()}  # fmt: skip
        entry = frame_record(frame, stats) | {"wall_seconds": round(self._wall(), 3), "poses": poses, "rigid": rigid}
        self.last = frame.index
        self._spend("frames", time.perf_counter() - start)

        def write() -> None:
            write_frame(self.folder.frames, snapshot, self.formats, self.render_scene, self.series)
            self._draw(snapshot)
            self.record["frames"].append(entry)  # the record tells of no frame that is not there

        self.writer(write)
        now = time.perf_counter()
        if frame.index == 0 or now - self._last_checkpoint >= self.plan.checkpoint_seconds:
            self._keep_state()
        elif now - self._last_record > RECORD_SECONDS:
            self._keep_record()
        self.tell.frame(frame.index, stats, entry)

    def _draw(self, snapshot: Snapshot) -> None:
        """Draws a frame, in the writer's thread. No run ends for want of a picture: its files can be drawn later."""
        painter = self.painter
        if painter is None:
            return
        try:
            painter.draw(snapshot)
            self.failures = 0
        except PliantError as error:
            try:
                self._skip_picture(snapshot.index, error)
            except PliantError as enough:
                self.painter = None
                painter.close()
                self._note(f"No more pictures are drawn: {enough}")

    def _skip_picture(self, frame: int, error: PliantError) -> None:
        """Goes on without a picture; raises the error if too many have failed."""
        self.record["missing_pictures"].append(frame)
        self.failures += 1
        if self.failures >= MOST_FAILURES:
            raise error
        self._note(f"A picture is missing: {error}")

    def _note(self, sentence: str) -> None:
        self.record["notes"].append(sentence)
        self.tell.say(sentence)

    def _keep_record(self) -> None:
        self._last_record = time.perf_counter()
        self.writer(lambda: self.folder.write_record(self.record))

    def _keep_state(self) -> None:
        """Hands in a checkpoint, after the record of the frames that it stands for."""
        self._keep_record()
        start = time.perf_counter()
        save = checkpoint.capture(self.sim, {"rng_state": rng_state()})
        frame, step, write = self.last, self.sim.step_count, probe_files.writing(self.sim, self.folder.probes)
        self._last_checkpoint = time.perf_counter()
        self._spend("checkpoints", self._last_checkpoint - start)
        self.writer(write)
        self.writer(lambda: write_poses(self.folder.path, self.record["frames"]))
        self.writer(lambda: self.folder.add_checkpoint(frame, step, save))

    # --- ending ---

    def _finish_files(self) -> None:
        """What is made of all frames together."""
        folder, indices, start = self.folder, range(self.last + 1), time.perf_counter()
        if "usd" in self.formats:
            with self._excused("USD file", self.usd_file) as path:
                export_usd(folder, self.record, path)
        todo = [k for k in self._todo() if k not in self.record["missing_pictures"]]  # these would fail again
        if todo and self.failures < MOST_FAILURES:
            self.failures = 0
            with self._excused("pictures", folder.frames) as path:
                draw_run(folder, todo, path, None, self.plan.size, failed=self._skip_picture)
        self.record["missing_pictures"] = self._undrawn()
        self.status = 1 if self.record["missing_pictures"] else self.status
        pictures = [picture for k in indices if (picture := picture_file(folder.frames, k)).exists()]
        if self.plan.video and "png" in self.formats:
            with self._excused("video", folder.video) as path:
                film(path, pictures, self.record)
        if self.made:
            self._spend("whole-run files", time.perf_counter() - start)

    def _todo(self) -> list[int]:
        """The frames to be drawn at the end."""
        return list(range(self.last + 1)) if self.late else self._undrawn()

    @contextlib.contextmanager
    def _excused(self, what: str, path: Path) -> Iterator[Path]:
        """The simulation is done: what cannot be made of it now can be made later, from its files."""
        try:
            yield path
            self.made[what] = path
        except PliantError as error:
            self._note(f"No {what} could be made: {error}")
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
            probe_files.writing(self.sim, self.folder.probes)()  # also what came after the last checkpoint
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
        missing = self.record["missing_pictures"]
        drawn = [p for k in range(len(frames)) if (p := picture_file(folder.frames, k)).exists()]
        if drawn and "png" in self.formats:
            yield f"  pictures: {drawn[0]}" + (f" to {drawn[-1].name}" if len(drawn) > 1 else "")
        if missing:
            which = ", ".join(map(str, missing[:FEW])) + (", ..." if len(missing) > FEW else "")
            yield f"  missing:  {len(missing)} of the pictures (frames {which})"
        for what in ("video", "USD file"):
            if what in self.made:
                yield f"  {what.split()[0] + ':':<9} {self.made[what]}"
        yield f"  numbers:  {folder.record_file}"
        if self.record["probes"]:
            yield f"  probes:   {folder.probes}"
        if status in ("interrupted", "failed") or missing:
            yield f"  go on:    pliant run --resume --out {shlex.quote(str(folder.path))}"
