"""What one scrape answers: series by name and labels."""

import re

SERIES = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
# Labels whose values clients choose, or that count through the percentiles.
OPEN_LABELS = ("keyspace", "quantile", "table")


class Scraped:
    """All series of one answer, by their name and labels."""

    def __init__(self, text):
        self.series = {}
        self.families = []
        self.help = {}
        for line in text.splitlines():
            if line.startswith("# TYPE"):
                self.families.append(line.split()[2])
            elif line.startswith("# HELP"):
                _, _, name, help_text = line.split(" ", 3)
                self.help[name] = help_text
            elif not line.startswith("#"):
                found = SERIES.fullmatch(line)
                assert found, line
                key = (found["name"], tuple(sorted(LABEL.findall(found["labels"] or ""))))
                assert key not in self.series, line
                self.series[key] = float(found["value"])

    def of(self, name, **labels):
        return self.series.get((name, tuple(sorted(labels.items()))))

    def shapes(self):
        """The label sets of each name; a value that clients choose is a star."""
        shapes = {}
        for name, labels in self.series:
            shape = ",".join(f"{label}={'*' if label in OPEN_LABELS else value}" for label, value in labels)
            shapes.setdefault(name, set()).add(shape)
        return shapes
