"""Ten measurements of people with diabetes and what became of them: real data that is always at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

# Of scikit-learn's s1 to s6, after its description of the data.
MEANINGS = {
    "age": "age",
    "sex": "sex",
    "bmi": "body mass",
    "bp": "blood pressure",
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol/HDL",
    "s5": "triglycerides",
    "s6": "blood sugar",
    "target": "progression",
}


def diabetes() -> pandas.DataFrame:
    """People with diabetes: ten measurements, and how far the disease had gone a year later.

    The data of Efron, Hastie, Johnstone and Tibshirani (2004) as they come with scikit-learn.

    Returns
    -------
    pandas.DataFrame (442, 11)
        One where a measurement is above its median, zero elsewhere; for sex, one is the code 2.

    Examples
    --------
    >>> diabetes().shape
    (442, 11)
    >>> list(diabetes().columns[-3:])
    ['triglycerides', 'blood sugar', 'progression']
    """
    from sklearn.datasets import load_diabetes

    frame: pandas.DataFrame = load_diabetes(scaled=False, as_frame=True).frame
    measured = frame.rename(columns=MEANINGS)[[*MEANINGS.values()]]
    return (measured > measured.median().where(measured.columns != "sex", 1)).astype("uint8")
