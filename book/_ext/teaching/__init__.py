"""What teachers use: slides, a syllabus, and a course for nbgrader."""
