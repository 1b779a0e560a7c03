"""From texts to explained predictions.

The data is a synthetic catalogue: each book is a text with subjects. The script trains a classifier, predicts
the subjects of new texts, and prints explanations.
Run it: python examples/01_texts.py
"""

from exmlds import ExMLDS, TextClassifier
from exmlds.data import make_library

books = make_library(800, random_state=0)
texts = [" ".join(books.feature_names[j] for j in row.indices) for row in books.X]
subjects = [[books.label_names[j] for j in row.indices] for row in books.Y]
print("A training text:", texts[0])
print("Its subjects:", ", ".join(subjects[0]))

model = TextClassifier(model=ExMLDS(random_state=0), keep_rows=True).fit(texts, subjects)
model.save("library-model")  # a folder; exmlds.load("library-model") reads it

new = ["bread, a vintage bottle and a villa of the emperor", "a python function that reads a table of stars"]
for text, found in zip(new, model.predict_labels(new, k=3)):
    print(f"\n{text!r} is about {', '.join(found)}")

for text, why in zip(new, model.explain(new, n=3)):
    print(f"\nWhy {why.label!r} for {text!r}? Its probability is {why.score:.2f}.")
    for voter in why.voters:
        print(f"  {voter.share:5.2f} of the votes by: {model.texts_[voter.row]}")
    for term in why.margin.for_:
        print(f"  {term.weight:+5.2f} of its classifier for the word {term.feature!r}")
