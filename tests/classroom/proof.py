"""Every assignment, graded by nbgrader: solutions, stubs, and all listed wrong answers.

    python tests/classroom/proof.py [--course FOLDER] [--wrong NUMBER] [CHAPTER ...]

Prints a line for each chapter; the exit status is 1 if a solution loses a point, or anything else
gets one.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "book"), str(ROOT / "tests" / "lab" / "exercises")]

from _ext.teaching.nbgrader_course import chapters, write_course  # noqa: E402
from grading import nbgrader, right, scores, submit, wrong, wrong_answers  # noqa: E402


def grade(course, chapter, most):
    """Grade one assignment; for each kind of submission its scores."""
    nbgrader(course, "generate_assignment", chapter.name)
    number = min(most, max(map(len, wrong_answers(chapter).values())))
    submit(course, "solutions", chapter, right(chapter))
    submit(course, "stubs", chapter)
    for i in range(number):
        submit(course, f"wrong-{i}", chapter, wrong(chapter, i))
    nbgrader(course, "autograde", chapter.name)
    found = {s: score for (a, s), score in scores(course).items() if a == chapter.name}
    listed = sum(min(number, len(known)) for known in wrong_answers(chapter).values())
    given = [points for s, (points, _) in found.items() if s.startswith("wrong-")]
    assert len(given) == number
    return found["solutions"], found["stubs"][0], sum(given), number, listed


def main():
    """Grade, print, and say whether all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="*")
    parser.add_argument("--course", type=Path, help="where to grade (a new folder)")
    parser.add_argument("--wrong", type=int, default=99, help="at most so many of an exercise")
    options = parser.parse_args()
    course = options.course or Path(tempfile.mkdtemp())
    course.mkdir(exist_ok=True)
    write_course(course, seed=1)
    failed = 0
    for chapter in chapters():
        if options.chapters and chapter.name not in options.chapters:
            continue
        (points, most), stubs, wrongs, number, listed = grade(course, chapter, options.wrong)
        is_right = points == most == chapter.points and stubs == wrongs == 0
        failed += not is_right
        print(
            f"{chapter.name:24} solutions {points:g} of {chapter.points}, stubs {stubs:g}, "
            f"{listed} wrong answers in {number} submissions {wrongs:g}"
            f"{'' if is_right else '  <-- not as it should be'}",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
