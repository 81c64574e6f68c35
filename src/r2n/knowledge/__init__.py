"""What is known: the Herbrand base, tables of facts, evidence, and the problem they pose."""
