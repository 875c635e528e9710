"""Tables: files of every kind, and what users have in memory."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.fuzz.outcome import Escaped, worded
from benchmarks.fuzz.recipe import Recipe
from edgewise.errors import DataError, FileError

CELLS = (
    "0", "1", "yes", "no", "", " ", "NA", "nan", "?", "2", "1.0", "-1", "1e400", "9007199254740993", "é",
    "\0", '"', "=1+1", "x" * 200,
)  # fmt: skip
SEPARATORS = (",", ";", "\t", "|", ", ", "\n", "\r\n", "\r", '"', "")
WISHES: dict[str, tuple[Any, ...]] = {
    "kinds": ({"a": "ordinal"}, {"a..c": "nominal"}, "ordinal", {"a": "blume-capel:1"}, {"x0": "nominal"}, 3),
    "levels": ({"a": [0, 1, 2]}, {"x0": ["yes", "no"]}, {"a": []}, {"a": "abc"}, {"x1": [None]}, []),
    "blank": ([0], ["?", -9], {"a": [1]}, "x", [None], [[]]),
    "cut": ("a>=1", "a/3", ["x0>0", "b==x"], {"x1": 2}, "a", ">", "a/", 7),
    "binarize": (">0", "==x", "", 5),
}


def rows_of(rng: np.random.Generator, n: int = 30, p: int = 4) -> np.ndarray:
    rows = (rng.random((n, p)) < 0.5).astype(int)
    rows[:, 1] = np.where(rng.random(n) < 0.8, rows[:, 0], rows[:, 1])
    return rows


class Door:
    """``read_data``: text, archives and arrays."""

    # With checksums of their own: what is accepted is what was written.
    CHECKED = ("gz", "npz")

    def __init__(self) -> None:
        import gzip

        import pandas as pd

        table = pd.DataFrame(rows_of(np.random.default_rng(1)), columns=list("abcd"))
        words = table.replace({0: "no, never", 1: "yes"})
        self.good: dict[str, bytes] = {"csv": table.to_csv(index=False).encode()}
        self.good["words"] = words.to_csv(index=False).encode()
        self.good["gz"] = gzip.compress(self.good["csv"])
        for kind, writer in (("npz", np.savez_compressed), ("npy", None)):
            buffer = io.BytesIO()
            if writer is None:
                np.save(buffer, table.to_numpy())
            else:
                writer(buffer, X=table.to_numpy())
            self.good[kind] = buffer.getvalue()
        try:
            buffer = io.BytesIO()
            words.to_parquet(buffer)
            self.good["parquet"] = buffer.getvalue()
        except ImportError:
            pass
        self.frame = table

    def __call__(self, data: bytes) -> str:
        recipe = Recipe(data)
        kind = recipe.below(4)
        source: Any
        whole = ""
        if kind == 0:
            name = recipe.choose(sorted(self.good))
            source = recipe.damage(self.good[name])
            whole = name if name in self.CHECKED else ""
        elif kind == 1:
            pieces = [recipe.choose((*CELLS, *SEPARATORS, *SEPARATORS)) for _ in range(recipe.below(60))]
            source = "".join(pieces).encode()
        elif kind == 2:
            width = 1 + recipe.below(5)
            lines = [
                recipe.choose((",", ";", "\t")).join(recipe.choose(CELLS) for _ in range(width))
                for _ in range(recipe.below(12))
            ]
            source = "\n".join(lines).encode()
        else:
            return self._read(recipe.alter(self.frame.to_numpy()), recipe)
        found = self._read(io.BytesIO(source), Recipe(data[::-1]))
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(source)
            again = self._read(file.name, Recipe(data[::-1]))
        if found.startswith("refused") != again.startswith("refused"):
            raise Escaped(f"a file is {again!r} and the same bytes are {found!r}")
        if not found.startswith("refused") and found != again:
            raise Escaped(f"a file gives {again} and the same bytes {found}")
        if whole and not found.startswith("refused"):
            right = self._read(io.BytesIO(self.good[whole]), Recipe(data[::-1]))
            if found != right:
                raise Escaped(f"a damaged {whole} file gives {found} and the whole one {right}")
        return found.partition(" #")[0]

    def _read(self, source: Any, recipe: Recipe) -> str:
        from edgewise.data import read_data

        options = {
            "missing": recipe.choose(("error", "drop")),
            "constant": recipe.choose(("error", "keep", "drop")),
        }
        if recipe.below(4) == 0:
            options[recipe.choose(("columns", "drop_columns", "names", "group"))] = recipe.choose(
                ("a", ["a", "b"], [0, 1], [-1], 5, [[]], ["nobody"], None, list("wxyz"))
            )
        if recipe.below(3) == 0:
            name = recipe.choose(tuple(WISHES))
            options[name] = recipe.choose(WISHES[name])
        try:
            read = read_data(source, **options)
        except (DataError, FileError) as error:
            return worded(error)
        values = read.values()
        if not (values < read.scales.levels).all():
            raise Escaped("a cell is no level")
        return f"read #{read.digest()[:12]}"


class Memory:
    """``read_data``: tables in memory, with any cells, types and masks, and weights of rows."""

    CELLS: ClassVar[tuple[Any, ...]] = (
        0, 1, 0, 1, True, False, None, -1, 2, 1.0, 0.5, 2**53, 2**53 + 1, 10**40, np.nan, np.inf, "yes", "no",
        "", "NA", " yes", "\ud800", "a\0b", b"yes", (), [], [1], {}, object(), np.int8(1), np.bool_(0), 1j,
        np.datetime64("NaT"), np.ma.masked, range(3), slice(None), "x" * 200_000,
    )  # fmt: skip
    TYPES: ClassVar[tuple[str, ...]] = (
        "object", "category", "string", "boolean", "Int8", "float32", "bool", "datetime64[ns]", "complex64",
        "uint8", "timedelta64[ns]", "Sparse[int]",
    )  # fmt: skip

    def __call__(self, data: bytes) -> str:
        from edgewise.data import read_data

        recipe = Recipe(data)
        table = rows_of(np.random.default_rng(recipe.byte()), 4 + recipe.below(9), 5)[
            :, : 1 + recipe.below(4)
        ]
        source = self._table(table, recipe)
        given: dict[str, Any] = {
            "missing": recipe.choose(("error", "drop")),
            "constant": recipe.choose(("error", "keep", "drop")),
        }
        for name in ("sample_weight", "columns", "drop_columns", "names", "group"):
            if recipe.below(4) == 0:
                given[name] = self._option(recipe, len(table))
        if recipe.below(3) == 0:
            name = recipe.choose(tuple(WISHES))
            given[name] = recipe.choose(WISHES[name])
        masked = isinstance(source, np.ma.MaskedArray) and np.ma.getmaskarray(source)
        try:
            read = read_data(source, **given)
        except (DataError, FileError) as error:
            return worded(error)
        values = read.values()
        if not (values < read.scales.levels).all():
            raise Escaped("a cell is no level")
        weights = np.ones(1) if read.weights is None else read.weights
        if not (np.isfinite(weights).all() and weights.min() >= 0):
            raise Escaped("a row has a weight that is no number")
        if (
            isinstance(masked, np.ndarray)
            and len(values) > (~masked.any(axis=1)).sum()
            and not ("columns" in given or "drop_columns" in given or given["constant"] == "drop")
        ):
            raise Escaped("a masked cell was read")
        return "read"

    def _table(self, table: np.ndarray, recipe: Recipe) -> Any:
        import pandas as pd
        from scipy import sparse

        kind = recipe.below(8)
        if kind == 0:
            return recipe.choose(
                (None, 5, "", b"", [], {}, [[]], (), object(), iter(()), np.float64(1), "\0")
            )
        if kind == 1:
            return np.ma.masked_array(
                table,
                np.frombuffer(bytes(recipe.byte() for _ in range(table.size)), np.uint8).reshape(table.shape)
                > 250,
            )
        if kind == 2:
            made = recipe.choose((sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array, sparse.dok_matrix))(
                table
            )
            part = recipe.choose(("data", "indices", "indptr", "row"))
            if hasattr(made, part) and len(getattr(made, part)):
                changed = getattr(made, part)
                changed[recipe.below(len(changed))] = recipe.choose((-1, 0, 1, 2, 100, 2**31 - 1))
            return made
        rows = table.astype(object)
        for _ in range(recipe.below(4)):
            rows[recipe.below(len(rows)), recipe.below(rows.shape[1])] = recipe.choose(self.CELLS)
        if kind == 3:
            return rows
        if kind == 4:
            lists = [list(row) for row in rows]
            if recipe.below(4) == 0:
                lists[recipe.below(len(lists))] = recipe.choose(
                    ([], [1], None, "ab", np.ma.masked_all(2), {"a": 1})
                )
            return recipe.choose((list, tuple, iter))(lists)
        names = [recipe.choose(("a", "b", "c", "d", "", None, 0, "a\nb", 1.5)) for _ in range(rows.shape[1])]
        if kind == 5:
            return dict(zip(names, rows.T))
        frame = pd.DataFrame(rows, columns=names)
        if kind == 6:
            import polars

            try:
                made = polars.DataFrame(
                    {str(name): list(column) for name, column in zip(names, rows.T)}, strict=False
                )
            except (
                TypeError,
                ValueError,
                OverflowError,
                polars.exceptions.PolarsError,
                BaseException,
            ) as error:
                return str(error)
            return made.lazy() if recipe.below(2) else made
        with contextlib.suppress(Exception):  # not every cell is of every type
            frame = frame.astype(recipe.choose(self.TYPES))
        return frame

    def _option(self, recipe: Recipe, count: int) -> Any:
        return recipe.choose(
            (
                "a", ["a", "b"], [0, 1], [-1], 5, [[]], ["nobody"], None, list("wxyz"), slice(0, 1), 10**30,
                [True, False], np.ones(count), np.zeros(count), -np.ones(count), np.full(count, np.nan),
                np.full(count, 1e300), np.ma.masked_all(count), ["1"] * count, np.ones((count, 1)),
                range(count), object(), "\ud800",
            )
        )  # fmt: skip
