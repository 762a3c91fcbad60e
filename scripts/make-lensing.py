#!/usr/bin/env python3
"""Makes data/lensing: 20 draws of a synthetic lensing power spectrum, the papers that say how its band powers are published, and programs that fit it.

The spectrum is A * 2.5e-7 * (L / 200) ** -s. A and s are drawn from their priors, and the noise is normal, so that a right posterior holds the truth as
often as it says. What a survey publishes, how it gives its errors, and its calibration are told in its papers only. Earlier releases do it otherwise.
"""

import json
import math
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "lensing"
SURVEYS = ["Aurora", "Borealis", "Corvus", "Delphin", "Elnath"]
PRIOR = {"A": [0.5, 1.5], "s": [0.4, 1.6]}
FORMS = {  # what is published, as a factor in L
    "L (L + 1) C_L / (2 pi), times 1e4": "L * (L + 1) / (2 * math.pi) * 1e4",
    "C_L times 1e7": "1e7",
    "L C_L, times 1e5": "L * 1e5",
    "C_L / 4, times 1e7": "0.25e7",
    "(L + 1/2) C_L, times 1e5": "(L + 0.5) * 1e5",
}
PROGRAM = """import math
import random

random.seed(7)
rows = []
for line in open("bandpowers.txt"):
    cells = line.split()
{skip}    L, value, error = (float(cell) for cell in cells)
    factor = {factor}
    rows.append((L, {calibration} * value, {sigma}, factor))


def log_posterior(A, s):
    if not ({a0} < A < {a1} and {s0} < s < {s1}):
        return -math.inf
    return -0.5 * sum(((value - A * 2.5e-7 * (L / 200) ** -s * factor) / sigma) ** 2 for L, value, sigma, factor in rows)


A, s = 1.0, 1.0
current, chain = log_posterior(A, s), []
for i in range(9000):
    B, t = A + random.gauss(0, 0.04), s + random.gauss(0, 0.06)
    other = log_posterior(B, t)
    if math.log(random.random()) < other - current:
        A, s, current = B, t, other
    if i >= 1000:
        chain.append((A, s))
for name, values in (("A", [one[0] for one in chain]), ("s", [one[1] for one in chain])):
    values.sort()
    print(name, round(values[len(values) // 100], 5), round(values[-len(values) // 100], 5))
"""
SKIP = '    if "masked" in cells:\n        continue\n'


class Dice:
    """Random numbers that do not depend on the version of Python."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return ((self.state >> 11) + 0.5) / 2**53

    def normal(self):
        return math.sqrt(-2 * math.log(self.unit())) * math.cos(2 * math.pi * self.unit())


def fit(factor, sigma, calibration, skip):
    a, s = PRIOR["A"], PRIOR["s"]
    return PROGRAM.format(skip=SKIP if skip else "", factor=factor, sigma=sigma, calibration=calibration, a0=a[0], a1=a[1], s0=s[0], s1=s[1])


def main():
    dice, documents, items = Dice(20261127), [], []
    forms = list(FORMS.items())

    def document(name, title, text, date):
        documents.append({"id": name, "title": title, "text": text, "date": date})

    facts = {}
    for n, survey in enumerate(SURVEYS):
        for release in (1, 2):
            form, factor = forms[(n + 2 * (release - 1)) % 5]
            variance = (n + release) % 2 == 0
            scale = round(0.82 + 0.02 * ((3 * n + 5 * release) % 8), 2)
            of = f"{survey} release {release}"
            error = "variance" if variance else "standard deviation"
            told = {
                "form": f"The band powers of {of} are {form}.",
                "error": f"The third column of {of} is the {error} of the band power.",
                "calibration": f"The band powers of {of} must be divided by {scale} before they are fitted.",
            }
            facts[survey, release] = (told, factor, "math.sqrt(error)" if variance else "error", f"(1 / {scale})")
            year = 2019 + 3 * release
            document(f"{survey}-{release}-powers".lower(), f"{of}: the lensing band powers", f"{told['form']} They are binned in L with a width of 40, from 40 to 760. A file has three columns: the centre of the bin, the band power and its error.", f"{year}-0{n + 1}-10")
            document(f"{survey}-{release}-errors".lower(), f"{of}: errors and covariance", f"{told['error']} It comes from simulations of the reconstruction. Bins are independent to a good approximation.", f"{year}-0{n + 1}-12")
            document(f"{survey}-{release}-calibration".lower(), f"{of}: calibration of the maps", f"{told['calibration']} The factor was found by comparison with a satellite. It holds for all bins.", f"{year}-0{n + 1}-15")
    for title, text in [
        ("Sampling by Metropolis", "A proposal is accepted with the ratio of the posteriors. The first steps of a chain are left out. An acceptance of a quarter to a half is good."),
        ("Credible intervals", "The bounds of a central interval are quantiles of the chain. An interval of 98 percent leaves one percent on each side."),
        ("Reconstruction of lensing", "A quadratic estimator of the maps gives the lensing potential. Its bias is found from simulations and taken off."),
        ("Lensing and the growth of structure", "The amplitude of lensing measures the growth of structure. A release of band powers allows to fit it."),
        ("Priors of cosmological fits", "Flat priors are wide enough if the posterior is far from their ends. Informative priors come from the abundance of deuterium."),
        ("Foregrounds in lensing maps", "Dust and clusters contaminate the maps. Bins below 40 and above 760 are left out for this reason."),
    ]:
        document(title.split()[0].lower() + "-note", title, text, "2021-05-01")

    for n in range(20):
        survey = SURVEYS[n % 5]
        told, factor, sigma, calibration = facts[survey, 2]
        masked = n % 4 == 1
        truth = {name: low + (0.3 + 0.4 * dice.unit()) * (high - low) for name, (low, high) in PRIOR.items()}
        lines = []
        for i in range(18):
            L = 60 + 40 * i
            f = eval(factor, {"math": math, "L": L})
            power = truth["A"] * 2.5e-7 * (L / 200) ** -truth["s"] * f
            error = 0.08 * 2.5e-7 * (L / 200) ** -1 * f * (1 + i / 18)
            scale = 1 / eval(calibration)
            # The published error is that of the calibrated band power.
            value = (power + error * dice.normal()) * scale
            lines.append(f"{L} {value:.8g} {error ** 2 if 'sqrt' in sigma else error:.8g}")
        if masked:
            lines[5] = lines[5].split()[0] + " masked masked"
        old = facts[survey, 1]
        need = [{"finds": text} for text in told.values()]
        if masked:
            need.append({"finds": "could not convert string to float: 'masked'"})
        wrong = [fit(old[1], old[2], old[3], False), fit("1e7", "error", "1", False), fit(factor, sigma, "1", False)]
        question = (
            f"The file bandpowers.txt has the lensing band powers of {survey} release 2: L, band power, error. The model is C_L = A * 2.5e-7 * (L / 200) ** -s with flat priors, "
            f"A in {PRIOR['A']} and s in {PRIOR['s']}. Write a Python program that samples the posterior by Metropolis and prints two lines, `A LOW HIGH` and `s LOW HIGH`, the bounds of the central 98 % intervals."
        )
        items.append({
            "id": f"c{n + 1:02}", "survey": survey, "question": question, "answer": fit(factor, sigma, calibration, masked),
            "wrong": wrong, "plan": need, "truth": {k: round(v, 6) for k, v in truth.items()}, "prior": PRIOR, "data": "\n".join(lines) + "\n",
            "parts": {"plan": {"gold": f"{survey} release 2 band powers, how they are published\n{survey} release 2 errors, third column\n{survey} release 2 calibration factor"}},
        })
    OUT.mkdir(parents=True, exist_ok=True)
    for name, rows in [("documents.jsonl", documents), ("draws.jsonl", items)]:
        with open(OUT / name, "w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
