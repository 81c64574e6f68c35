"""An explanation, shown: as a page and as PNG, from the drawing of explanation/drawing."""
