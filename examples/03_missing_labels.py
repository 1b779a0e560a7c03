"""Missing labels: label co-occurrences compensate for them.

Four of five training labels are hidden. The co-occurrence matrix C comes from another source: here from the
same rows before labels were hidden, in practice from a catalogue, from label names or from a taxonomy.
Run it: python examples/03_missing_labels.py
"""

from exmlds import ExMLDS, ExMLDS3, metrics
from exmlds.data import make_xmc
from exmlds.selection import hide_labels, random_split

data = make_xmc(
    800, 1000, 100, n_topics=20, labels_per_row=5, features_per_row=15, feature_noise=0.5, random_state=0
)
train_rows, test_rows = random_split(800, share=0.2, random_state=0)
train, test = data.rows(train_rows), data.rows(test_rows)
visible = hide_labels(train.Y, 0.8, random_state=0)
C = train.Y.T @ train.Y
shown, all_labels = visible.nnz / len(train_rows), train.Y.nnz / len(train_rows)
print(f"{all_labels:.1f} labels a row, {shown:.1f} of them visible\n\nP@1/3/5 on rows with all labels:")
for name, model, Y, known in [
    ("ExMLDS, nothing hidden", ExMLDS(random_state=0), train.Y, {}),
    ("ExMLDS", ExMLDS(random_state=0), visible, {}),
    ("ExMLDS with C", ExMLDS(random_state=0), visible, {"label_cooccurrence": C}),
    ("ExMLDS3 with C", ExMLDS3(n_components=50, random_state=0), visible, {"label_cooccurrence": C}),
]:
    ids, _ = model.fit(train.X, Y, **known).predict_topk(test.X, k=5)
    measured = [f"{100 * metrics.precision_at_k(test.Y, ids, k):.1f}" for k in (1, 3, 5)]
    print(f"  {name:24} {'/'.join(measured)}")

print(f"\nBy C, ExMLDS3 reckons that {model.visible_share_:.0%} of the labels are visible;")
print(f"likely ones vote with a strength of {model.complete_labels_}.")
