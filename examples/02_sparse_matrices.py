"""Sparse matrices with the scikit-learn API: fit, predict, evaluate, save and load.

Run it: python examples/02_sparse_matrices.py
"""

from exmlds import ExMLDS, FeatureNeighbors, load, metrics
from exmlds.data import make_xmc
from exmlds.selection import label_split

data = make_xmc(n_samples=1200, n_features=1000, n_labels=100, random_state=0)
print(data)
train_rows, test_rows = label_split(data.Y, share=0.2, random_state=0)  # stratified by label
train, test = data.rows(train_rows), data.rows(test_rows)

model = ExMLDS(random_state=0).fit(train.X, train.Y)
ids, probabilities = model.predict_topk(test.X, k=5)  # two arrays, (n, 5), best first
weights = metrics.inverse_propensity(train.Y)
print(f"\n{metrics.report(test.Y, ids, inverse_propensity=weights)}")

error = metrics.calibration(test.Y, (ids, probabilities)).error
print(f"\nProbabilities are off by {100 * error:.1f} points on average.")
predicted = model.predict(test.X)  # csr indicator matrix; the threshold was tuned on held-out rows
print(f"{predicted.nnz / len(test_rows):.1f} labels a row reach the threshold of {model.threshold_:.2f}.")

baseline = FeatureNeighbors().fit(train.X, train.Y)
theirs, _ = baseline.predict_topk(test.X, k=5)
for d in metrics.compare(test.Y, ids, theirs):
    points = [f"{100 * value:+.1f}" for value in (d.difference, d.low, d.high)]
    print(f"{d.name} beside neighbours by features: {points[0]} ({points[1]} to {points[2]})")

model.save("xmc-model")  # a folder without pickle, replaced atomically
again = load("xmc-model")
assert (again.predict_topk(test.X, k=5)[0] == ids).all()
print(f"\nLoaded again, {type(again).__name__} says the same.")
