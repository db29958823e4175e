"""The configuration of the course; `nbgrader --help-all` names all there is."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "tinytorch"
c.ClearSolutions.code_stub = {"python": ""}  # the stub stands above the solution
c.Execute.timeout = 60  # seconds for a cell; then it is interrupted and the next one runs
c.Execute.startup_timeout = 60
