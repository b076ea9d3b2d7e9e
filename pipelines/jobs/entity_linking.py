"""Entity-linking data: the links of a release sampled into records, and counted into an alias table, by one pipeline.

Pages are read range by range, twice. The first time every link gives a hash of what its record would say, and what its
mention means is counted. Hashes are put in order, where records that say the same stand together and the least ones are
chosen; what is counted is put in the order of mentions. The second time only chosen links are cut out, with their
numbers in the order of the release. Text is never shuffled but that of mentions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import apache_beam as beam

from kbsource.errors import named_faults
from kbsource.files import base_name, join
from kbsource.lookup import KnowledgeSource
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_rejected
from kbsource.runtime.chunks import Key, Stored
from mapping.entity_linking.aliases import mention_groups
from mapping.entity_linking.exclusion import Exclusion, read_exclusion
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.records import SKIPPED, SPLITS, lines_path
from mapping.entity_linking.sampling import Sampling, hash_groups
from mapping.entity_linking.schema import ALIASES, CHOSEN, KEY_ORDER, KEYS, LINES, MENTION_ORDER
from pipelines.jobs.shared_inputs import pages_input
from pipelines.linking import steps
from pipelines.linking.ranges import Plan, Ranges, mention_bounds
from pipelines.options.entity_linking import EntityLinkingOptions
from pipelines.primitives.group_map import COUNTS, GroupMap, as_groups
from pipelines.primitives.regroup import Regroup
from pipelines.primitives.together import Together
from pipelines.primitives.write_table import WriteTable
from pipelines.progress import Done, Progress
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

Given = beam.pvalue.AsSingleton
_Counts = Sequence[tuple[Key, Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class EntityLinkingSummary:
    """What was made.

    Attributes:
        output: folder of the data.
        manifest: as written.
        seconds: wall time.
    """

    output: str
    manifest: ListingManifest
    seconds: float


def make_entity_linking(
    options: EntityLinkingOptions, *, flags: Sequence[str], progress: Progress
) -> EntityLinkingSummary:
    """Makes entity-linking data.

    Args:
        options: what to make.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: a file of pages is damaged.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    kb, output, storage, release = pages_input(options.kb, options.output, flags=flags)
    exclusion, inputs = Exclusion(), []
    if options.exclude is not None:
        lists = storage_for(options.exclude)
        with KnowledgeSource.open(kb, storage) as source:
            exclusion = read_exclusion(options.exclude, source, lists)
        inputs = [asdict(input_file) for input_file in input_files([options.exclude], lists)]
    facts = {"release": release.facts(), "options": options.data_options(), "inputs": {"exclude": inputs}}
    with ReleaseFolder(output, storage, kind=ENTITY_LINKING, job=facts) as out:
        sampling = Sampling(options.train, options.dev, options.seed, options.context)
        plan = Plan(kb, release.sha256, release.tables["pages"], sampling, exclusion.page_ids, output, out.staging)
        _ = pipeline | "entity linking" >> MakeEntityLinking(plan, facts, exclusion)
        with progress.stage("links", _read(plan)):
            run_pipeline(pipeline, "entity-linking")
    return EntityLinkingSummary(options.output, ENTITY_LINKING.read(output, storage), time.monotonic() - started)


def _read(plan: Plan) -> Callable[[], Done]:
    """Gives a poll of the pages of files whose links begin to be read."""
    sizes, done = [entry.rows or 0 for entry in plan.files], 0

    def poll() -> Done:
        nonlocal done
        chunks = storage_for(plan.staging).glob(join(plan.folder(steps.KEYS), "*.arrow"))
        done = max(done, sum(sizes[part] for part in {int(base_name(path).partition("-")[0]) for path in chunks}))
        return Done(done, sum(sizes), unit="pages")

    return poll


class MakeEntityLinking(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """The pages of a release -> the folder of the data, once they are whole. Applied to a pipeline.

    Args:
        plan: of the job.
        facts: of the manifest, without counts.
        exclusion: pages whose links are not taken.
    """

    def __init__(self, plan: Plan, facts: Mapping[str, Any], exclusion: Exclusion) -> None:
        super().__init__()
        self._plan, self._commit = plan, _Commit(plan, facts, exclusion)
        self._bounds = mention_bounds(plan)

    def expand(self, pipeline: Any) -> Any:
        plan, folder = self._plan, self._plan.folder
        begin = pipeline | "begin" >> beam.Create([0], reshuffle=False)
        targets = begin | "targets" >> beam.ParDo(steps.WriteTargets(plan))
        scan = beam.ParDo(steps.Scan(plan), Given(targets)).with_outputs(steps.MENTIONS, COUNTS, main=steps.KEYS)
        scanned = (
            pipeline
            | "files" >> beam.Create(list(range(len(plan.files))), reshuffle=False)
            | "spread files" >> beam.Reshuffle()
            | "ranges" >> beam.ParDo(Ranges(plan))
            | "spread ranges" >> beam.Reshuffle()
            | "scan" >> scan
        )
        by_hash = partial(hash_groups, n_groups=plan.n_groups)
        keys = scanned[steps.KEYS] | "by hash" >> Regroup(folder(steps.KEYS), by_hash, order=KEY_ORDER)
        distinct = {steps.KEYS: keys} | "distinct" >> GroupMap(
            steps.find_distinct, folder("distinct"), outputs={"distinct": KEYS}, orders={steps.KEYS: KEY_ORDER}
        )
        drawn = distinct[COUNTS] | "found" >> Together() | "draw" >> beam.Map(steps.draw_keys, plan.sampling)
        chosen = {"distinct": distinct["distinct"] | "groups" >> beam.MapTuple(as_groups)} | "choose" >> GroupMap(
            steps.choose, folder("chosen"), outputs=dict.fromkeys(SPLITS, CHOSEN), given=(Given(drawn),)
        )
        by_place = {
            split: chosen[split] | f"{split} by place" >> Regroup(folder(f"{split}-places"), steps.places)
            for split in SPLITS
        }
        sizes = tuple(by_place[split] | f"{split} sizes" >> beam.Map(steps.sized, split) for split in SPLITS)
        starts = sizes | "sizes" >> beam.Flatten() | "all sizes" >> Together() | "starts" >> beam.Map(steps.starts)
        cut = by_place | "cut" >> GroupMap(
            partial(steps.cut_lines, plan=plan), folder("cut"), outputs={"lines": LINES}, given=(Given(starts),)
        )
        lines = Given(cut["lines"] | "lines" >> Together())
        written = (
            pipeline
            | "records" >> beam.Create([*SPLITS, "links"], reshuffle=False)
            | "spread records" >> beam.Reshuffle()
            | "write records" >> beam.ParDo(steps.WriteRecords(plan), lines)
        )
        by_mention = partial(mention_groups, bounds=self._bounds)
        mentions = scanned[steps.MENTIONS] | "by mention" >> Regroup(
            folder(steps.MENTIONS), by_mention, order=MENTION_ORDER
        )
        counted = {steps.MENTIONS: mentions} | "count" >> GroupMap(
            steps.count_aliases,
            folder("aliases"),
            outputs={"aliases": ALIASES},
            orders={steps.MENTIONS: MENTION_ORDER},
        )
        aliases = (
            counted["aliases"]
            | "parts" >> beam.MapTuple(_as_part)
            | "aliases" >> WriteTable("aliases", plan.output, kind=ENTITY_LINKING)
        )
        entries = (written, aliases) | "files of all" >> beam.Flatten() | beam.Map(_by_name) | "written" >> Together()
        scan_counts, alias_counts = (
            one[COUNTS] | f"counts {name}" >> Together() for name, one in (("links", scanned), ("aliases", counted))
        )
        return entries | "commit" >> beam.ParDo(self._commit, *map(Given, (scan_counts, drawn, alias_counts)))


def _as_part(key: Key, stored: Stored) -> tuple[Key, Stored]:
    """Gives what a group made as a part of its own, and so a file."""
    return Key(key[1], 0), stored


def _by_name(entry: FileEntry) -> tuple[str, FileEntry]:
    return entry.file, entry


class _Commit(WorkerDoFn):
    """Entries of all files, and counts -> the folder of the data; writes what is rejected, and the manifest last."""

    def __init__(self, plan: Plan, facts: Mapping[str, Any], exclusion: Exclusion) -> None:
        super().__init__()
        self._output, self._facts, self._exclusion = plan.output, facts, exclusion

    def process(
        self, entries: Sequence[tuple[str, FileEntry]], scanned: _Counts, drawn: Mapping[str, Any], aliases: _Counts
    ) -> Iterator[str]:
        of_links, of_aliases = (sum((Counter(one) for _, one in counts), Counter()) for counts in (scanned, aliases))
        output, storage = self._output, storage_for(self._output)
        rows = {name: entry.rows for name, entry in entries}
        counts = {
            **{name: of_links[name] for name in ("pages", "excluded_pages", "links", "taken")},
            "skipped": {name: of_links[name] for name in SKIPPED},
            "duplicates": drawn["duplicates"],
            "distinct": drawn["found"],
            **{split: rows[lines_path(split)] for split in SPLITS},
            **{name: of_aliases[name] for name in (steps.MENTIONS, "aliases")},
            "exclusion": {"lines": self._exclusion.n_lines, "unmatched": len(self._exclusion.rejected)},
        }
        with named_faults():
            rejected = write_rejected(self._exclusion.rejected, output=output, storage=storage)
            facts = {**self._facts, "counts": counts, "code": asdict(code_facts())}
            manifest = ENTITY_LINKING.listing([*(entry for _, entry in entries), rejected], facts)
            commit(ENTITY_LINKING, manifest, output, storage)
        yield output
