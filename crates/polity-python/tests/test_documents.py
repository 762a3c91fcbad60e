"""The page of the book and the notebook: their code is run, and their output compared."""

import doctest
import os

import nbformat
from nbclient import NotebookClient


def test_the_page_of_the_book_is_as_it_prints(repository):
    page = os.path.join(repository, "docs/book/src/python.md")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    code = "\n".join(block.split("\n", 1)[1] for block in text.split("\n```")[1::2] if block.startswith("python\n"))
    assert code.count(">>>") > 10
    example = doctest.DocTestParser().get_doctest(code, {}, "python.md", page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    told = []
    runner.run(example, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_the_notebook_runs(repository, folder):
    notebook = nbformat.read(os.path.join(repository, "docs/notebooks/first-run.ipynb"), as_version=4)
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("<svg" in page for page in pages), "the run is shown with its charts"
