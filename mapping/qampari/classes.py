"""The classes used as types of answers, sets of items, and the choice of the most specific of several types."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import required as required  # read from here, too
from kbsource.errors import DataError, SetupError

Numbers = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint64]

_LANGUAGE, _ALL_LANGUAGES = "en", "mul"
_INSTANCE_OF, _SUBCLASS_OF = "P31", "P279"
_BITS = 64
N_WORDS = 2
N_TYPES = N_WORDS * _BITS
"""Maximum number of distinct types; the relations of QAMPARI have 105."""


def labelled_items(batch: pa.RecordBatch, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the items that have one of some labels in English, or in ``mul`` if they have no English label.

    Args:
        batch: rows of a release's items, with ``item_id`` and ``labels``.

    Returns:
        (item, label).
    """
    terms, rows = pc.list_flatten(batch["labels"]), pc.list_parent_indices(batch["labels"])
    languages, texts = pc.struct_field(terms, "language"), pc.struct_field(terms, "text")
    lacks_english = pc.invert(pc.is_in(rows, rows.filter(pc.equal(languages, _LANGUAGE))))
    is_the_label = pc.or_(pc.equal(languages, _LANGUAGE), pc.and_(pc.equal(languages, _ALL_LANGUAGES), lacks_english))
    is_wanted = pc.and_(is_the_label, pc.is_in(texts, pa.array(labels, pa.string())))
    ids = batch["item_id"].take(rows.filter(is_wanted))
    return list(zip(ids.to_pylist(), texts.filter(is_wanted).to_pylist(), strict=True))


def class_uses(batch: pa.RecordBatch, items: Collection[str]) -> dict[str, int]:
    """Returns the items that are a value of P31 or P279, each with the number of times it is a value of P31.

    Args:
        batch: statements, with ``property_id``, ``rank``, ``value_type`` and ``value``.
    """
    is_use = pc.and_(pc.is_in(batch["property_id"], pa.array([_INSTANCE_OF, _SUBCLASS_OF])), _counts(batch))
    used = batch.filter(pc.and_(is_use, pc.is_in(batch["value"], pa.array(sorted(items), pa.string()))))
    instances = Counter(used.filter(pc.equal(used["property_id"], _INSTANCE_OF))["value"].to_pylist())
    return {class_id: instances[class_id] for class_id in used["value"].unique().to_pylist()}


def choose_classes(
    labels: Sequence[str],
    named: Mapping[str, Collection[str]],
    uses: Mapping[str, int],
    *,
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Returns the class that each label means; labels of no class are left out.

    The class is an item with exactly this English label, or with this ``mul`` label if it has no English label. It must
    be used as a class: it is a value of P31 or P279 in some statement. If there are several such items, the one with
    most instances is chosen, then the one with the lower number.

    Args:
        named: the items that have each label, from ``labelled_items``.
        uses: uses of these items, from ``class_uses`` over all statements.
        given: the classes of some labels, which are used unchanged.
    """
    known, found = given or {}, {}
    for label in labels:
        if label in known:
            found[label] = known[label]
        elif classes := [class_id for class_id in named.get(label, ()) if class_id in uses]:
            found[label] = min(classes, key=lambda class_id: (-uses[class_id], int(class_id[1:])))
    return found


def _counts(batch: pa.RecordBatch) -> pa.Array:
    is_item = pc.fill_null(pc.equal(batch["value_type"], "entity"), False)
    return pc.and_(is_item, pc.not_equal(batch["rank"], "deprecated"))


@dataclass(frozen=True, slots=True)
class ClassTypes:
    """The types of every class; 24 bytes per class."""

    labels: tuple[str, ...]  # labels of the types; a type is identified by its position
    numbers: Numbers  # numbers of the classes that have a type, ascending
    masks: Masks  # two words of bits per class: bit i of word w represents type 64 w + i

    def of_classes(self, numbers: Numbers) -> Masks:
        """Returns the types of classes, one row each; a class without a type has no bit set."""
        found = np.zeros((len(numbers), self.masks.shape[1]), np.uint64)
        if len(self.numbers):
            at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
            is_known = self.numbers[at] == numbers
            found[is_known] = self.masks[at[is_known]]
        return found

    def has_type(self, masks: Masks, label: str) -> npt.NDArray[np.bool_]:
        """Returns a mask of the rows that have a type."""
        word, bit = divmod(self.labels.index(label), _BITS)
        found: npt.NDArray[np.bool_] = (masks[:, word] >> np.uint64(bit)) & np.uint64(1) != 0
        return found


CLASS_PAIRS = pa.schema([*required("class"), *required("above", of=pa.int32())])
"""Subclasses of the types' classes; ``above`` is the position of a type's class among these classes."""


def pairs_of_classes(batch: pa.RecordBatch, classes: Mapping[str, str]) -> pa.RecordBatch:
    """Returns the subclasses of the classes of types, as rows of CLASS_PAIRS.

    Args:
        batch: rows of the class closure, with ``class_id`` and ``superclass_id``.
        classes: label -> item, from ``choose_classes``; two labels may mean the same item.
    """
    found = pc.index_in(batch["superclass_id"], pa.array(dict.fromkeys(classes.values()), pa.string()))
    under = batch.filter(pc.is_valid(found))
    columns = [pa.array(item_numbers(under["class_id"])), found.drop_null()]
    return pa.RecordBatch.from_arrays(columns, schema=CLASS_PAIRS)


def class_types(pairs: Iterable[pa.RecordBatch], classes: Mapping[str, str]) -> ClassTypes:
    """Returns the types of all classes.

    Args:
        pairs: rows of CLASS_PAIRS, in any order.
        classes: as passed to ``pairs_of_classes``.

    Raises:
        SetupError: there are more types than masks have bits.
    """
    labels = tuple(classes)
    if len(labels) > N_TYPES:
        raise SetupError(f"{len(labels)} types of answers: give at most {N_TYPES}.")
    types_of: defaultdict[str, list[int]] = defaultdict(list)
    for number, class_id in enumerate(classes.values()):
        types_of[class_id].append(number)
    parts = ((batch["class"].to_numpy(), batch["above"].to_numpy()) for batch in pairs)
    return ClassTypes(labels, *_masks(parts, list(types_of.values())))


def _masks(pairs: Iterable[tuple[Numbers, npt.NDArray[np.int32]]], types_of: list[list[int]]) -> tuple[Numbers, Masks]:
    """Returns the classes, ascending, and their masks. ``types_of`` lists the types of each position in ``above``."""
    words = np.zeros((len(types_of), N_WORDS), np.uint64)
    for place, types in enumerate(types_of):
        for type_number in types:
            words[place, type_number // _BITS] |= np.uint64(1) << np.uint64(type_number % _BITS)
    parts = list(pairs)
    classes = np.concatenate([np.empty(0, np.int64), *(part_classes for part_classes, _ in parts)])
    above = np.concatenate([np.empty(0, np.int32), *(part_above for _, part_above in parts)])
    numbers, places = np.unique(classes, return_inverse=True)
    masks = np.zeros((len(numbers), N_WORDS), np.uint64)
    np.bitwise_or.at(masks, places, words[above])
    return numbers, masks


_LARGEST_NUMBER = 2**31
"""An ``ItemSet`` of numbers up to it takes 256 MB. The ids of Wikidata are far smaller."""


def item_numbers(ids: pa.Array) -> Numbers:
    """Returns the numbers of items or properties: 42 for Q42.

    Raises:
        DataError: an id is not one of an item or property, or is too large for an ``ItemSet``.
    """
    try:
        numbers: Numbers = pc.cast(pc.utf8_slice_codeunits(ids, 1), pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"an id is not Q or P with a number ({error}); download the release of Wikidata again."
        ) from error
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= _LARGEST_NUMBER:
        odd = numbers.min() if numbers.min() < 0 else numbers.max()
        raise DataError(
            f"an item or property has the number {odd}, which is impossible for an id; download the release again."
        )
    return numbers


class ItemSet:
    """A set of item numbers. Memory: a bit for each number up to the largest, 16 MB for all of Wikidata."""

    def __init__(self, bits: npt.NDArray[np.uint8] | None = None) -> None:
        self.bits = np.zeros(1, np.uint8) if bits is None else bits

    def add(self, numbers: Numbers) -> None:
        """Adds numbers."""
        if len(numbers):
            n_bytes = int(numbers.max() >> 3) + 1
            if n_bytes > len(self.bits):
                self.bits = np.pad(self.bits, (0, max(n_bytes, 2 * len(self.bits)) - len(self.bits)))
            np.bitwise_or.at(self.bits, numbers >> 3, np.uint8(1) << (numbers & 7).astype(np.uint8))

    def has(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Returns a mask of the numbers that are in the set."""
        places = numbers >> 3
        is_near = places < len(self.bits)
        found = np.zeros(len(numbers), np.bool_)
        bits = (numbers[is_near] & 7).astype(np.uint8)
        found[is_near] = (self.bits[places[is_near]] >> bits) & np.uint8(1) != 0
        return found


def type_breadths(types: ClassTypes) -> dict[str, int]:
    """Returns the number of subclasses of each type, by label.

    A more specific type has fewer subclasses than a more general one: the general type has all classes of the specific
    type, and also its own class, which the specific type does not have.
    """
    return {label: int(types.has_type(types.masks, label).sum()) for label in types.labels}
