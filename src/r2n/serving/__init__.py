"""A trained run, served: questions over HTTP, and a page for people."""
