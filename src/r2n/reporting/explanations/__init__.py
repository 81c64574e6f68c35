"""An explanation as something that a person looks at: a drawing, as SVG or PNG, and a page."""
