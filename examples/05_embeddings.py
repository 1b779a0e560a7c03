"""Dense features: embeddings from any encoder, memory-mapped from a file.

The encoder here is a factorized tf-idf matrix, so that the script needs no download; the vectors of a
sentence encoder are used in the same way.
Run it: python examples/05_embeddings.py
"""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from exmlds import ExMLDS, metrics
from exmlds.data import make_library
from exmlds.selection import random_split

books = make_library(800, random_state=0)
encoder = make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(64, random_state=0))
np.save("vectors.npy", encoder.fit_transform(books.X).astype(np.float32))

vectors = np.load("vectors.npy", mmap_mode="r")  # (800, 64), read from the file on demand
train, test = random_split(800, share=0.2, random_state=0)
model = ExMLDS(random_state=0)
memory, size = model.estimate(*vectors.shape, n_labels=books.Y.shape[1])
print(f"Before the fit: about {memory / 1e6:.0f} MB of memory, a model of {size / 1e6:.0f} MB")

model.fit(vectors[train], books.Y[train], label_names=books.label_names)
print(f"Features were mapped by {model.shortlister_.features_!r}, chosen on held-out rows")
print(metrics.report(books.Y[test], model.predict_topk(vectors[test], k=5)))

print("\nLabels near 'baking' in the space of the model:")
for name, cosine in model.similar_labels("baking", k=3):
    print(f"  {name} ({cosine:.2f})")
