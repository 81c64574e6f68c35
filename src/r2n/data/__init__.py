"""What is known: tables of facts, the Herbrand base, evidence, features, problems."""
