"""Tables in memory, of whatever kind, seen as named columns that can be asked for one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from edgewise.data.factor import Factor, factorise
from edgewise.data.problems import SHAPE, SHOWN, Fault, TableError, counted, listing
from edgewise.reading import physical_memory

Cells = np.ndarray | Factor
EXACT = 2.0**53  # floats from here on stand for several whole numbers


class Table(Protocol):
    """Named columns. Names are known at once; the cells may be read only when :meth:`load` is called."""

    origin: str
    names: list[str]
    n_rows: int

    def load(self, variables: Sequence[int], raw: Sequence[int] = ()) -> None:
        """Read the body: `variables` as columns of levels, `raw` ones as they are."""
        ...

    def column(self, index: int) -> Cells:
        """The cells of one variable."""
        ...

    def raw(self, index: int) -> Sequence[Any] | np.ndarray:
        """The cells of a column that is not a variable: a group label or a weight."""
        ...

    def where(self, row: int) -> str:
        """Words for a row, as its owner counts."""
        ...


class ColumnsTable:
    """Columns that are in memory, each made by a function when it is asked for."""

    def __init__(
        self,
        origin: str,
        names: Sequence[str],
        n_rows: int,
        column: Callable[[int], Cells],
        raw: Callable[[int], Any] | None = None,
        labels: Callable[[int], str] | None = None,
    ) -> None:
        self.origin = origin
        self.names = list(names)
        self.n_rows = n_rows
        self._column = column
        self._raw = raw or column
        self._labels = labels

    def load(self, variables: Sequence[int], raw: Sequence[int] = ()) -> None:
        """Nothing to do: the cells are in memory."""

    def column(self, index: int) -> Cells:
        """The cells of one variable."""
        return self._column(index)

    def raw(self, index: int) -> Any:
        """The cells of a column as they are."""
        return self._raw(index)

    def where(self, row: int) -> str:
        """Words for a row."""
        label = self._labels(row) if self._labels is not None else ""
        return f"row {row}{label}"


def table_in_memory(source: Any) -> Table:
    """Recognise an array, a list of rows, a mapping, a DataFrame or a sparse matrix."""
    kind = type(source)
    module = kind.__module__.partition(".")[0]
    if module == "pandas" or any(base.__module__.startswith("pandas.") for base in kind.__mro__):
        return _from_pandas(source)
    if module == "polars":
        return _from_polars(source)
    if module == "pyarrow" and hasattr(source, "to_pandas"):
        return _from_arrow(source)
    if module == "scipy" and hasattr(source, "tocsc"):
        return _from_sparse(source)
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if isinstance(source, np.ndarray):
        return array_table(source)
    if isinstance(source, list | tuple):
        return _from_rows(source)
    if hasattr(source, "__array__"):
        _check_claim(source)
        return array_table(np.asanyarray(source))  # a mask stays
    raise _refusal(
        f"the data are of type {kind.__name__!r}; give a 2-D array, a list of rows, a DataFrame, a sparse "
        "matrix or the path of a CSV, TSV, npz or Parquet file."
    )


def _check_claim(source: Any) -> None:
    """Refuse what says that it is larger than the memory before it is asked for its cells."""
    try:
        shape, size = [int(length) for length in source.shape], int(np.dtype(source.dtype).itemsize)
    except (AttributeError, TypeError, ValueError):
        return
    if math.prod(shape) * size > physical_memory():
        raise _refusal(too_large(" x ".join(f"{length:,}" for length in shape), math.prod(shape) * size))


def too_large(what: str, size: float) -> str:
    """Words for a table that does not fit into memory."""
    return (
        f"its {what} cells take {size / 1e9:,.0f} GB to read, and this machine has "
        f"{physical_memory() / 1e9:,.0f}; take fewer rows or columns."
    )


def _refusal(text: str, origin: str = "the data") -> TableError:
    return TableError(origin, [Fault(SHAPE, text)])


def _default_names(count: int) -> list[str]:
    return [f"x{j}" for j in range(count)]


def array_table(array: np.ndarray, origin: str = "the array") -> Table:
    """Columns of a 2-D array."""
    if array.dtype.names:
        return _from_mapping({name: array[name] for name in array.dtype.names}, origin)
    if array.ndim != 2:
        raise _refusal(
            f"it has {array.ndim} dimension{'' if array.ndim == 1 else 's'} (shape {array.shape}); give a "
            "2-D array with one row per observation and one column per variable"
            + (", for instance with reshape(-1, p)." if array.ndim != 0 else "."),
            origin,
        )
    if array.dtype.kind not in "biufOUS":
        raise _refusal(
            f"its cells are of type {array.dtype}, which has no two levels; give 0 and 1, booleans or words.",
            origin,
        )
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    plain = np.asarray(array)
    blocks = _ColumnBlocks(plain)

    def column(index: int) -> Cells:
        cells = blocks.column(index)
        if mask is not None and mask[:, index].any():
            return factorise(_without(cells, mask[:, index]))
        return cells if cells.dtype.kind in "biuf" else factorise(cells.astype(object))

    def raw(index: int) -> np.ndarray:
        return plain[:, index] if mask is None else _without(plain[:, index], mask[:, index])

    return ColumnsTable(
        origin,
        _default_names(plain.shape[1]),
        plain.shape[0],
        column,
        raw,
    )


def _without(cells: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Cells of which the masked ones are blank."""
    objects = cells.astype(object)
    objects[mask] = None
    return objects


class _ColumnBlocks:
    """Columns of a 2-D array or DataFrame of one type, copied a few at a time.

    Walking down one column of a large row-major array misses the cache at every step.
    """

    def __init__(self, table: Any, block_bytes: int = 64_000_000) -> None:
        self.take = table.iloc.__getitem__ if hasattr(table, "iloc") else table.__getitem__
        item_bytes = table.dtypes.iloc[0].itemsize if hasattr(table, "iloc") else table.itemsize
        self.width = max(1, min(64, block_bytes // max(1, table.shape[0] * item_bytes)))
        self.start = -1
        self.block = np.zeros((0, 0))

    def column(self, index: int) -> np.ndarray:
        start = index - index % self.width
        if start != self.start:
            part = self.take((slice(None), slice(start, start + self.width)))
            self.block = np.ascontiguousarray(np.asarray(part).T)
            self.start = start
        return np.asarray(self.block[index - start])


def _from_rows(rows: Sequence[Any]) -> Table:
    if not len(rows):
        raise _refusal("it has no rows; give at least one row per observation.", "the list")
    if all(isinstance(row, Mapping) for row in rows):
        return _from_pandas(_frame(list(rows), "the list"))
    rows = [np.asanyarray(row) if hasattr(row, "__array__") else row for row in rows]
    for number, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            raise _refusal(
                f"row {number} is {row!r}, not a list of cells; give a list of rows of equal length.",
                "the list",
            )
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise _refusal(
                f"row {number} has {counted(len(row), 'cell')} and row 0 has {width}; give rows of equal "
                "length.",
                "the list",
            )
    try:
        array = np.empty(0) if any(map(_has_mask, rows)) else np.asarray(rows)
    except ValueError:
        array = np.empty(0)
    if array.dtype.kind == "f" and (np.abs(array) >= EXACT).any():
        array = np.empty(0, object)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        if array.ndim > 2 and array.dtype.kind != "O":
            return array_table(array, "the list")
        array = np.empty((len(rows), width), object)
        for number, row in enumerate(rows):
            for position, cell in enumerate(row):
                array[number, position] = None if cell is np.ma.masked else cell
    return array_table(array, "the list")


def _has_mask(row: Any) -> bool:
    """Whether a row has masked cells, which NumPy would lay bare."""
    if isinstance(row, np.ndarray):
        return bool(np.ma.is_masked(row))
    return any(cell is np.ma.masked for cell in row)


def _frame(content: Any, origin: str) -> Any:
    """A DataFrame, whose strings pandas may keep as text that is written to files."""
    import pandas as pd

    try:
        return pd.DataFrame(content)
    except UnicodeEncodeError:
        raise _refusal(
            "a name or a cell has half a character (a lone surrogate) in it, which no file can hold; "
            "correct it.",
            origin,
        ) from None


def _from_mapping(columns: Mapping[Any, Any], origin: str = "the table") -> Table:
    lengths = {
        str(name): np.shape(cells)[0] if np.ndim(cells) == 1 else -1 for name, cells in columns.items()
    }
    odd = [name for name, length in lengths.items() if length < 0 or length != next(iter(lengths.values()))]
    if odd:
        raise _refusal(
            f"its columns must be lists of one length; look at {listing([repr(name) for name in odd])}.",
            origin,
        )
    return _from_pandas(_frame(dict(columns), origin), origin)


def _from_pandas(frame: Any, origin: str = "the DataFrame") -> Table:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise _refusal(
            f"it is a pandas {type(frame).__name__}; give a DataFrame with two or more columns.",
            origin,
        )
    if frame.columns.nlevels > 1:
        raise _refusal(
            f"its column names have {frame.columns.nlevels} levels; join them into one, for instance with "
            "df.columns = ['_'.join(map(str, c)) for c in df.columns].",
            origin,
        )
    names = ["" if _is_nan(name) else str(name) for name in frame.columns]
    plain_index = isinstance(frame.index, pd.RangeIndex) and frame.index.start == 0 and frame.index.step == 1

    # Types are compared and not hashed: a categorical one with tuples among its levels has no hash.
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    alike = plain and len(frame.dtypes) > 0 and all(kind == frame.dtypes.iloc[0] for kind in frame.dtypes)
    blocks = _ColumnBlocks(frame) if alike and frame.dtypes.iloc[0].kind in "biuf" else None

    def column(index: int) -> Cells:
        return pandas_cells(frame.iloc[:, index]) if blocks is None else blocks.column(index)

    def label(row: int) -> str:
        return "" if plain_index else f" (index {frame.index[row]!r})"

    return ColumnsTable(
        origin, names, len(frame), column, lambda index: frame.iloc[:, index].to_numpy(), label
    )


def pandas_cells(series: Any) -> Cells:
    """The cells of a pandas column, as numbers where it has a plain numeric type and as levels otherwise."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(series.to_numpy())
    if isinstance(dtype, pd.CategoricalDtype):
        return Factor(np.asarray(series.cat.codes), list(series.cat.categories), ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.SparseDtype):
        return pandas_cells(series.sparse.to_dense())
    return factorise(series.array)


def _is_nan(name: Any) -> bool:
    return name is None or (isinstance(name, float) and np.isnan(name))


def _from_arrow(source: Any) -> Table:
    try:
        frame = source.to_pandas(integer_object_nulls=True)
    except Exception as error:  # whatever Arrow cannot turn into cells
        schema = getattr(source, "schema", None)
        odd = [field for field in schema or [] if not _has_cells(source.column(field.name))]
        if odd:
            columns = listing([f"{field.name!r} ({str(field.type)[:60]})" for field in odd])
            names = [field.name for field in odd[:SHOWN]]
            what = (
                f"no levels can be made of its columns {columns}; leave them out with drop_columns({names})"
            )
        else:
            what = f"no DataFrame can be made of it ({str(error)[:100]}); give one"
        raise _refusal(f"{what}.", "the Arrow table") from None
    return _from_pandas(frame)


def _has_cells(column: Any) -> bool:
    try:
        column.to_pandas()
    except Exception:  # as above
        return False
    return True


def _from_polars(frame: Any) -> Table:
    origin = "the DataFrame"
    if type(frame).__name__ == "LazyFrame":
        try:
            frame = frame.collect()
        except Exception as error:  # whatever the operations in it raise
            reason = str(error).strip().partition("\n")[0]
            raise _refusal(
                f"what its LazyFrame is to do fails ({reason}); mend that, or collect() it before.", origin
            ) from None
    if type(frame).__name__ != "DataFrame":
        raise _refusal(
            f"it is a polars {type(frame).__name__}; give a DataFrame with two or more columns.", origin
        )

    def column(index: int) -> Cells:
        series = frame.to_series(index)
        if series.null_count() == 0 and (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
            cells = series.to_numpy()
            if cells.dtype.kind in "biuf":
                return np.asarray(cells)
        if str(series.dtype).startswith("Enum"):
            codes = series.to_physical().fill_null(-1).cast(int).to_numpy()
            return Factor(np.asarray(codes), list(series.dtype.categories), ordered=True)
        objects = np.empty(len(series), object)
        objects[:] = series.to_list()
        return factorise(objects)

    return ColumnsTable(
        origin,
        frame.columns,
        frame.height,
        column,
        lambda index: np.array(frame.to_series(index).to_list(), object),
    )


def _from_sparse(matrix: Any) -> Table:
    origin = "the sparse matrix"
    if matrix.ndim != 2:
        raise _refusal(f"it has {matrix.ndim} dimension; give a 2-D matrix.", origin)
    if matrix.dtype.kind not in "biuf":
        raise _refusal(f"its cells are of type {matrix.dtype}; give 0 and 1 or booleans.", origin)
    if matrix.format not in ("csr", "csc", "bsr"):
        try:
            matrix = matrix.tocoo()
        except ValueError as error:
            raise _refusal(f"an index points outside the matrix ({error}); build it anew.", origin) from None
    _check_indices(matrix, origin)
    by_column = matrix.tocsc()
    if not by_column.has_canonical_format:
        by_column = by_column.copy()
        by_column.sum_duplicates()

    def column(index: int) -> Cells:
        cells = np.zeros(by_column.shape[0], by_column.dtype)
        part = slice(by_column.indptr[index], by_column.indptr[index + 1])
        cells[by_column.indices[part]] = by_column.data[part]
        return cells

    return ColumnsTable(origin, _default_names(by_column.shape[1]), by_column.shape[0], column)


def _check_indices(matrix: Any, origin: str) -> None:
    """Refuse indices that SciPy would follow out of the matrix."""
    if matrix.format == "coo":
        outside = [
            int(where[wrong][0])
            for where, length in zip(matrix.coords, matrix.shape)
            if (wrong := (where < 0) | (where >= length)).any()
        ]
        problem = f"the index {outside[0]}" if outside else ""
    else:
        rows, columns = matrix.shape
        length = columns if matrix.format == "csr" else rows
        if matrix.format == "bsr":
            length = columns // matrix.blocksize[1]
        pointers, indices = matrix.indptr, matrix.indices
        whole = pointers[0] == 0 and (np.diff(pointers) >= 0).all() and pointers[-1] <= len(indices)
        wrong = (indices < 0) | (indices >= length)
        problem = (
            f"the index {int(indices[wrong][0])}" if wrong.any() else "" if whole else "an index pointer"
        )
    if problem:
        raise _refusal(f"{problem} points outside the matrix (shape {matrix.shape}); build it anew.", origin)
