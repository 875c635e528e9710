"""The data door: an array, a DataFrame or a file becomes one checked :class:`BinaryData`.

Every input error is born here, and every message names the column, the row and the way out.

Rules, in short
---------------
* A variable is a column with exactly two levels: 0/1, -1/+1, booleans, ``y``/``n``, any two words, any two
  numbers. Of two numbers the larger becomes 1. Of two words the one among ``1, y, yes, true, present``
  becomes 1; otherwise the second in alphabetical order does. ``BinaryData.levels`` keeps the labels.
* Empty cells and ``NA, N/A, NaN, null, None, ?`` and the like are blanks; spaces around a word do not count,
  its case does: ``Yes`` beside ``yes`` is refused.
* Rows are named as their owner counts them: lines of a file, rows from 0 of an array or DataFrame.
"""

from edgewise.data.problems import TableError as TableError
from edgewise.data.read import read_data as read_data
from edgewise.data.rows import encode_rows as encode_rows
from edgewise.data.table import BinaryData as BinaryData

__all__ = ["BinaryData", "TableError", "encode_rows", "read_data"]
