"""Make the pictures of an evaluation report, of a model of synthetic book descriptions, in docs/figures.

python docs/picture.py      # needs Chromium
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from exmlds import ExMLDS, TextClassifier
from exmlds.data import make_library
from exmlds.report import make, page

FIGURES = Path(__file__).parent / "figures"
SIZES = {  # CSS pixels
    "report": "1100,1060",  # the header, the summary and the chart of thresholds
    "report-summary": "1000,570",  # the header and the summary, to be read at the width of README
}


def report() -> bytes:
    """The page of a model that is tested on 600 of 3,000 texts."""
    books = make_library(3_000, random_state=0)
    assert books.feature_names is not None
    assert books.label_names is not None
    texts = [" ".join(books.feature_names[j] for j in row.indices) for row in books.X]
    labels = [[books.label_names[j] for j in row.indices] for row in books.Y]
    model = TextClassifier(model=ExMLDS(random_state=0)).fit(texts[:2_400], labels[:2_400])
    return page.rendered(
        make(model, texts[2_400:], labels[2_400:], title="Subjects of books", date="2025-01-02")
    )


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("The picture is made with Chromium, which is not installed.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_bytes(report())
        flags = f"--headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir={folder}/profile"
        for name, size in SIZES.items():
            picture = FIGURES / f"{name}.png"
            options = [f"--window-size={size}", "--virtual-time-budget=3000", f"--screenshot={picture}"]
            subprocess.run([chromium, *flags.split(), *options, file.as_uri()], check=True, timeout=120)
            print(f"Wrote {picture}, {picture.stat().st_size / 1000:.0f} kB.")


if __name__ == "__main__":
    main()
