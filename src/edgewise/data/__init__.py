"""The data door: an array, a DataFrame or a file becomes one checked :class:`Data`.

Every input error is born here, and every message names the column, the row and the way out.

Rules, in short
---------------
* A column with two levels is binary: 0/1, -1/+1, booleans, ``y``/``n``, any two words, any two
  numbers. Of two numbers the larger becomes 1. Of two words the one among ``1, y, yes, true, present``
  becomes 1; otherwise the second in alphabetical order does. ``BinaryData.levels`` keeps the labels.
* A column with 3 to 20 levels is ordinal where they are numbers or ordered categories, and nominal where they
  are words; `kinds` and `levels` say otherwise.
* Empty cells and ``NA, N/A, NaN, null, None, ?`` and the like are blanks; a blank word among other words
  (``None``) or a code that stands apart from a scale (``-9``, ``99``) is asked about. Spaces around a word do
  not count.
* Rows are named as their owner counts them: lines of a file, rows from 0 of an array or DataFrame.
"""

from edgewise.data.problems import TableError as TableError
from edgewise.data.read import read_data as read_data
from edgewise.data.rows import encode_rows as encode_rows
from edgewise.data.table import BinaryData as BinaryData
from edgewise.data.table import Data as Data
from edgewise.data.table import LevelData as LevelData

__all__ = ["BinaryData", "Data", "LevelData", "TableError", "encode_rows", "read_data"]
