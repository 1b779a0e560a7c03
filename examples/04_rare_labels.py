"""Rare labels: evaluate by label frequency, and optimize propensity-scored precision.

Run it: python examples/04_rare_labels.py
"""

from exmlds import ExMLDS, metrics
from exmlds.data import make_xmc
from exmlds.selection import random_split

data = make_xmc(1200, 1000, 200, random_state=0)
train_rows, test_rows = random_split(1200, share=0.2, random_state=0)
train, test = data.rows(train_rows), data.rows(test_rows)
weights = metrics.inverse_propensity(train.Y)

for objective in ("precision", "psp"):
    model = ExMLDS(objective=objective, random_state=0).fit(train.X, train.Y)
    ranking = metrics.Ranking(test.Y, model.predict_topk(test.X, k=1), 1, weights)
    measured = ", ".join(f"{name} {100 * ranking.value(name):.0f}" for name in ("P@1", "PSP@1", "coverage@1"))
    print(f"objective={objective!r}: {measured}")
    for group in metrics.by_frequency(test.Y, ranking.ids, model.label_counts_, k=1, n_groups=4):
        rows = f"{group.least} to {group.most} training rows"
        print(
            f"  {group.n_labels:3} labels with {rows:26} {group.coverage:4.0%} of those in the test are found"
        )
