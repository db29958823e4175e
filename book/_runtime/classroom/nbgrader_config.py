"""The configuration of the course; `nbgrader --help-all` names all there is."""

from pathlib import Path

import nbformat
from nbgrader.nbgraderformat import SCHEMA_VERSION
from nbgrader.preprocessors import NbGraderPreprocessor

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "tinytorch"
c.ClearSolutions.code_stub = {"python": ""}  # the stub stands above the solution
c.Execute.timeout = 60  # seconds for a cell; then it is interrupted and the next one runs
c.Execute.startup_timeout = 60
RELEASE = Path(__file__).parent / "release"


class RestoreCells(NbGraderPreprocessor):
    """Turn a copied cell into an ordinary one, and put back every cell that was deleted.

    nbgrader leaves a copy an empty entry, takes that for a notebook of an old version, and stops:
    nobody after this student would be graded.
    """

    def preprocess(self, nb, resources):
        """Change the notebook that a student has handed in."""
        for cell in nb.cells:
            if about(cell).get("schema_version") != SCHEMA_VERSION:
                cell.metadata.pop("nbgrader", None)
        here, names = resources["nbgrader"], [about(cell).get("grade_id") for cell in nb.cells]
        path, place = RELEASE / here["assignment"] / f"{here['notebook']}.ipynb", 0
        for cell in filter(about, nbformat.read(path, as_version=4).cells):
            name = about(cell)["grade_id"]
            if name not in names:
                self.log.warning("Cell %s was deleted: put back as released", name)
                if nb.nbformat_minor < 5:  # there cells have no ids
                    del cell["id"]
                nb.cells.insert(place, cell)
                names.insert(place, name)
            place = names.index(name) + 1
        return nb, resources


def about(cell):
    """Return what nbgrader knows about a cell."""
    return cell.metadata.get("nbgrader") or {}


c.Autograde.sanitize_preprocessors.insert(2, RestoreCells)  # before the cells are compared
